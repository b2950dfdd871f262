"""Calls through a relay as its user sees them: how they end, and what happens where no relay can be started."""

from __future__ import annotations

import queue
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from logger_client.transports.base import CANCELLED, CallFailed
from logger_client.transports.relay import channel as channel_module
from logger_client.transports.relay import launch
from logger_client.transports.relay.channel import RelayChannel
from logger_client.transports.relay.frames import Kind, Pipe
from logger_client.transports.relay.shared import SharedRelay
from logger_service.contract.errors import Code

DEADLINE_S = 60.0


class Process:
    """The relay's process, which does what a test does."""

    def __init__(self, end: socket.socket) -> None:
        self.pipe = Pipe(end.dup())
        self.calls: list[str] = []

    def receive(self) -> tuple[int, Kind]:
        frame = self.pipe.receive()
        assert frame is not None
        return frame[:2]

    def kill(self) -> None:
        self.calls.append("kill")

    def wait(self) -> None:
        self.calls.append("wait")


class Relays:
    """Those that were started."""

    def __init__(self) -> None:
        self.started: list[Process] = []
        self.error: Exception | None = None

    def start(self, end: socket.socket) -> Process:
        if self.error is not None:
            raise self.error
        self.started.append(Process(end))
        return self.started[-1]


@pytest.fixture
def relays(monkeypatch) -> Iterator[Relays]:
    relays = Relays()
    monkeypatch.setattr(launch, "start", relays.start)
    monkeypatch.setattr(channel_module, "SHARED", SharedRelay())
    yield relays
    for process in relays.started:
        process.pipe.shut_down()
        process.pipe.close()


@pytest.fixture
def channel(relays) -> Iterator[RelayChannel]:
    channel = RelayChannel("server")
    yield channel
    for process in relays.started:
        process.pipe.shut_down()  # Or the end of the relay would be waited for.
    channel.close()


class Caller:
    """Makes a call on a thread of its own."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._outcome: queue.SimpleQueue[object] = queue.SimpleQueue()
        self._work = work
        threading.Thread(target=self._run).start()

    def _run(self) -> None:
        try:
            self._outcome.put(self._work())
        except Exception as error:
            self._outcome.put(error)

    @property
    def outcome(self) -> object:
        return self._outcome.get(timeout=DEADLINE_S)

    @property
    def code(self) -> int:
        error = self.outcome
        assert isinstance(error, CallFailed)
        return error.code


def refuse_threads(monkeypatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)


def test_a_call(relays, channel):
    channel_module.SHARED.relay(channel)
    caller = Caller(lambda: channel.call("method", b"request", DEADLINE_S))
    number, kind = relays.started[0].receive()
    assert kind is Kind.CALL
    relays.started[0].pipe.send(number, Kind.DATA, b"answer")
    relays.started[0].pipe.send(number, Kind.END)
    assert caller.outcome == b"answer"
    assert channel._open == set()


def test_a_relay_that_does_not_answer_in_time(relays, channel, monkeypatch):
    monkeypatch.setattr(channel_module, "_GRACE_S", 0.0)
    with pytest.raises(CallFailed, match="the relay did not answer in time") as raised:
        channel.call("method", b"request", 0.01)
    assert raised.value.code == Code.DEADLINE_EXCEEDED
    assert [relays.started[0].receive() for _ in range(2)] == [(1, Kind.CALL), (1, Kind.CANCEL)]
    assert channel._open == set()


def test_closing_ends_its_calls_at_once_and_no_others(relays, channel):
    """Another logger of the process still uses the relay."""
    other = RelayChannel("server")
    stream = other.open_stream("method", iter(()))
    [process] = relays.started
    caller = Caller(lambda: other.call("method", b"request", DEADLINE_S))
    kept = Caller(lambda: channel.call("method", b"request", DEADLINE_S))
    frames = [process.receive() for _ in range(4)]
    assert sorted(kind for _, kind in frames) == [Kind.CALL, Kind.CALL, Kind.OPEN, Kind.END]
    other.close()
    assert caller.code == CANCELLED
    with pytest.raises(CallFailed, match="cancelled"):
        next(iter(stream))
    cancelled = [process.receive() for _ in range(2)]
    assert {kind for _, kind in cancelled} == {Kind.CANCEL}
    [number] = {number for number, _ in frames} - {number for number, _ in cancelled}
    process.pipe.send(number, Kind.DATA, b"answer")
    process.pipe.send(number, Kind.END)
    assert kept.outcome == b"answer"


def test_a_closed_channel_starts_no_relay(relays, channel):
    channel.close()
    for work in (lambda: channel.call("method", b"", 1.0), lambda: channel.open_stream("method", iter(()))):
        with pytest.raises(CallFailed, match="closed") as raised:
            work()
        assert raised.value.code == CANCELLED
    assert relays.started == []


def test_a_call_that_begins_while_its_channel_is_closed_is_cancelled(relays, channel):
    other = RelayChannel("server")
    shared = channel_module.SHARED
    taken = shared.relay(other)

    class Closing:
        def begin(self, kind: Kind, payload: bytes):
            call = taken.begin(kind, payload)
            other.close()
            return call

    shared.join(channel)
    shared.relay = lambda user: Closing()
    with pytest.raises(CallFailed, match="closed"):
        other.call("method", b"", DEADLINE_S)
    assert [relays.started[0].receive() for _ in range(2)] == [(1, Kind.CALL), (1, Kind.CANCEL)]


@pytest.mark.parametrize(
    "error", [OSError("no memory"), RuntimeError("can't create new thread at interpreter shutdown")]
)
def test_no_relay_can_be_started(relays, channel, error):
    relays.error = error
    with pytest.raises(CallFailed, match=f"no relay can be started: {error}") as raised:
        channel.call("method", b"", 1.0)
    assert raised.value.code == Code.UNAVAILABLE
    relays.error = None
    channel.open_stream("method", iter(()))
    assert len(relays.started) == 1, "it is tried again"


def test_without_sockets_no_relay_can_be_started(relays, channel, monkeypatch):
    def refuse() -> None:
        raise OSError("too many open files")

    monkeypatch.setattr(socket, "socketpair", refuse)
    with pytest.raises(CallFailed, match="too many open files"):
        channel.call("method", b"", 1.0)


def test_a_relay_without_a_reader_is_ended_and_waited_for(relays, channel, monkeypatch):
    with monkeypatch.context() as patch:
        refuse_threads(patch)
        with pytest.raises(CallFailed, match="can't start new thread") as raised:
            channel.call("method", b"", 1.0)
    assert raised.value.code == Code.UNAVAILABLE
    [process] = relays.started
    assert process.calls == ["kill", "wait"]
    assert process.pipe.receive() is None, "the pipe was closed"


def test_a_stream_without_a_thread_that_sends_is_cancelled(relays, channel, monkeypatch):
    shared = channel_module.SHARED
    shared.relay(channel)
    with monkeypatch.context() as patch:
        refuse_threads(patch)
        with pytest.raises(CallFailed, match="can't start new thread") as raised:
            channel.open_stream("method", iter(()))
    assert raised.value.code == Code.UNAVAILABLE
    assert [relays.started[0].receive() for _ in range(2)] == [(1, Kind.OPEN), (1, Kind.CANCEL)]
    assert channel._open == set()


def test_a_relay_that_dies_ends_its_calls_and_leaves_nothing_open(relays, channel):
    relay = channel_module.SHARED.relay(channel)
    caller = Caller(lambda: channel.call("method", b"", DEADLINE_S))
    [process] = relays.started
    process.receive()
    process.pipe.shut_down()
    assert caller.code == Code.UNAVAILABLE
    relay._reader.join()
    assert relay._pipe._socket.fileno() == -1
    assert process.calls == ["wait"]
    with pytest.raises(CallFailed, match="has ended"):
        relay.begin(Kind.CALL, b"")
