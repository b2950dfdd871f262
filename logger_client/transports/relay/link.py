"""The relay as the process that uses it sees it: the other process, and the calls that it makes for us."""

from __future__ import annotations

import itertools
import os
import queue
import socket
import subprocess
import sys
import threading
from typing import TypeAlias

import logger_client
from logger_client.transports.base import CallFailed
from logger_client.transports.relay.frames import Kind, Pipe, unpack_failure

_CANCELLED, _DEADLINE_EXCEEDED, _UNAVAILABLE = 1, 4, 14
_END_S = 1.0
_CODE = "from logger_client.transports.relay.process import main; main()"

_Answers: TypeAlias = "queue.SimpleQueue[bytes | CallFailed | None]"
"""Answers of a call, and how it ended: None, or its failure."""


class Relay:
    """The other process.

    Raises:
        CallFailed: It cannot be started.
    """

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self._process = _start(theirs)
        except (OSError, RuntimeError) as error:  # RuntimeError: the interpreter ends.
            ours.close()
            raise CallFailed(_UNAVAILABLE, f"no relay can be started: {error}") from None
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
            raise CallFailed(_UNAVAILABLE, str(error)) from None

    def begin(self, kind: Kind, payload: bytes) -> RelayCall:
        """Begins a call."""
        answers: _Answers = queue.SimpleQueue()
        with self._lock:
            number = next(self._numbers)
            self._calls[number] = answers
            if self.ended:
                self._calls.clear()
                raise _lost()
        call = RelayCall(self, number, answers)
        call.send(kind, payload)
        return call

    def send(self, number: int, kind: Kind, payload: bytes) -> None:
        """Sends a frame of a call."""
        try:
            self._pipe.send(number, kind, payload)
        except OSError:
            raise _lost() from None

    def forget(self, number: int) -> None:
        """Nobody wants to hear of a call any more."""
        with self._lock:
            self._calls.pop(number, None)

    def end(self) -> None:
        """Ends the process."""
        self._pipe.shut_down()
        self._reader.join(_END_S)  # It ends by itself, once it has delivered what it has.

    def abandon(self) -> None:
        """Leaves it to the parent, whose it is."""
        self._pipe.close()

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
            raise CallFailed(_DEADLINE_EXCEEDED, "the relay did not answer in time") from None
        if isinstance(answer, CallFailed):
            raise answer
        return answer

    def cancel(self) -> None:
        """Ends the call; whoever waits for an answer is told."""
        self._relay.forget(self._number)
        self._answers.put(CallFailed(_CANCELLED, "the call was cancelled"))
        try:
            self.send(Kind.CANCEL)
        except CallFailed:
            pass


def _lost() -> CallFailed:
    return CallFailed(_UNAVAILABLE, "the relay process has ended")


def _start(end: socket.socket) -> subprocess.Popen[bytes]:
    """Starts the process, which finds what this one finds, with the socket as its standard input."""
    home = os.path.dirname(os.path.dirname(os.path.abspath(logger_client.__file__)))
    path = [home, *(os.path.abspath(entry) for entry in sys.path if entry)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    environment.pop("GRPC_ENABLE_FORK_SUPPORT", None)
    spawn = sys.modules.get("multiprocessing.spawn")
    executable = spawn.get_executable() if spawn is not None else sys.executable
    return subprocess.Popen(
        [executable, "-c", _CODE],
        stdin=end.fileno(),
        stdout=subprocess.DEVNULL,
        env=environment,
        # What a terminal sends to the whole group is not for the relay: the child may still have something to deliver.
        start_new_session=True,
    )
