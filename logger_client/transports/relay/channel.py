"""A channel to a server for a forked child, which may not touch the gRPC that it inherited."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from logger_client.transports.base import CallFailed
from logger_client.transports.relay.frames import Head, Kind, pack_call
from logger_client.transports.relay.link import RelayCall
from logger_client.transports.relay.shared import SHARED

_UNAVAILABLE = 14
_GRACE_S = 1.0  # What an answer may take on its way back through the relay.


class RelayChannel:
    """A channel to a server through the relay of this process.

    Args:
        target: Where the server listens.
    """

    def __init__(self, target: str) -> None:
        self._target = target
        self._open: set[RelayStream] = set()
        SHARED.join(self)

    def call(self, method: str, request: bytes, timeout_s: float, *, wait_for_host: bool = False) -> bytes:
        """Makes a call and returns its answer."""
        head = Head(self._target, method, timeout_s, wait_for_host)
        call = SHARED.relay().begin(Kind.CALL, pack_call(head, request))
        answer = call.next(timeout_s + _GRACE_S)
        if answer is None:
            raise CallFailed(_UNAVAILABLE, "the call ended without an answer")
        return answer

    def open_stream(self, method: str, requests: Iterator[bytes]) -> RelayStream:
        """Opens a stream."""
        call = SHARED.relay().begin(Kind.OPEN, pack_call(Head(self._target, method, 0.0, False)))
        stream = RelayStream(call, self._open)
        try:
            threading.Thread(target=stream.send, args=(requests,), name="logger-client-requests", daemon=True).start()
        except RuntimeError as error:  # There are too many threads, or the interpreter ends.
            stream.cancel()
            raise CallFailed(_UNAVAILABLE, str(error)) from None
        return stream

    def close(self) -> None:
        """Ends all streams, and the relay if nobody else uses it."""
        for stream in list(self._open):
            stream.cancel()
        SHARED.leave(self)


class RelayStream:
    """An open stream."""

    def __init__(self, call: RelayCall, others: set[RelayStream]) -> None:
        self._call = call
        self._others = others
        others.add(self)

    def send(self, requests: Iterator[bytes]) -> None:
        """Sends the requests as they come; what becomes of the call, whoever reads its answers is told."""
        try:
            for request in requests:
                self._call.send(Kind.DATA, request)
            self._call.send(Kind.END)
        except CallFailed:
            pass

    def __iter__(self) -> Iterator[bytes]:
        """The answers."""
        try:
            while (answer := self._call.next(None)) is not None:
                yield answer
        finally:
            self._others.discard(self)

    def cancel(self) -> None:
        """Ends it."""
        self._others.discard(self)
        self._call.cancel()
