"""Where the caller's part of logging ends: a bounded buffer between the threads that log and the one that sends.

A call costs one lock and an append. The sender is woken when the buffer stops being empty and when it has become large;
in between it wakes by itself, so that a call need not.
"""

from __future__ import annotations

import enum
import logging
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import methodcaller
from time import time_ns
from types import FrameType
from typing import Literal

from logger_client.delivery.bell import Bell
from logger_client.delivery.receipt import Receipt
from logger_service.contract.buffer import RecordBuffer
from logger_service.contract.errors import LoggerClosedError
from logger_service.contract.groups import Taken
from logger_service.contract.late import Late
from logger_service.v1 import records_pb2

_log = logging.getLogger("logger_client")

OnFull = Literal["wait", "drop"]

SEAL_BYTES = 256 << 10
"""A buffer of this size is sent at once: some 10,000 scalars, or 32,000 values that are logged by the hundred."""
LINGER_S = 0.02
"""How long a smaller one waits for more."""
LINGER_UNACKNOWLEDGED_S = 1.0
"""How long it waits for more at most while something sent before is not acknowledged yet.

So a server that has more writers than it can answer at once is sent larger batches rather than more of them, as TCP
does by Nagle's algorithm.
"""
WARN_EVERY_S = 10.0
"""How often it is said that a buffer is full."""
_LOOK_S = 0.05  # How long to wait for a lock that this thread seems to hold itself.
_IDLE_S = 5.0  # How often a sleeping sender looks by itself: Ctrl-C may have come between asking and waking it.
_RECORD_BYTES = 64  # More than what a record of a text needs beside name and text.


class _State(enum.Enum):
    OPEN = enum.auto()
    FAILED = enum.auto()
    CLOSED = enum.auto()


@dataclass(frozen=True, slots=True)
class Sealed:
    """What is to be sent next; nothing is added to it any more."""

    ordinal: int
    """1, 2, 3 …"""
    content: Taken
    """What a `RecordBuffer` gave away."""
    points: int
    """How many points it holds."""
    size_bytes: int
    """How much room of the recorder it takes."""
    dropped: int
    """How many points were dropped since the one before."""
    receipt: Receipt | None = None
    """Who waits until it is applied; None: nobody."""


def _nothing() -> None:
    """What is done before the first thing is logged, unless somebody says otherwise."""


class Recorder:
    """A `RecordSink` for a sender. Thread-safe.

    What is not acknowledged counts against `max_buffer_bytes`, wherever it is: open here, sealed here, or with the
    sender, which gives its room back with `release`.

    Args:
        run_name: What the run is called, for messages.
        max_record_bytes: How large a record may be.
        max_buffer_bytes: How much may be held.
        on_full: What to do beyond it: let callers wait, or drop what they log.

    Attributes:
        on_first: To be set: called once, before the first thing is logged, by the thread that logs it. If it raises,
            the call does, and nothing is logged.
    """

    def __init__(self, run_name: str, *, max_record_bytes: int, max_buffer_bytes: int, on_full: OnFull) -> None:
        self.max_record_bytes = max_record_bytes
        self._run_name = run_name
        self._max_buffer_bytes = max_buffer_bytes
        self._resume_bytes = max(1, min(max_buffer_bytes // 8, SEAL_BYTES))
        self._on_full = on_full
        self.on_first: Callable[[], None] = _nothing
        self._state = _State.OPEN
        self._begin()

    def _begin(self) -> None:
        """Makes everything that belongs to one process, with nothing logged."""
        # Taken by `with` alone: between an `acquire()` and the `try` that follows it, Ctrl-C would leave it held.
        self._lock = threading.Lock()
        self._locked = self._lock.locked
        self._room = Bell()
        self._content = Bell()
        self._buffer = RecordBuffer()
        self._started = False
        # Every call must go the long way: it is the first one, the buffer is full, or it is not open.
        self._attended = True
        self._full = False
        self._seal_bytes = min(SEAL_BYTES, self._max_buffer_bytes)
        self._wake_bytes = 0  # From which size on the sender is woken; 0 while it sleeps.
        self._held_bytes = 0
        self._sealed: list[Sealed] = []
        self._ordinal = 0
        self._sealed_points = 0
        self._dropped = 0
        self._dropped_in_all = 0
        self._undelivered = 0
        self._warned_at = float("-inf")
        self._close_asked = False

    def begin_in_child(self) -> None:
        """Begins anew in a forked child: what was logged before is the parent's to send.

        Locks may be held by threads that the child does not have.
        """
        if self._state is _State.FAILED:
            self._state = _State.OPEN
        self._begin()

    # What is logged.

    def add_scalar(self, name: str, value: float, step: int | None) -> None:
        """Takes one value."""
        now = time_ns()
        if self._locked():
            self._refuse_own()
        with self._lock:
            if not self._attended:
                buffer = self._buffer
                buffer.add_scalar(name, value, step, now)
                if buffer.size_bytes >= self._wake_bytes:
                    self._wake_sender()
                return
        self._add_admitted(methodcaller("add_scalar", name, value, step, now), 1, 0)

    def add_row(
        self,
        names: tuple[str, ...],
        values: list[float],
        step: int | None,
        texts: Sequence[tuple[str, str]] = (),
        late: Late | None = None,
    ) -> None:
        """Takes one row of metrics, and texts of the same call."""
        now = time_ns()
        size = self.texts_bytes(texts) if texts else 0
        if self._locked():
            self._refuse_own()
        with self._lock:
            if not self._attended and size <= self._seal_bytes:
                buffer = self._buffer
                buffer.add_row(names, values, step, now, texts, late)
                if buffer.size_bytes >= self._wake_bytes:
                    self._wake_sender()
                return
        fill = methodcaller("add_row", names, values, step, now, texts, late)
        self._add_admitted(fill, len(values) + len(texts), size)

    def add_record(self, record: records_pb2.Record) -> None:
        """Takes a record of another kind.

        Raises:
            ValueError: It is larger than the server allows.
        """
        size = self.record_bytes(record)
        if self._locked():
            self._refuse_own()
        with self._lock:
            if not self._attended and size <= self._seal_bytes:
                buffer = self._buffer
                buffer.add_record(record, size)
                if buffer.size_bytes >= self._wake_bytes:
                    self._wake_sender()
                return
        self._add_admitted(methodcaller("add_record", record, size), 1, size)

    def add_at_once(
        self,
        fill: Callable[[RecordBuffer], object],
        receipt: Receipt,
        *,
        points: int,
        size_bytes: int,
        timeout_s: float,
    ) -> bool:
        """Takes what one call logs, to be sent without lingering, in the order of the calls.

        Args:
            fill: Puts it into the buffer.
            receipt: Told what becomes of it.
            points: How many points it is.
            size_bytes: How large it is, but for metrics.
            timeout_s: How long to wait for room where that is the policy.

        Returns:
            Whether it was taken; else it was dropped, or counted as undelivered.

        Raises:
            TimeoutError: There was no room in time: nothing was logged.
        """
        if self._locked():
            self._refuse_own()
        return self._add_admitted(fill, points, size_bytes, timeout_s, receipt)

    def texts_bytes(self, texts: Sequence[tuple[str, str]]) -> int:
        """Returns how large texts are as records.

        Raises:
            ValueError: One of them is larger than the server allows.
        """
        sizes = {
            name: len(name.encode()) + len(text.encode(errors="surrogatepass")) + _RECORD_BYTES for name, text in texts
        }
        return sum(self._checked_size(size, f"text {name!r}") for name, size in sizes.items())

    def record_bytes(self, record: records_pb2.Record) -> int:
        """Returns how large a record is.

        Raises:
            ValueError: It is larger than the server allows.
        """
        kind = record.WhichOneof("kind") or "record"
        name = getattr(getattr(record, kind, None), "name", None)
        return self._checked_size(record.ByteSize(), kind if name is None else f"{kind} {name!r}")

    def _checked_size(self, size: int, what: str) -> int:
        if size > self.max_record_bytes:
            raise ValueError(
                f"the {what} has {size:,} bytes; the server allows at most {self.max_record_bytes:,} in a record"
            )
        return size

    def _refuse_own(self) -> None:
        """Called where the lock is held by somebody: returns unless that is this very thread, which waited for ever.

        Raises:
            RuntimeError: A signal handler, or a log handler, called while this thread was in a call that logs.
        """
        if self._is_in_call():
            time.sleep(_LOOK_S)  # It may as well be another thread's, and that call not have got so far.
            if self._locked():
                raise RuntimeError("a handler used the logger while it had interrupted a call of the same logger")

    def _is_in_call(self) -> bool:
        """Whether this thread has been interrupted in a call that takes the lock."""
        frame: FrameType | None = sys._getframe(3)
        while frame is not None:
            if frame.f_code in _HOLDERS and frame.f_locals.get("self") is self:
                return True
            frame = frame.f_back
        return False

    def _add_admitted(
        self,
        fill: Callable[[RecordBuffer], object],
        points: int,
        size: int,
        timeout_s: float | None = None,
        receipt: Receipt | None = None,
    ) -> bool:
        """Adds what a call logs once it may be; waits for room where that is the policy, without the lock.

        Returns:
            Whether it was added.
        """
        begun = time.monotonic()
        while True:
            with self._lock:
                admitted = self._admit(points, size)
                if admitted:
                    fill(self._buffer)
                    if receipt is None:
                        if self._buffer.size_bytes >= self._wake_bytes:
                            self._wake_sender()
                    elif self._buffer.size_bytes:
                        self._seal(receipt)
                        self._content.ring()
                    else:
                        receipt.settle()
                if admitted is not None:
                    return admitted
                self._seal()
                self._content.ring()
            self._wait_for_room(size, begun, timeout_s)

    def _wait_for_room(self, size: int, begun: float, timeout_s: float | None) -> None:
        """Waits until something is given back, or for a while."""
        waited_s = time.monotonic() - begun
        if timeout_s is not None and waited_s >= timeout_s:
            raise TimeoutError(f"nothing was logged: {self._how_full()}")
        if waited_s >= WARN_EVERY_S:
            self._warn("logging waits for room")
        self._room.wait_for(
            lambda: self._state is not _State.OPEN or self._has_room(size),
            WARN_EVERY_S if timeout_s is None else min(WARN_EVERY_S, timeout_s - waited_s),
        )

    # Called with the lock held.

    def _admit(self, points: int, size: int) -> bool | None:
        """Whether what is about to be logged may be; None: once there is room."""
        if not self._started and self._state is _State.OPEN:
            self.on_first()
            self._started = True
            self._update()
        if self._state is _State.CLOSED:
            raise LoggerClosedError
        if self._state is _State.FAILED:
            self._undelivered += points
            return False
        if self._has_room(size):
            return True
        if self._on_full == "drop":
            self._drop(points)
            return False
        return None

    def _has_room(self, size: int) -> bool:
        held = self._held_bytes + self._buffer.size_bytes
        # What is larger than all the room there is goes alone.
        return not self._full and (size == 0 or held == 0 or held + size <= self._max_buffer_bytes)

    def _drop(self, points: int) -> None:
        self._dropped += points
        self._dropped_in_all += points
        self._warn(f"{self._dropped_in_all:,} points were dropped so far")

    def _warn(self, what: str) -> None:
        now = time.monotonic()
        if now - self._warned_at >= WARN_EVERY_S:
            self._warned_at = now
            _log.warning("%s; %s", self._how_full(), what)

    def _how_full(self) -> str:
        return (
            f"the buffer of run {self._run_name} is full: {self._held_bytes:,} bytes are not acknowledged by the server"
        )

    def _wake_sender(self) -> None:
        if self._buffer.size_bytes >= self._seal_bytes:
            self._seal()
        self._wake_bytes = self._seal_bytes
        self._content.ring()

    def _seal(self, receipt: Receipt | None = None, *, last_word: bool = False) -> None:
        """Seals what there is. A count of dropped points travels with what follows, or, as the last word, by itself."""
        buffer = self._buffer
        size = buffer.size_bytes
        if not size and not (last_word and self._dropped):
            return
        points = buffer.points
        sealed = Sealed(self._ordinal + 1, buffer.content, points, size, self._dropped, receipt)
        following = buffer.following()
        # No call from here on: Ctrl-C comes with one, and would leave this sealed twice or not at all.
        self._sealed += [sealed]
        self._buffer = following
        self._ordinal += 1
        self._sealed_points += points
        self._held_bytes += size
        self._dropped = 0
        self._update()

    def _update(self) -> None:
        room = self._max_buffer_bytes - self._held_bytes
        if self._full:
            self._full = room < self._resume_bytes
        else:
            self._full = room <= 0
        self._seal_bytes = max(1, min(SEAL_BYTES, room))
        if self._wake_bytes:
            self._wake_bytes = self._seal_bytes
        self._attended = self._full or self._state is not _State.OPEN or not self._started

    # The sender's side.

    def take(self) -> list[Sealed] | None:
        """Waits until there is something, lingers for more, and returns what is to be sent; None: nothing will come."""
        while not self._content.wait_for(self._may_take, _IDLE_S):
            pass
        if self._state is _State.OPEN:
            self._linger()
        with self._lock:
            if not self._sealed:
                self._seal()
            sealed, self._sealed = self._sealed, []
            return sealed or None

    def _may_take(self) -> bool:
        """Whether there is something to take, or nothing will come. If not, the next thing logged rings."""
        with self._lock:
            if self._close_asked:
                self._close_asked = False
                self._end(_State.CLOSED)
            if self._sealed or self._buffer.size_bytes:
                self._wake_bytes = self._seal_bytes
                return True
            self._wake_bytes = 0
            return self._state is not _State.OPEN

    def _linger(self) -> None:
        def is_enough() -> bool:
            return bool(self._sealed) or self._state is not _State.OPEN

        if not self._content.wait_for(is_enough, LINGER_S):
            more_s = LINGER_UNACKNOWLEDGED_S - LINGER_S
            self._content.wait_for(lambda: is_enough() or not self._held_bytes, more_s)

    def release(self, size_bytes: int) -> None:
        """Gives back room: something is acknowledged, or turned out to be smaller."""
        with self._lock:
            self._held_bytes -= size_bytes
            self._update()
            if not self._full:
                self._room.ring()
            if not self._held_bytes:
                self._content.ring()

    def forget(self, points: int) -> None:
        """Points that were sealed turned out to have no values."""
        with self._lock:
            self._sealed_points -= points

    def seal(self) -> int:
        """Has the sender take at once what there is.

        Returns:
            The ordinal of the last thing sealed; 0: nothing was ever logged.
        """
        if self._locked():
            self._refuse_own()
        with self._lock:
            self._seal(last_word=True)
            self._content.ring()
            return self._ordinal

    @property
    def sealed_in_all(self) -> tuple[int, int]:
        """The last ordinal, and how many points were sealed up to it; no longer so when it is read, for messages."""
        return self._ordinal, self._sealed_points

    def close(self) -> None:
        """From now on every call raises LoggerClosedError; what was logged is still sent."""
        if self._locked():
            self._refuse_own()
        with self._lock:
            self._end(_State.CLOSED)

    def close_later(self) -> None:
        """As `close`, but never waits for its own thread: a garbage collection may call it on the one in a call."""
        if self._locked():
            self._close_asked = True
        else:
            with self._lock:
                self._end(_State.CLOSED)

    def put_back(self, taken: list[Sealed]) -> None:
        """What was taken cannot be sent."""
        with self._lock:
            self._sealed[:0] = taken

    def fail(self, why: str) -> None:
        """From now on what is logged is only counted, as undelivered. So is what has not been taken."""
        with self._lock:
            self._undelivered += self._buffer.points
            self._buffer.take()
            for sealed in self._sealed:
                if sealed.receipt is not None and sealed.receipt.refuse(why):
                    sealed.receipt.settle()
                else:
                    self._undelivered += sealed.points
            self._sealed.clear()
            self._end(_State.FAILED)

    def take_undelivered(self) -> int:
        """Returns how many points were logged in vain since the last call."""
        with self._lock:
            undelivered, self._undelivered = self._undelivered, 0
            return undelivered

    def _end(self, state: _State) -> None:
        if self._state in (_State.OPEN, _State.FAILED):
            self._state = state
        self._seal(last_word=True)
        self._update()
        self._content.ring()
        self._room.ring()


_HOLDERS = frozenset(
    getattr(Recorder, name).__code__
    for name in (
        *("add_scalar", "add_row", "add_record", "add_at_once", "seal", "close", "close_later", "take_undelivered"),
        *("take", "_may_take", "release", "forget", "put_back", "fail"),
    )
)
"""What holds the lock while Python code runs, in which a signal handler or a finalizer may be called."""
