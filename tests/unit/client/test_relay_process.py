"""What the relay's process makes of frames: a failure of one call is told to that call, and the others go on."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from logger_client.transports.base import CANCELLED, CallFailed
from logger_client.transports.relay import process
from logger_client.transports.relay.frames import Head, Kind, Pipe, pack_call, unpack_failure
from logger_client.transports.relay.process import Bridge
from logger_service.contract.errors import Code

DEADLINE_S = 60.0


class Stream:
    """Answers as its method says."""

    def __init__(self, method: str, requests: Iterator[bytes]) -> None:
        self._method = method
        self._requests = requests
        self._cancelled = threading.Event()

    def __iter__(self) -> Iterator[bytes]:
        if self._method == "fail":
            raise CallFailed(Code.NOT_FOUND, "no run", b"details")
        if self._method == "fault":
            raise KeyError("nobody foresaw it")
        if self._method == "wait":
            assert self._cancelled.wait(DEADLINE_S)
            raise CallFailed(CANCELLED, "cancelled")
        yield from self._requests

    def cancel(self) -> None:
        self._cancelled.set()


class Channel:
    """A channel of the relay."""

    def __init__(self, target: str) -> None:
        if target == "bad":
            raise ValueError("no such target")

    def open_stream(self, method, requests, timeout_s=None, *, wait_for_host=False) -> Stream:
        if method == "refuse":
            raise CallFailed(Code.UNAVAILABLE, "can't start new thread")
        return Stream(method, requests)

    def close(self) -> None:
        pass


class Peer:
    """The end of the one who calls."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        ours.settimeout(DEADLINE_S)
        self.pipe = Pipe(ours)
        self.targets: list[str] = []
        self._theirs = Pipe(theirs)
        self.bridge = Bridge(self._theirs, self._open_channel)
        self.thread = threading.Thread(target=self.bridge.run)
        self.thread.start()

    def _open_channel(self, target: str) -> Channel:
        self.targets.append(target)
        return Channel(target)

    def begin(self, number: int, method: str, kind: Kind = Kind.CALL, target: str = "server") -> None:
        self.pipe.send(number, kind, pack_call(Head(target, method, 1.0, False), b"request"))

    def answers(self, count: int) -> list[tuple[int, Kind, bytes]]:
        return sorted(frame for frame in (self.pipe.receive() for _ in range(count)) if frame is not None)

    def end(self) -> None:
        self.pipe.shut_down()
        self.thread.join()
        self.pipe.close()
        self._theirs.close()


@pytest.fixture
def peer() -> Iterator[Peer]:
    peer = Peer()
    yield peer
    peer.end()


def assert_goes_on(peer: Peer, number: int = 1000) -> None:
    peer.begin(number, "echo")
    assert peer.answers(2) == [(number, Kind.DATA, b"request"), (number, Kind.END, b"")]


@pytest.mark.parametrize(
    ("begin", "code", "message"),
    [
        (lambda peer: peer.begin(1, "fail"), Code.NOT_FOUND, "no run"),
        (lambda peer: peer.begin(1, "refuse"), Code.UNAVAILABLE, "can't start new thread"),
        (lambda peer: peer.begin(1, "refuse", Kind.OPEN), Code.UNAVAILABLE, "can't start new thread"),
        (lambda peer: peer.begin(1, "fault"), Code.INTERNAL, "KeyError: 'nobody foresaw it'"),
        (lambda peer: peer.begin(1, "fault", Kind.OPEN), Code.INTERNAL, "KeyError: 'nobody foresaw it'"),
        (lambda peer: peer.begin(1, "echo", target="bad"), Code.INTERNAL, "ValueError: no such target"),
        (lambda peer: peer.pipe.send(1, Kind.OPEN, b"?"), Code.INTERNAL, "a fault of the relay"),
    ],
)
def test_a_failure_is_told_to_the_call_and_others_go_on(peer, begin: Callable[[Peer], None], code, message):
    begin(peer)
    [(number, kind, payload)] = peer.answers(1)
    failure = unpack_failure(payload)
    assert (number, kind, failure.code) == (1, Kind.FAILED, code)
    assert message in failure.message
    assert_goes_on(peer)


def test_without_a_thread_a_call_fails_and_others_go_on(peer, monkeypatch):
    class Refused(threading.Thread):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(process.threading, "Thread", Refused)
        peer.begin(1, "echo")
        [(number, kind, payload)] = peer.answers(1)
    assert (number, kind) == (1, Kind.FAILED)
    assert unpack_failure(payload).code == Code.UNAVAILABLE
    assert_goes_on(peer)


@pytest.mark.parametrize("kind", [Kind.CALL, Kind.OPEN])
def test_a_cancelled_call_ends_at_once(peer, kind):
    peer.begin(1, "wait", kind)
    peer.pipe.send(1, Kind.CANCEL)
    [(number, ended, payload)] = peer.answers(1)
    assert (number, ended, unpack_failure(payload).code) == (1, Kind.FAILED, CANCELLED)


def test_what_comes_for_a_call_that_has_ended_is_ignored(peer):
    peer.begin(1, "fail", Kind.OPEN)
    peer.answers(1)
    for kind in (Kind.DATA, Kind.END, Kind.CANCEL):
        peer.pipe.send(1, kind)
    assert_goes_on(peer)


def test_a_call_may_end_between_two_looks_at_it(peer, monkeypatch):
    """Its thread takes it out of the table while the relay reads a frame for it."""

    class Table(dict):
        def __contains__(self, number: object) -> bool:
            return number == 1 or super().__contains__(number)

    for name, value in list(vars(peer.bridge).items()):
        if value == {}:
            monkeypatch.setattr(peer.bridge, name, Table())
    peer.pipe.send(1, Kind.DATA, b"late")
    assert_goes_on(peer)


def test_calls_at_once_share_the_channel_of_their_target(peer):
    for number in range(1, 51):
        peer.begin(number, "echo")
    assert len(peer.answers(100)) == 100
    assert peer.targets == ["server"]


def test_a_stream_gets_its_requests_and_its_end(peer):
    peer.begin(1, "echo", Kind.OPEN)
    peer.pipe.send(1, Kind.DATA, b"one")
    peer.pipe.send(1, Kind.DATA, b"two")
    peer.pipe.send(1, Kind.END)
    answers = [peer.pipe.receive() for _ in range(3)]
    assert answers == [(1, Kind.DATA, b"one"), (1, Kind.DATA, b"two"), (1, Kind.END, b"")]
