"""One LogStream call: a task that reads what the writer sends, and the handler itself, which alone answers."""

from __future__ import annotations

import asyncio
import functools
import logging
from concurrent.futures import Future
from typing import TYPE_CHECKING, NamedTuple

import grpc.aio

from logger_service.contract.errors import Reason, ServiceError
from logger_service.serving.calls import Context, HostCalls
from logger_service.serving.wakeups import Wakeups
from logger_service.v1 import logging_service_pb2

if TYPE_CHECKING:
    from logger_service.hosting.host import RunHost
    from logger_service.hosting.writer import WriterSession

log = logging.getLogger(__name__)

RECONNECT_AFTER_MS = 500
"""What a writer is told to wait when the server ends: by then it no longer takes streams."""


class SizedRequest(NamedTuple):
    """A request with its size on the wire, which would be costly to compute again."""

    request: logging_service_pb2.LogStreamRequest
    size: int

    @classmethod
    def parse(cls, data: bytes) -> SizedRequest:
        """Parses a request."""
        return cls(logging_service_pb2.LogStreamRequest.FromString(data), len(data))


def _nothing() -> None:
    """What a session calls on progress once its stream has ended."""


class LogStream:
    """A stream, from Hello to its end.

    Args:
        host: The host.
        calls: For the host's blocking calls.
        wakeups: How the host's threads reach this stream.
        context: gRPC's context of the call.
    """

    def __init__(self, host: RunHost, calls: HostCalls, wakeups: Wakeups, context: Context) -> None:
        self._host = host
        self._max_pending_bytes = host.settings.max_stream_bytes
        self._calls = calls
        self._wakeups = wakeups
        self._context = context
        self._session: WriterSession | None = None
        self._reader: asyncio.Task[None] | None = None
        self._ids: dict[str, str] = {}
        self._finishing = False
        self._draining = False
        self._progress = asyncio.Event()
        """There may be something to answer."""
        self._room = asyncio.Event()
        """There may be room for more batches."""

    async def serve(self) -> None:
        """Serves the stream. Raises what it is to end with."""
        reader = self._reader = asyncio.create_task(self._read())
        reader.add_done_callback(self._reader_ended)
        try:
            await self._answer(reader)
        finally:
            reader.cancel()
            if self._session is not None:
                self._session.on_progress = _nothing
                self._session.vanish()
                how = (
                    "finished" if self._session.finished else "was told to reconnect" if self._draining else "vanished"
                )
                log.info("a writer %s", how, extra=self._ids)

    def drain(self) -> None:
        """Reads no more, and ends the stream once what was read is acknowledged."""
        self._draining = True
        if self._reader is not None:
            self._reader.cancel()
        self.wake()

    def wake(self) -> None:
        """Has the stream look at what changed."""
        self._progress.set()
        self._room.set()

    # Reading.

    def _reader_ended(self, reader: asyncio.Task[None]) -> None:
        if not reader.cancelled():
            # Looked at, or asyncio reports it as lost where the writer went away and nobody is left to be told.
            reader.exception()
        self.wake()

    async def _read(self) -> None:
        """Reads until Finish, or until the writer says nothing more."""
        message = await self._context.read()
        if message is grpc.aio.EOF or message.request.WhichOneof("message") != "hello":
            raise ServiceError(Reason.INVALID_FIELD, "the first message must be a Hello", field="hello")
        hello = message.request.hello
        self._ids = {"run_id": hello.run_id, "writer_id": hello.writer_id}
        session = await self._open(hello)
        log.info("a writer connected", extra={**self._ids, "client": hello.client})
        session.on_progress = functools.partial(self._wakeups.notify, self.wake)
        self._session = session
        self.wake()
        while (message := await self._context.read()) is not grpc.aio.EOF:
            kind = message.request.WhichOneof("message")
            if kind == "batch":
                session.accept(message.request.batch, message.size)
                while session.pending_bytes > self._max_pending_bytes:
                    await self._wait_for_room(session)
            elif kind == "finish":
                self._finishing = True
                session.finish()
                return
            elif kind == "hello":
                raise ServiceError(Reason.INVALID_FIELD, "there must be only one Hello", field="hello")
            else:
                raise ServiceError(Reason.INVALID_FIELD, "a message must be a batch or Finish", field="message")

    async def _open(self, hello: logging_service_pb2.Hello) -> WriterSession:
        opening = self._calls.submit(self._host.open_writer, hello)
        try:
            return await asyncio.shield(asyncio.wrap_future(opening))
        except asyncio.CancelledError:
            # The writer went away meanwhile. The host may have opened the session all the same, or do so now.
            opening.add_done_callback(_vanish)
            raise

    async def _wait_for_room(self, session: WriterSession) -> None:
        self._room.clear()
        # Looked at again: it may have got room before `clear`, and nobody would say so a second time.
        if session.pending_bytes > self._max_pending_bytes:
            await self._room.wait()

    # Answering.

    async def _answer(self, reader: asyncio.Task[None]) -> None:
        """Writes Welcome, acknowledgements and Reconnect, until the stream is at its end."""
        welcomed = reconnecting = False
        while True:
            await self._progress.wait()
            self._progress.clear()
            # As of here: should the reader end during one of the writes below, this comes round again.
            all_read = reader.done()
            if all_read and not reader.cancelled():
                reader.result()
            session = self._session
            if session is None:
                if self._draining:
                    raise ServiceError(Reason.SHUTTING_DOWN)
                continue
            if not welcomed:
                welcomed = True
                await self._context.write(logging_service_pb2.LogStreamResponse(welcome=session.welcome))
            if self._draining and not reconnecting:
                reconnecting = True
                reconnect = logging_service_pb2.Reconnect(after_ms=RECONNECT_AFTER_MS)
                await self._context.write(logging_service_pb2.LogStreamResponse(reconnect=reconnect))
            # Asked before the acknowledgement is taken, so that the last one covers all that made it the last.
            failed, ending = session.failed, all_read and self._is_decided(session)
            acknowledgement = session.acknowledgement()
            if acknowledgement is not None:
                await self._context.write(logging_service_pb2.LogStreamResponse(acknowledgement=acknowledgement))
            if failed is not None:
                raise failed
            if ending:
                return

    def _is_decided(self, session: WriterSession) -> bool:
        """Whether all that was read is durable or refused."""
        return session.finished if self._finishing else session.pending_bytes == 0


def _vanish(opening: Future[WriterSession]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().vanish()
