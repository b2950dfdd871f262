"""The relay as the process that uses it sees it: the other process, and the calls that it makes for us."""

from __future__ import annotations

import contextlib
import itertools
import queue
import socket
import threading
from typing import TypeAlias

from logger_client import fork
from logger_client.transports.base import CANCELLED, CallFailed
from logger_client.transports.relay import launch
from logger_client.transports.relay.frames import Kind, Pipe, unpack_failure
from logger_service.contract.errors import Code

_END_S = 1.0

_Answers: TypeAlias = "queue.SimpleQueue[bytes | CallFailed | None]"
"""Answers of a call, and how it ended: None, or its failure."""


class Relay:
    """The other process. Not to be used on the main thread, where Ctrl-C would leave half a frame on the pipe.

    Raises:
        CallFailed: It cannot be started.
    """

    def __init__(self) -> None:
        try:
            # A child that is forked in between would keep the other end open, and the pipe that tells of the start.
            with fork.no_fork:
                ours, theirs = socket.socketpair()
                with contextlib.ExitStack() as stack, theirs:
                    stack.callback(ours.close)
                    self._process = launch.start(theirs)
                    stack.pop_all()
        except (OSError, RuntimeError) as error:
            raise CallFailed(Code.UNAVAILABLE, f"no relay can be started: {error}") from None
        self._pipe = Pipe(ours)
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._calls: dict[int, _Answers] = {}
        self.ended = False
        self._reader = threading.Thread(target=self._read, name="logger-client-relay", daemon=True)
        try:
            self._reader.start()
        except RuntimeError as error:  # There are too many threads.
            self._pipe.close()
            self._process.kill()
            self._process.wait()
            raise CallFailed(Code.UNAVAILABLE, f"no relay can be started: {error}") from None

    def begin(self, kind: Kind, payload: bytes) -> RelayCall:
        """Begins a call."""
        answers: _Answers = queue.SimpleQueue()
        with self._lock:
            if self.ended:
                raise _lost()
            number = next(self._numbers)
            self._calls[number] = answers
        call = RelayCall(self, number, answers)
        try:
            call.send(kind, payload)
        except CallFailed:
            self.forget(number)
            raise
        return call

    def send(self, number: int, kind: Kind, payload: bytes) -> None:
        """Sends a frame of a call."""
        try:
            self._pipe.send(number, kind, payload)
        except OSError:
            raise _lost() from None

    def forget(self, number: int) -> bool:
        """Nobody wants to hear of a call any more; returns False if it had ended."""
        with self._lock:
            return self._calls.pop(number, None) is not None

    def end(self) -> None:
        """Ends the process."""
        self._pipe.shut_down()
        self._reader.join(_END_S)  # It ends by itself, once it has delivered what it has.

    def abandon(self) -> None:
        """Leaves it to the parent, whose it is."""
        self._pipe.abandon()

    def _read(self) -> None:
        while (frame := self._pipe.receive()) is not None:
            number, kind, payload = frame
            with self._lock:
                answers = self._calls.get(number) if kind is Kind.DATA else self._calls.pop(number, None)
            if answers is not None:
                answers.put(payload if kind is Kind.DATA else unpack_failure(payload) if kind is Kind.FAILED else None)
        with self._lock:
            self.ended = True
            left = list(self._calls.values())
            self._calls.clear()
        for answers in left:
            answers.put(_lost())
        self._pipe.close()
        self._process.wait()


class RelayCall:
    """A call that a relay makes for us. Every method raises CallFailed."""

    def __init__(self, relay: Relay, number: int, answers: _Answers) -> None:
        self._relay = relay
        self._number = number
        self._answers = answers

    def send(self, kind: Kind, payload: bytes = b"") -> None:
        """Sends a frame of the call."""
        self._relay.send(self._number, kind, payload)

    def next(self, timeout_s: float | None) -> bytes | None:
        """Waits for the next answer; None: there are no more."""
        try:
            answer = self._answers.get(timeout=timeout_s)
        except queue.Empty:
            self.cancel()
            raise CallFailed(Code.DEADLINE_EXCEEDED, "the relay did not answer in time") from None
        if isinstance(answer, CallFailed):
            raise answer
        return answer

    def cancel(self) -> None:
        """Ends the call, if it has not ended; whoever waits for an answer is told."""
        if not self._relay.forget(self._number):
            return
        self._answers.put(CallFailed(CANCELLED, "the call was cancelled"))
        try:
            self.send(Kind.CANCEL)
        except CallFailed:
            pass


def _lost() -> CallFailed:
    return CallFailed(Code.UNAVAILABLE, "the relay process has ended")
