"""The process that a forked child sends through: it makes the calls that frames on its standard input ask for.

It knows nothing of what the calls say. A failure of one call is told to that call, and the others go on. When the other
end is gone, it half-closes its streams, so that what was handed to it still reaches the server, and ends.
"""

from __future__ import annotations

import functools
import queue
import signal
import socket
import threading
import time
from collections.abc import Callable
from typing import Protocol

from logger_client.transports.base import CallFailed, ChannelStream
from logger_client.transports.channel import GrpcChannel
from logger_client.transports.relay.frames import Head, Kind, Pipe, pack_failure, unpack_call
from logger_service.contract.errors import Code

_DRAIN_S = 5.0
"""How long calls may go on without the one who began them."""


class _Answer(Protocol):
    """Sends a frame of one call."""

    def __call__(self, kind: Kind, payload: bytes = b"") -> None: ...


class _Call:
    """A call, of one request or of a stream of them.

    Args:
        channel: The way to the server.
        head: What the call is.
        answer: Told what the server answers, and then how the call ended.
    """

    def __init__(self, channel: GrpcChannel, head: Head, answer: _Answer) -> None:
        self._channel = channel
        self._head = head
        self._answer = answer
        self._requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._stream: ChannelStream | None = None
        self._cancelled = False

    def request(self, payload: bytes | None) -> None:
        """Takes a request; None: there are no more."""
        self._requests.put(payload)

    def cancel(self) -> None:
        """Ends it at once."""
        with self._lock:
            self._cancelled = True
            stream = self._stream
        if stream is not None:
            stream.cancel()

    def run(self) -> None:
        """Makes it, until it has ended."""
        try:
            stream = self._opened()
            for answer in stream:
                self._answer(Kind.DATA, answer)
        except Exception as error:
            self._answer(Kind.FAILED, pack_failure(_failure(error)))
        else:
            self._answer(Kind.END)
        finally:
            self._requests.put(None)  # Lets the thread go that waits for more.

    def _opened(self) -> ChannelStream:
        head = self._head
        requests = iter(self._requests.get, None)
        stream = self._channel.open_stream(head.method, requests, head.timeout_s, wait_for_host=head.wait_for_host)
        with self._lock:
            self._stream = stream
            cancelled = self._cancelled
        if cancelled:
            stream.cancel()
        return stream


class Bridge:
    """Makes the calls that come on a pipe, each on a thread of its own.

    Args:
        pipe: The pipe.
        open_channel: Makes a channel to a target.
    """

    def __init__(self, pipe: Pipe, open_channel: Callable[[str], GrpcChannel] = GrpcChannel) -> None:
        self._pipe = pipe
        self._open_channel = open_channel
        self._channels: dict[str, GrpcChannel] = {}
        self._calls: dict[int, _Call] = {}
        self._threads: list[threading.Thread] = []

    def run(self) -> None:
        """Serves the pipe until its other end is gone, and what is open a little longer."""
        while (frame := self._pipe.receive()) is not None:
            number, kind, payload = frame
            try:
                self._take(number, kind, payload)
            except Exception as error:
                self._answer(number, Kind.FAILED, pack_failure(_failure(error)))
        for call in list(self._calls.values()):
            call.request(None)
        deadline = time.monotonic() + _DRAIN_S
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        for channel in self._channels.values():
            channel.close()

    def _take(self, number: int, kind: Kind, payload: bytes) -> None:
        if kind in (Kind.CALL, Kind.OPEN):
            head, request = unpack_call(payload)
            call = _Call(self._channel(head.target), head, functools.partial(self._answer, number))
            if kind is Kind.CALL:
                call.request(request)
                call.request(None)
            self._begin(number, call)
            return
        known = self._calls.get(number)  # None: it has ended meanwhile.
        if known is None:
            return
        if kind is Kind.CANCEL:
            known.cancel()
        else:
            known.request(payload if kind is Kind.DATA else None)

    def _channel(self, target: str) -> GrpcChannel:
        if target not in self._channels:
            self._channels[target] = self._open_channel(target)
        return self._channels[target]

    def _begin(self, number: int, call: _Call) -> None:
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        thread = threading.Thread(target=self._make, args=(number, call), daemon=True)
        self._calls[number] = call
        try:
            thread.start()
        except RuntimeError as error:  # There are too many threads.
            del self._calls[number]
            raise CallFailed(Code.UNAVAILABLE, str(error)) from None
        self._threads.append(thread)

    def _make(self, number: int, call: _Call) -> None:
        try:
            call.run()
        finally:
            self._calls.pop(number, None)

    def _answer(self, number: int, kind: Kind, payload: bytes = b"") -> None:
        try:
            self._pipe.send(number, kind, payload)
        except OSError:  # Nobody is there to hear it; the call goes on all the same.
            pass


def _failure(error: Exception) -> CallFailed:
    """Returns what a caller is told."""
    if isinstance(error, CallFailed):
        return error
    return CallFailed(Code.INTERNAL, f"a fault of the relay: {type(error).__name__}: {error}")


def main() -> None:
    """Serves standard input, a socket."""
    # It ends when the other end does, who may handle a signal of the whole job by delivering what it has.
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    with socket.socket(fileno=0) as end:
        Bridge(Pipe(end)).run()
