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
import queue
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from logger_service.backends.base import Backend
from logger_service.backends.direct_state import DirectState
from logger_service.backends.run_lock import RunLock
from logger_service.contract.buffer import RecordBuffer
from logger_service.contract.errors import DeliveryError, LoggerClosedError
from logger_service.contract.groups import settle
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

    def discard(self) -> None:
        """Forgets what is in its buffers."""
        ...


OpenBackend = Callable[["Mapping[str, int] | None", "Mapping[str, Any]"], DirectBackend]
"""Opens a backend with committed lengths and state."""


class _Errand:
    """Something that the thread does for another one, which Ctrl-C may take away from waiting.

    Locks and queues of C alone are used for that: Ctrl-C within an `Event`, which is Python code, may leave it locked.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        self.error: Exception | None = None
        self._work = work
        self._undone = threading.Lock()
        self._undone.acquire()

    def run(self, lock: threading.RLock) -> None:
        """Does it."""
        try:
            with lock:
                self._work()
        except Exception as error:
            self.error = error
        self._undone.release()

    def wait(self, timeout_s: float) -> bool:
        """Waits until it is done; returns whether it is. Not to be called again once it is."""
        return self._undone.acquire(timeout=timeout_s)


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
        self._refused: list[str] = []
        self._unwritten = False
        self._failing = False
        self._ended = False
        self._finished = False
        self._prepare()
        with _forking:  # Which goes through them.
            _SINKS.add(self)

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

    def flush(self) -> None:
        """Writes all that was taken.

        Raises:
            OSError: It could not be written. It is kept, and written when that is possible.
            DeliveryError: The backend has refused something since this was last raised.
        """
        self._have_done(self._write)
        self._raise_refused()

    def shutdown(self) -> None:
        """Writes and fsyncs all that was taken, notes where the files are, and closes them. Nothing may be added then.

        Raises:
            DeliveryError: Not everything was written. The sink has ended nevertheless.
        """
        with self._lock:
            self._ended = True
        try:
            self._have_done(self._finish)
        except OSError as error:
            raise DeliveryError(f"what was logged last could not be written: {error.strerror or error}") from error
        finally:
            if self._finished:  # Not if Ctrl-C came first: then the end of the process waits for the thread.
                atexit.unregister(self._at_exit)
        self._raise_refused()

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
                self._run_lock.close()

    def _raise_refused(self) -> None:
        with self._writing:
            refused, self._refused = self._refused, []
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
            self._have_done(self._write)
        elif self._buffer.size_bytes >= WRITE_BYTES and not self._is_asked:
            self._is_asked = True
            self._errands.put(None)

    def _write(self) -> None:
        """Writes what was taken; `_writing` is held."""
        self._await_late()
        with self._run_lock:
            if self._unwritten:  # Before more is taken out of the buffer, whose size is bounded.
                self._backend.write()
                self._unwritten = False
            with self._lock:
                taken = self._buffer.take()
            if taken:
                self._refused += settle(taken)
                batch = records_pb2.Batch(records=encode_records(taken))
                self._steps.fill(batch)
                self._unwritten = True
                rejections = self._backend.apply(batch)
                self._refused += [rejection.message for rejection in rejections]
                self._backend.write()
                self._unwritten = False
        self._failing = False

    def _await_late(self) -> None:
        """Waits for values that are late while no call and no other process has to wait too, and the rows are kept.

        Should they never come, settling says so.
        """
        with self._lock:
            late = self._buffer.late
        for values in late:
            with contextlib.suppress(RuntimeError):
                values.wait()

    def _have_done(self, work: Callable[[], None]) -> None:
        """Has the thread do something, and waits until it is done.

        Raises:
            RuntimeError: This is a handler that interrupted a call.
            Exception: What it raised.
        """
        thread = self._thread
        with self._lock:
            if self._in_call:  # The thread would wait for what that call holds.
                raise RuntimeError(_INTERRUPTED)
        if thread is None or thread is threading.current_thread():
            with self._writing:
                work()
            return
        errand = _Errand(work)
        self._errands.put(errand)
        while not errand.wait(WRITE_AFTER_S):
            if not thread.is_alive() and not errand.wait(0):  # It had ended before.
                errand.run(self._writing)
        if errand.error is not None:
            raise errand.error

    def _run(self, errands: queue.SimpleQueue[_Errand | None]) -> None:
        """What the thread does: errands, and writing from time to time, until the sink has ended."""
        while not self._finished:
            try:
                errand = errands.get(timeout=WRITE_AFTER_S)
            except queue.Empty:
                errand = None
            if errand is not None:
                errand.run(self._writing)
            else:
                self._is_asked = False
                if self._buffer.size_bytes or self._unwritten:
                    self._write_by_itself()

    def _write_by_itself(self) -> None:
        with self._writing:
            if self._finished:
                return
            try:
                self._write()
            except Exception as error:  # The thread goes on; what it means, the next flush tells.
                if not self._failing:
                    unforeseen = not isinstance(error, OSError)
                    _log.error("what was logged cannot be written: %s", error, exc_info=unforeseen)
                self._failing = True

    # Processes

    def _prepare(self) -> None:
        """Makes what belongs to one process alone."""
        # Reentrant, as the handler of a signal may log, flush or fork on the thread that it interrupts.
        self._in_call = False
        self._lock = threading.RLock()
        self._writing = threading.RLock()
        self._errands: queue.SimpleQueue[_Errand | None] = queue.SimpleQueue()
        self._is_asked = False
        self._thread: threading.Thread | None = None
        self._started = False

    def _start(self) -> None:
        """Starts the thread, and has the end of the process write the rest."""
        with self._writing:
            if self._started or self._ended:
                return
            self._thread = threading.Thread(target=self._run, args=(self._errands,), name="direct-logger", daemon=True)
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

    def _lock_for_fork(self) -> None:
        self._writing.acquire()
        self._lock.acquire()

    def _unlock_after_fork(self) -> None:
        self._lock.release()
        self._writing.release()

    def _begin_in_child(self) -> None:
        """Leaves to the parent what it has taken and not written."""
        self._run_lock.close()
        if self._started:
            atexit.unregister(self._at_exit)
        self._buffer.take()
        self._backend.discard()
        self._unwritten = False
        self._refused = []
        self._prepare()


def _end(sink: weakref.ref[DirectSink]) -> None:
    alive = sink()
    if alive is not None:
        alive._at_exit()


_SINKS: weakref.WeakSet[DirectSink] = weakref.WeakSet()
_forking = threading.RLock()
"""Held from before a fork until after it: several threads may fork at once, and each has to let go of its locks."""
_locked: list[list[DirectSink]] = []
"""What the fork in progress has locked; more than one list only if a signal's handler forks while a fork begins."""


def _before_fork() -> None:
    _forking.acquire()
    sinks = [sink for sink in _SINKS if not sink._ended]
    _locked.append(sinks)
    for sink in sinks:
        sink._lock_for_fork()


def _after_in_parent() -> None:
    for sink in _locked.pop():
        sink._unlock_after_fork()
    _forking.release()


def _after_in_child() -> None:
    global _forking
    _forking = threading.RLock()
    for sink in _locked.pop():
        sink._begin_in_child()


os.register_at_fork(before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
