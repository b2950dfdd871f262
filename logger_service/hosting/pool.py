"""A few threads that run many resumable tasks, each at most once at a time, now or after a delay."""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable

_log = logging.getLogger(__name__)


class Task:
    """Work that is done in steps.

    `step` does a bounded part and says after how many seconds it wants to go on (None: when told).
    """

    __slots__ = ("_due", "_rerun", "_running", "step")

    def __init__(self, step: Callable[[], float | None]) -> None:
        self.step = step
        self._due: float | None = None
        self._running = False
        self._rerun: float | None = None


class TaskPool:
    """Runs tasks on `threads` daemon threads.

    Args:
        threads: How many.
        name: What the threads are called.
    """

    def __init__(self, threads: int, name: str) -> None:
        self._heap: list[tuple[float, int, Task]] = []
        self._order = itertools.count()
        self._changed = threading.Condition()
        self._closed = False
        self._threads = [threading.Thread(target=self._work, name=f"{name}-{i}", daemon=True) for i in range(threads)]
        for thread in self._threads:
            thread.start()

    def schedule(self, task: Task, delay_s: float = 0.0) -> None:
        """Asks for a step within `delay_s` seconds; an earlier date stands, a later one is brought forward."""
        due = time.monotonic() + delay_s
        with self._changed:
            if task._running:
                task._rerun = due if task._rerun is None else min(task._rerun, due)
            else:
                self._push(task, due)

    def _push(self, task: Task, due: float) -> None:
        if self._closed or (task._due is not None and task._due <= due):
            return
        task._due = due
        heapq.heappush(self._heap, (due, next(self._order), task))
        self._changed.notify()

    def close(self) -> None:
        """Lets running steps end and runs no more."""
        with self._changed:
            self._closed = True
            self._heap.clear()
            self._changed.notify_all()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()

    def _work(self) -> None:
        while (task := self._next()) is not None:
            try:
                delay = task.step()
            except Exception:  # a fault of one task must not take the thread, and so the other runs, with it
                _log.exception("a background task failed")
                delay = 5.0
            with self._changed:
                task._running = False
                due = task._rerun
                task._rerun = None
                if delay is not None:
                    wanted = time.monotonic() + delay
                    due = wanted if due is None else min(due, wanted)
                if due is not None:
                    self._push(task, due)

    def _next(self) -> Task | None:
        with self._changed:
            while not self._closed:
                while self._heap and self._heap[0][2]._due != self._heap[0][0]:
                    heapq.heappop(self._heap)  # it was brought forward since
                if not self._heap:
                    self._changed.wait()
                    continue
                due, _, task = self._heap[0]
                wait = due - time.monotonic()
                if wait > 0:
                    self._changed.wait(wait)
                    continue
                heapq.heappop(self._heap)
                task._due = None
                task._running = True
                return task
        return None
