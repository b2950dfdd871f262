"""A thread that does things for others, who wait in a way that Ctrl-C may end and cannot break.

Locks, queues and threads of C alone are used for that: Ctrl-C within a `threading.Event` or the start of a
`threading.Thread`, which are Python code, may leave the one locked and the other started twice.
"""

from __future__ import annotations

import _thread
import os
import queue
import threading
import time
from collections.abc import Callable

_LOOK_S = 1.0


class _Errand:
    """Something to do."""

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


class ErrandThread:
    """The thread, which does not outlive its process.

    Args:
        lock: Held while it does something for others.
        pause_s: When nobody wants anything for so long, it does what it does by itself.
        by_itself: That; called without the lock.
        has_ended: Asked after everything it did: whether it is to end.
    """

    def __init__(
        self,
        lock: threading.RLock,
        pause_s: float,
        by_itself: Callable[[], None],
        has_ended: Callable[[], bool],
    ) -> None:
        self._lock = lock
        self._pause_s = pause_s
        self._by_itself = by_itself
        self._has_ended = has_ended
        self._errands: queue.SimpleQueue[_Errand | None] = queue.SimpleQueue()
        self._alone = threading.Lock()
        self._ident = 0
        self._pid = 0
        self._is_over = False

    def start(self) -> None:
        """Starts it. If Ctrl-C broke that off, it may be called again.

        Raises:
            RuntimeError: No thread can be started.
        """
        self._pid = os.getpid()
        _thread.start_new_thread(self._run, ())

    def wake(self) -> None:
        """Has it do now what it does by itself. May be called anywhere, even while the garbage is collected."""
        self._errands.put(None)

    def have_done(self, work: Callable[[], None], timeout_s: float | None) -> bool:
        """Has something done, and waits for it.

        Args:
            work: What to do, with the lock held.
            timeout_s: Seconds to wait; None: as long as it takes.

        Returns:
            Whether it is done. If not, it will be.

        Raises:
            Exception: What it raised.
        """
        errand = _Errand(work)
        if self._ident == threading.get_ident():
            errand.run(self._lock)
        else:
            self._errands.put(errand)
            deadline = float("inf") if timeout_s is None else time.monotonic() + timeout_s
            while not errand.wait(max(0.0, min(_LOOK_S, deadline - time.monotonic()))):
                if time.monotonic() >= deadline:
                    return False
                if self._is_over or self._pid != os.getpid():
                    if not errand.wait(0):  # It had ended before.
                        errand.run(self._lock)
                    break
        if errand.error is not None:
            raise errand.error
        return True

    def _run(self) -> None:
        if not self._alone.acquire(blocking=False):  # It was started twice.
            return
        self._ident = threading.get_ident()
        try:
            self._work()
        finally:
            self._ident, self._is_over = 0, True

    def _work(self) -> None:
        while not self._has_ended():
            try:
                errand = self._errands.get(timeout=self._pause_s)
            except queue.Empty:
                errand = None
            if errand is None:
                self._by_itself()
            else:
                errand.run(self._lock)
