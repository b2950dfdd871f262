"""Wakes tasks of the event loop from the host's threads: however many streams got on, one wake-up of the loop."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable


class Wakeups:
    """Calls functions on the event loop on behalf of other threads.

    A group commit lets hundreds of streams get on at once. Waking the loop costs a system call, so it is done for the
    first of them only; the others wait in a queue until the loop comes.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._due: deque[Callable[[], None]] = deque()
        self._underway = threading.Lock()
        """Held while the loop has been told and has not come yet."""

    def notify(self, wake: Callable[[], None]) -> None:
        """Has `wake` called on the loop soon. From any thread; after the loop was closed it does nothing."""
        self._due.append(wake)
        if self._underway.acquire(blocking=False):
            try:
                self._loop.call_soon_threadsafe(self._run)
            except RuntimeError:
                # The loop is closed: nobody is left to be woken. The lock stays held, so that nobody tries again.
                self._due.clear()

    def _run(self) -> None:
        # Released before counting: what is not counted came after the release, and told the loop anew.
        self._underway.release()
        for _ in range(len(self._due)):
            self._due.popleft()()
