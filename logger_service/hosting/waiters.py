"""Those who wait until a number that only grows has reached theirs."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable


class Waiters:
    """Callbacks by the number they wait for. Its owner locks, and calls what `reached` returns without its lock."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._order = itertools.count()

    def __bool__(self) -> bool:
        return bool(self._heap)

    def add(self, number: int, callback: Callable[[], None]) -> None:
        """Has `callback` returned by `reached` once `number` is reached."""
        heapq.heappush(self._heap, (number, next(self._order), callback))

    def reached(self, number: int) -> list[Callable[[], None]]:
        """Removes and returns the callbacks of all numbers up to this one."""
        due = []
        while self._heap and self._heap[0][0] <= number:
            due.append(heapq.heappop(self._heap)[2])
        return due
