"""A thread that does things for others, who wait in a way that Ctrl-C may end and cannot break.

Locks and queues of C alone are used for that: Ctrl-C within an `Event`, which is Python code, may leave it locked.
"""

from __future__ import annotations

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
        name: What it is called.
        lock: Held while it does something for others.
        pause_s: When nobody wants anything for so long, it does what it does by itself.
        by_itself: That; called without the lock.
        has_ended: Asked after everything it did: whether it is to end.
    """

    def __init__(
        self,
        name: str,
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
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Starts it.

        Raises:
            RuntimeError: No thread can be started.
        """
        self._thread.start()

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
        if self._thread is threading.current_thread():
            errand.run(self._lock)
        else:
            self._errands.put(errand)
            deadline = float("inf") if timeout_s is None else time.monotonic() + timeout_s
            while not errand.wait(max(0.0, min(_LOOK_S, deadline - time.monotonic()))):
                if time.monotonic() >= deadline:
                    return False
                if not self._thread.is_alive():
                    if not errand.wait(0):  # It had ended before.
                        errand.run(self._lock)
                    break
        if errand.error is not None:
            raise errand.error
        return True

    def _run(self) -> None:
        while not self._has_ended():
            try:
                errand = self._errands.get(timeout=self._pause_s)
            except queue.Empty:
                errand = None
            if errand is None:
                self._by_itself()
            else:
                errand.run(self._lock)
