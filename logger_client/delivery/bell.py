"""Waiting for a change of what a lock guards, in a way that Ctrl-C cannot break."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Bell:
    """What a `threading.Condition` does. Its lock is not given away within a `with`, but between two of them.

    A Condition is Python code: Ctrl-C in it may leave the lock held, or let go of one that another thread holds.

    Args:
        lock: Guards what is waited for.
    """

    def __init__(self, lock: threading.Lock) -> None:
        self._lock = lock
        self._waiters: list[threading.Lock] = []

    def ring(self) -> None:
        """Wakes all who wait. Called with the lock held."""
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            waiter.release()

    def wait_for(self, predicate: Callable[[], bool], timeout_s: float | None = None) -> bool:
        """Waits until something is so, or the time is up; returns whether it is. Called without the lock.

        Args:
            predicate: Asked with the lock held, at first and after each ring.
            timeout_s: Seconds; None: as long as it takes.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            waiter = threading.Lock()
            waiter.acquire()
            with self._lock:
                if predicate():
                    return True
                self._waiters.append(waiter)
            left = -1.0 if deadline is None else max(0.0, min(deadline - time.monotonic(), threading.TIMEOUT_MAX))
            if not waiter.acquire(timeout=left):
                with self._lock:
                    if waiter in self._waiters:
                        self._waiters.remove(waiter)
                    return predicate()
