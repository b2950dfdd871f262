"""Writes what is logged in the process that logs, without a host: the sink of direct loggers.

`log_*` appends to memory. A thread writes what is there every second, or as soon as there is enough of it, and when
somebody flushes, shuts down or ends the interpreter, who waits for it: so Ctrl-C ends the waiting, and leaves nothing
half written. Several processes may log to one run: forked ones, copies, or loggers that follow one another; each writes
whole batches, under a lock.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from logger_service.backends import forks
from logger_service.backends.base import Backend
from logger_service.backends.direct_state import DirectState
from logger_service.backends.errands import ErrandThread
from logger_service.backends.run_lock import RunLock
from logger_service.contract.buffer import RecordBuffer
from logger_service.contract.errors import DeliveryError, LoggerClosedError
from logger_service.contract.groups import Taken, settle
from logger_service.contract.late import Late
from logger_service.contract.steps import StepCounters
from logger_service.contract.wire import encode_records
from logger_service.v1 import records_pb2

WRITE_AFTER_S = 1.0
"""How long what is logged stays in memory at most."""
WRITE_BYTES = 64 << 10
"""How much of it is written at once, without waiting for that time."""
MOST_BYTES = 1 << 20
"""With so much in memory, because the disk is slow or full, a call that logs writes itself, or raises."""

_INTERRUPTED = "a handler used the logger while it had interrupted a call of the same logger"

_log = logging.getLogger(__name__)


class DirectBackend(Backend, Protocol):
    """A backend to which several processes may write in turn."""

    def rows_of_others(self, batch: records_pb2.Batch) -> Mapping[tuple[str, str], int]:
        """Returns how many rows, by (kind, name), others have written since the last call.

        Those of the names that have automatic steps in a batch are all among them; others may come later.
        """
        ...

    def discard(self) -> None:
        """Forgets what is in its buffers."""
        ...


OpenBackend = Callable[["Mapping[str, int] | None", "Mapping[str, Any]"], DirectBackend]
"""Opens a backend with committed lengths and state."""


class DirectSink:
    """Takes what is logged and writes it with a backend. Thread-safe.

    Args:
        run_dir: The run's directory; made if missing.
        open_backend: Opens the backend.
    """

    _in_call: bool
    """Whether a call that logs is in progress, which holds the lock."""
    _is_asked: bool
    """Whether the thread was asked to write, and has not begun."""
    _started: bool
    """Whether this process has logged something, so that its thread runs."""

    def __init__(self, run_dir: str, open_backend: OpenBackend) -> None:
        os.makedirs(run_dir, exist_ok=True)
        self._buffer = RecordBuffer()
        self._steps = StepCounters()
        self._run_lock = RunLock(run_dir)
        self._state = DirectState(run_dir)
        with self._run_lock:
            lengths, state = self._state.load()
            self._backend = open_backend(lengths, state)
            found = self._backend.end_recovery()
        self._steps.load({**self._state.counts, **found.rows})
        self._refused: deque[str] = deque()
        self._unwritten = False
        self._failing = False
        self._ended = False
        self._finished = False
        self._prepare()
        forks.watch(self)

    # What is logged. The three calls do the same around what they add: to share it would cost as much as they do.

    def add_scalar(self, name: str, value: float, step: int | None) -> None:
        """Takes one value."""
        if self._buffer.size_bytes >= WRITE_BYTES or not self._started:
            self._make_room()
        with self._lock:
            if self._in_call or self._ended:
                raise self._refusal()
            self._in_call = True
            try:
                self._buffer.add_scalar(name, value, step, time.time_ns())
            finally:
                self._in_call = False

    def add_row(
        self,
        names: tuple[str, ...],
        values: list[float],
        step: int | None,
        texts: Sequence[tuple[str, str]] = (),
        late: Late | None = None,
    ) -> None:
        """Takes one row of metrics and its texts."""
        if self._buffer.size_bytes >= WRITE_BYTES or not self._started:
            self._make_room()
        with self._lock:
            if self._in_call or self._ended:
                raise self._refusal()
            self._in_call = True
            try:
                self._buffer.add_row(names, values, step, time.time_ns(), texts, late)
            finally:
                self._in_call = False

    def add_record(self, record: records_pb2.Record) -> None:
        """Takes a record of another kind."""
        if self._buffer.size_bytes >= WRITE_BYTES or not self._started:
            self._make_room()
        with self._lock:
            if self._in_call or self._ended:
                raise self._refusal()
            self._in_call = True
            try:
                self._buffer.add_record(record, record.ByteSize())
            finally:
                self._in_call = False

    def flush(self, timeout_s: float | None = None) -> None:
        """Writes all that was taken.

        Args:
            timeout_s: Seconds to wait; None: as long as it takes.

        Raises:
            OSError: It could not be written. It is kept, and written when that is possible.
            TimeoutError: It is not written yet.
            DeliveryError: Something was refused, or lost, since this was last raised.
        """
        self._have_done(self._write, timeout_s)
        self._raise_refused()

    def shutdown(self, timeout_s: float | None = None) -> None:
        """Writes and fsyncs all that was taken, notes where the files are, and closes them. Nothing may be added then.

        Args:
            timeout_s: Seconds to wait; None: as long as it takes.

        Raises:
            TimeoutError: It is not written yet. It will be, if the process lasts.
            DeliveryError: Not everything was written. The sink has ended nevertheless.
        """
        with self._lock:
            self._ended = True
        try:
            self._have_done(self._finish, timeout_s)
        except TimeoutError:
            raise
        except OSError as error:
            raise DeliveryError(f"what was logged last could not be written: {error}") from error
        finally:
            if self._finished:  # Not if Ctrl-C came first: then the end of the process waits for the thread.
                atexit.unregister(self._at_exit)
        self._raise_refused()

    def end_later(self) -> None:
        """Has the rest written, and ends. For the garbage collector, which may stand anywhere: takes no lock."""
        self._ended = True
        self._thread.wake()

    def _finish(self) -> None:
        if self._finished:
            return
        try:
            self._write()
        finally:
            self._finished = True
            try:
                with self._run_lock:
                    self._state.save(self._backend.checkpoint(), self._steps)
            finally:
                self._backend.close()

    def _raise_refused(self) -> None:
        refused = [self._refused.popleft() for _ in range(len(self._refused))]
        if refused:
            raise DeliveryError("not everything was written: " + "; ".join(dict.fromkeys(refused)))

    def _refusal(self) -> Exception:
        """Why a call cannot be taken. The lock is reentrant: the call in progress is one of this very thread."""
        return RuntimeError(_INTERRUPTED) if self._in_call else LoggerClosedError()

    # Writing

    def _make_room(self) -> None:
        """Called before something is added to a buffer that is large, or by a process that has added nothing so far."""
        if not self._started:
            self._start()
        if self._buffer.size_bytes >= MOST_BYTES:
            self._have_done(self._write, None)
        elif self._buffer.size_bytes >= WRITE_BYTES and not self._is_asked:
            self._is_asked = True
            self._thread.wake()

    def _write(self) -> None:
        """Writes what was taken; `_writing` is held."""
        if self._finished:
            return
        self._await_late()
        with self._run_lock:
            if self._unwritten:  # Before more is taken out of the buffer, whose size is bounded.
                self._backend.write()
                self._unwritten = False
            with self._lock:
                taken = self._buffer.take()
            if taken:
                self._unwritten = True
                self._apply(taken)
                self._backend.write()
                self._unwritten = False
        self._failing = False

    def _apply(self, taken: Taken) -> None:
        """Has the backend take, into its buffers, what was logged."""
        for why, points in settle(taken).items():
            self._refused.append(f"{points:,} {'point' if points == 1 else 'points'}: {why}")
        try:
            batch = records_pb2.Batch(records=encode_records(taken))
            self._steps.add(self._backend.rows_of_others(batch))
            self._steps.fill(batch)
            rejections = self._backend.apply(batch)
        except Exception as fault:  # What is in the buffers is written all the same, and whoever flushes is told.
            _log.exception("a fault of the logger")
            self._refused.append(f"a fault of the logger ({type(fault).__name__}: {fault})")
        else:
            self._refused.extend(rejection.message for rejection in rejections)

    def _await_late(self) -> None:
        """Waits for values that are late while no call and no other process has to wait too, and the rows are kept.

        Should they never come, settling says so.
        """
        with self._lock:
            late = self._buffer.late
        for values in late:
            with contextlib.suppress(RuntimeError):
                values.wait()

    def _have_done(self, work: Callable[[], None], timeout_s: float | None) -> None:
        """Has the thread do something, and waits until it is done.

        Raises:
            RuntimeError: This is a handler that interrupted a call.
            TimeoutError: It is not done yet.
            Exception: What it raised.
        """
        with self._lock:
            if self._in_call:  # The thread would wait for what that call holds.
                raise RuntimeError(_INTERRUPTED)
        if not self._started:
            self._start()
        if not self._thread.have_done(work, timeout_s):
            raise TimeoutError(f"not everything was written within {timeout_s:g} s; it is kept, and written later")

    def _write_by_itself(self) -> None:
        """Writes from time to time, and ends if nobody has the logger any more."""
        self._is_asked = False
        if not (self._buffer.size_bytes or self._unwritten or self._ended):
            return
        with self._writing:
            try:
                self._write()
            except Exception as error:  # The thread goes on; if it lasts, the next flush tells.
                if not self._failing:
                    unforeseen = not isinstance(error, OSError)
                    _log.error("what was logged cannot be written: %s", error, exc_info=unforeseen)
                self._failing = True
                return
            if self._ended and not self._finished:
                self._finish_by_itself()

    def _finish_by_itself(self) -> None:
        try:
            self._finish()
            self._raise_refused()
        except (OSError, DeliveryError) as error:
            _log.error("%s", error)
        atexit.unregister(self._at_exit)

    # Processes

    def _prepare(self) -> None:
        """Makes what belongs to one process alone."""
        # Reentrant, as the handler of a signal may log, flush or fork on the thread that it interrupts.
        self._in_call = False
        self._lock = threading.RLock()
        self._writing = threading.RLock()
        self._is_asked = False
        self._started = False
        self._thread = ErrandThread(self._writing, WRITE_AFTER_S, self._write_by_itself, lambda: self._finished)

    def _start(self) -> None:
        """Starts the thread, and has the end of the process write the rest."""
        with self._writing:
            if self._started:
                return
            self._thread.start()
            self._started = True
            atexit.register(self._at_exit)
            processes = sys.modules.get("multiprocessing.util")
            if processes is not None:  # Its forked workers end without running what atexit has.
                processes.Finalize(self, _end, args=(weakref.ref(self),), exitpriority=0)

    def _at_exit(self) -> None:
        try:
            self.shutdown()
        except DeliveryError as error:
            _log.error("%s", error)

    def fork_locks(self) -> Sequence[threading.RLock]:
        """What a fork has to hold."""
        return () if self._finished else (self._writing, self._lock)

    def begin_in_child(self) -> None:
        """Leaves to the parent what it has taken and not written, and what it has begun to end."""
        if self._finished:
            return
        if self._started:
            atexit.unregister(self._at_exit)
        self._buffer.take()
        self._backend.discard()
        self._unwritten = False
        self._refused.clear()
        self._finished = self._ended
        self._prepare()


def _end(sink: weakref.ref[DirectSink]) -> None:
    alive = sink()
    if alive is not None:
        alive._at_exit()
