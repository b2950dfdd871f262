"""The process that a forked child sends through: it makes the calls that frames on its standard input ask for.

It knows nothing of what the calls say. When the other end is gone, it half-closes its streams, so that what was handed
to it still reaches the server, and ends.
"""

from __future__ import annotations

import queue
import signal
import socket
import threading
import time
from collections.abc import Callable

from logger_client.transports.base import CallFailed, Channel, ChannelStream
from logger_client.transports.channel import GrpcChannel
from logger_client.transports.relay.frames import Head, Kind, Pipe, pack_failure, unpack_call

_DRAIN_S = 5.0
"""How long streams may go on without the one who opened them."""


class Bridge:
    """Makes the calls that come on a pipe.

    Args:
        pipe: The pipe.
    """

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._channels: dict[str, Channel] = {}
        self._streams: dict[int, tuple[ChannelStream, queue.SimpleQueue[bytes | None]]] = {}
        self._threads: list[threading.Thread] = []

    def run(self) -> None:
        """Serves the pipe until its other end is gone, and what is open a little longer."""
        while (frame := self._pipe.receive()) is not None:
            number, kind, payload = frame
            if kind is Kind.CALL:
                self._begin(self._call, number, *unpack_call(payload))
            elif kind is Kind.OPEN:
                self._open(number, unpack_call(payload)[0])
            elif number in self._streams:
                stream, requests = self._streams[number]
                if kind is Kind.CANCEL:
                    stream.cancel()
                else:
                    requests.put(payload if kind is Kind.DATA else None)
        for _, requests in list(self._streams.values()):
            requests.put(None)
        deadline = time.monotonic() + _DRAIN_S
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        for channel in self._channels.values():
            channel.close()

    def _channel(self, target: str) -> Channel:
        if target not in self._channels:
            self._channels[target] = GrpcChannel(target)
        return self._channels[target]

    def _begin(self, work: Callable[..., None], *arguments: object) -> None:
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _call(self, number: int, head: Head, request: bytes) -> None:
        try:
            answer = self._channel(head.target).call(
                head.method, request, head.timeout_s, wait_for_host=head.wait_for_host
            )
        except CallFailed as failure:
            self._send(number, Kind.FAILED, pack_failure(failure))
        else:
            self._send(number, Kind.DATA, answer)
            self._send(number, Kind.END)

    def _open(self, number: int, head: Head) -> None:
        requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        try:
            stream = self._channel(head.target).open_stream(head.method, iter(requests.get, None))
        except CallFailed as failure:
            self._send(number, Kind.FAILED, pack_failure(failure))
        else:
            self._streams[number] = stream, requests
            self._begin(self._answer, number, stream)

    def _answer(self, number: int, stream: ChannelStream) -> None:
        try:
            for answer in stream:
                self._send(number, Kind.DATA, answer)
            self._send(number, Kind.END)
        except CallFailed as failure:
            self._send(number, Kind.FAILED, pack_failure(failure))
        finally:
            _, requests = self._streams.pop(number)
            requests.put(None)  # Lets the thread go that waits for more.

    def _send(self, number: int, kind: Kind, payload: bytes = b"") -> None:
        try:
            self._pipe.send(number, kind, payload)
        except OSError:  # Nobody is there to hear it; the call goes on all the same.
            pass


def main() -> None:
    """Serves standard input, a socket."""
    # It ends when the other end does, who may handle a signal of the whole job by delivering what it has.
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    Bridge(Pipe(socket.socket(fileno=0))).run()
