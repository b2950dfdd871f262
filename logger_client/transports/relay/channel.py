"""A channel to a server for a forked child, which may not touch the gRPC that it inherited."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

from logger_client.transports.base import CANCELLED, CallFailed
from logger_client.transports.relay.frames import Head, Kind, pack_call
from logger_client.transports.relay.link import RelayCall
from logger_client.transports.relay.shared import SHARED
from logger_service.contract.errors import Code

_GRACE_S = 1.0  # What an answer may take on its way back through the relay.


class RelayChannel:
    """A channel to a server through the relay of this process.

    Args:
        target: Where the server listens.
    """

    def __init__(self, target: str) -> None:
        self._target = target
        self._lock = threading.Lock()
        self._open: set[RelayCall] = set()
        self._closed = False
        SHARED.join(self)

    def call(self, method: str, request: bytes, timeout_s: float, *, wait_for_host: bool = False) -> bytes:
        """Makes a call and returns its answer."""
        call = self._begin(Kind.CALL, pack_call(Head(self._target, method, timeout_s, wait_for_host), request))
        try:
            answer = call.next(timeout_s + _GRACE_S)
        finally:
            self._forget(call)
        if answer is None:
            raise CallFailed(Code.UNAVAILABLE, "the call ended without an answer")
        return answer

    def open_stream(self, method: str, requests: Iterator[bytes]) -> RelayStream:
        """Opens a stream."""
        call = self._begin(Kind.OPEN, pack_call(Head(self._target, method, None, False)))
        stream = RelayStream(call, self._forget)
        try:
            threading.Thread(target=stream.send, args=(requests,), name="logger-client-requests", daemon=True).start()
        except RuntimeError as error:  # There are too many threads, or the interpreter ends.
            stream.cancel()
            raise CallFailed(Code.UNAVAILABLE, str(error)) from None
        return stream

    def close(self) -> None:
        """Ends all calls at once, and the relay if nobody else uses it. No call can be made then."""
        with self._lock:
            self._closed = True
            calls = list(self._open)
        for call in calls:
            call.cancel()
        SHARED.leave(self)

    def _begin(self, kind: Kind, payload: bytes) -> RelayCall:
        call = SHARED.relay(self).begin(kind, payload)
        with self._lock:
            if not self._closed:
                self._open.add(call)
                return call
        call.cancel()
        raise CallFailed(CANCELLED, "the connection was closed")

    def _forget(self, call: RelayCall) -> None:
        with self._lock:
            self._open.discard(call)


class RelayStream:
    """An open stream."""

    def __init__(self, call: RelayCall, on_end: Callable[[RelayCall], None]) -> None:
        self._call = call
        self._on_end = on_end

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
            self._on_end(self._call)

    def cancel(self) -> None:
        """Ends it."""
        self._on_end(self._call)
        self._call.cancel()
