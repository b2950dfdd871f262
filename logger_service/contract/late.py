"""The values of one call that are still on their way from devices, and the places they are to take."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from logger_service.contract import device_copy

Hole: TypeAlias = "tuple[dict[str, Any] | list[Any], Any, int, tuple[int, ...] | None]"
"""A container and the key of it where the content belongs, the index of the first element among the values of the row,
and the shape of the content; None: one number."""


class Late:
    """Has copies made, and puts the content into its places when it is first asked for. Thread-safe.

    Args:
        values: The tensors, none of them in host memory.
        holes: Their places.
        row: The values of the row, whose others are there already; filled in place.
        names: The names of metrics that have any of the places.

    Attributes:
        names: The same.
        size_bytes: How much host memory it holds until it was read.

    Raises:
        RuntimeError: A CUDA graph is being captured.
    """

    def __init__(self, values: Sequence[Any], holes: list[Hole], row: list[float], names: frozenset[str]) -> None:
        self.names = names
        self._holes = holes
        self._row = row
        self._error: Exception | None = None
        # Reentrant, as the handler of a signal may read what the thread that it interrupts is waiting for.
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._copies: list[device_copy.DeviceCopy] | None = device_copy.start(values)
        self.size_bytes = sum(copy.size_bytes for copy in self._copies)

    def wait(self) -> None:
        """Waits until every place has its content. Only the first one waits for devices.

        Raises:
            RuntimeError: A device failed; or this is a forked child, where no device can be waited for.
        """
        if self._copies is not None:
            self._wait_once()
        if self._error is not None:
            raise RuntimeError(f"values did not arrive from their device: {_first_line(self._error)}") from self._error

    def row(self) -> list[float]:
        """Waits, and returns the values of the whole row.

        Raises:
            RuntimeError: As `wait`.
        """
        self.wait()
        return self._row

    def _wait_once(self) -> None:
        if os.getpid() != self._pid:
            raise RuntimeError("values that were deferred before a fork can be read by the parent alone")
        with self._lock:
            if self._copies is None:
                return
            try:
                arrived = [piece for copy in self._copies for piece in copy.read()]
            except Exception as error:
                # The device may still write to the blocks: they are not used again.
                self._error, self._copies = error, None
                return
            if self._copies is None:  # The handler of a signal was faster, on this very thread.
                return
            self._fill(arrived)
            copies, self._copies = self._copies, None
            for copy in copies or ():
                copy.close()

    def _fill(self, arrived: list[tuple[list[int], list[Any]]]) -> None:
        holes, row = self._holes, self._row
        for indices, elements in arrived:
            begin = 0
            for index in indices:
                container, key, place, shape = holes[index]
                if shape is None:
                    container[key] = content = elements[begin]
                    row[place] = float(content)
                    begin += 1
                else:
                    count = _size(shape)
                    part = elements[begin : begin + count]
                    container[key] = nested(part, shape)
                    row[place : place + count] = map(float, part)
                    begin += count


def nested(elements: Sequence[Any], shape: Sequence[int]) -> list[Any]:
    """Returns the elements, which come row-major, as lists in lists of this shape, of one dimension or more."""

    def part(dimension: int, rest: Iterator[Any]) -> list[Any]:
        if dimension == len(shape) - 1:
            return [next(rest) for _ in range(shape[dimension])]
        return [part(dimension + 1, rest) for _ in range(shape[dimension])]

    return part(0, iter(elements))


def _size(shape: Sequence[int]) -> int:
    count = 1
    for length in shape:
        count *= length
    return count


def _first_line(error: Exception) -> str:
    """Returns what an error of CUDA says, without the advice on debugging that follows it."""
    return next(iter(str(error).splitlines()), "") or type(error).__name__
