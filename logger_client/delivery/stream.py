"""One stream to the host, from Hello to its end: what is sent on it, and what its answers do."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

from logger_client.delivery.encoding import hello_request
from logger_client.delivery.identity import RunIdentity
from logger_client.delivery.outbox import Outbox
from logger_client.transports.base import LogStreamCall, Transport
from logger_client.version import CLIENT
from logger_service.v1 import logging_service_pb2

WELCOME_TIMEOUT_S = 20.0
"""How long the host may take to answer Hello."""
RECONNECT_TIMEOUT_S = 5.0
"""How long a host that asked us to reconnect may take to end the stream."""


class Stream:
    """A stream. `run` is called once, by the thread that reads; `cancel` by any.

    Args:
        run: The run.
        transport: The way to its host.
        outbox: What is to be sent.
        on_welcome: Called when the host has answered Hello.

    Attributes:
        got_on: Whether the host has acknowledged something on it.
    """

    def __init__(self, run: RunIdentity, transport: Transport, outbox: Outbox, on_welcome: Callable[[], None]) -> None:
        self._run = run
        self._transport = transport
        self._outbox = outbox
        self._on_welcome = on_welcome
        self._call: LogStreamCall | None = None
        self._timer: threading.Timer | None = None
        self._welcome = threading.Event()  # Of two threads of our own, which no signal interrupts.
        self._welcomed = False
        self.got_on = False

    def run(self) -> float | None:
        """Opens the stream and serves it until it ends.

        Returns:
            In how many seconds the host wants to see another one; None: it ended the stream without a word on that.

        Raises:
            CallFailed: It ended with an error, or could not be opened.
        """
        writer_id, first_held = self._outbox.begin_stream(self)
        hello = logging_service_pb2.Hello(
            run_id=self._run.run_id, writer_id=writer_id, epoch=self._run.epoch, first_held=first_held, client=CLIENT
        )
        reconnect_s: float | None = None
        try:
            self._call = self._transport.open_stream(self._requests(hello))
            self._cancel_after(WELCOME_TIMEOUT_S)
            for response in self._call:
                kind = response.WhichOneof("message")
                if kind == "acknowledgement":
                    self.got_on = True
                    self._outbox.acknowledge(response.acknowledgement)
                elif kind == "welcome":
                    self._stop_timer()
                    if not self._outbox.welcome(response.welcome):
                        break
                    self._welcomed = True
                    self._welcome.set()
                    self._on_welcome()
                elif kind == "reconnect":
                    reconnect_s = response.reconnect.after_ms / 1000
                    # Sends no more; what is on its way is still acknowledged before the host ends the stream.
                    self._outbox.end_stream()
                    self._cancel_after(RECONNECT_TIMEOUT_S)
        finally:
            self._stop_timer()
            self._outbox.end_stream()
            self._welcome.set()  # Lets the thread go that sends.
            self.cancel()
        return reconnect_s

    def cancel(self) -> None:
        """Ends the stream at once."""
        if self._call is not None:
            self._call.cancel()

    def _requests(self, hello: logging_service_pb2.Hello) -> Iterator[bytes]:
        """What is sent; runs on a thread of the transport."""
        yield hello_request(hello)
        self._welcome.wait()
        while self._welcomed and (request := self._outbox.next_request(self)) is not None:
            yield request

    def _cancel_after(self, seconds: float) -> None:
        self._stop_timer()
        self._timer = threading.Timer(seconds, self.cancel)
        self._timer.daemon = True
        self._timer.start()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
