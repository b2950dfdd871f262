"""Waiting for a change, in a way that Ctrl-C cannot break."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Bell:
    """Wakes the threads that wait for something.

    What a `threading.Condition` does; but that is Python code, in which Ctrl-C may leave the lock held, or let go of
    one that another thread holds. Who waits here holds no lock at all: so a signal's handler may wait, too, on a thread
    that waits.
    """

    def __init__(self) -> None:
        self._waiters: dict[threading.Lock, None] = {}

    def ring(self) -> None:
        """Wakes all who wait. Called after the change, by one thread at a time: under the lock that guards it."""
        for waiter in list(self._waiters):
            if waiter.locked():  # A ring that Ctrl-C ended may have released it.
                waiter.release()
            self._waiters.pop(waiter, None)

    def wait_for(self, predicate: Callable[[], bool], timeout_s: float | None = None) -> bool:
        """Waits until something is so, or the time is up; returns whether it is.

        Args:
            predicate: Asked at first and after each ring, without a lock; once it is true, it is not asked again.
            timeout_s: Seconds; None: as long as it takes.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            waiter = threading.Lock()
            waiter.acquire()
            try:
                self._waiters[waiter] = None  # Before it is asked: no change can come unnoticed in between.
                if predicate():
                    return True
                left = -1.0 if deadline is None else max(0.0, min(deadline - time.monotonic(), threading.TIMEOUT_MAX))
                if not waiter.acquire(timeout=left):
                    return predicate()
            finally:
                self._waiters.pop(waiter, None)
