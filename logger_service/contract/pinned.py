"""Blocks of pinned host memory, used again and again: pinning costs more than the copy that goes through one.

There is no lock, as appending to a list and popping from it are whole steps: a forked child could find a lock held.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from logger_service.contract import cuda

_LEAST_BYTES = 1 << 10
_MOST_BYTES = 1 << 16
"""Larger blocks, which rows of thousands of values need, are not kept."""
_KEPT_BLOCKS = 64
"""How many blocks of each size are kept: 8 MiB in all."""

_free: defaultdict[int, list[Any]] = defaultdict(list)


def take(size: int) -> Any:
    """Returns a block of at least so many bytes, for the caller alone."""
    rounded = max(_LEAST_BYTES, 1 << (size - 1).bit_length())
    try:
        return _free[rounded].pop()
    except IndexError:
        return cuda.pin(rounded)


def give_back(block: Any) -> None:
    """Takes a block back. Nothing may be on its way into it any more, and its content must have been read."""
    size = block.numel()
    if size <= _MOST_BYTES and len(_free[size]) < _KEPT_BLOCKS:
        _free[size].append(block)
