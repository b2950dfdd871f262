"""Where what is whole in a file ends, by the kind of file: what lies behind was torn by a crash.

A crash of the process tears the last line; one of the machine may also leave zeros where data had not reached the disk.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeAlias

Whole: TypeAlias = Callable[[int, int, int], int]
"""(descriptor, begin, end) -> where the whole part of begin..end ends."""

_BLOCK_BYTES = 1 << 16


def whole_lines(descriptor: int, begin: int, end: int) -> int:
    """Of lines, whole is what ends with a newline."""
    while end > begin:
        start = max(begin, end - _BLOCK_BYTES)
        newline = read_exactly(descriptor, start, end).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return begin


def whole_text(descriptor: int, begin: int, end: int) -> int:
    """Of a text, which may end anyhow, whole is what comes before zeros at its end."""
    while end > begin:
        start = max(begin, end - _BLOCK_BYTES)
        kept = len(read_exactly(descriptor, start, end).rstrip(b"\0"))
        if kept:
            return start + kept
        end = start
    return begin


def count_lines(descriptor: int, end: int) -> int:
    """Returns how many lines end before `end`."""
    starts = range(0, end, 16 * _BLOCK_BYTES)
    return sum(read_exactly(descriptor, at, min(at + starts.step, end)).count(b"\n") for at in starts)


def read_exactly(descriptor: int, begin: int, end: int) -> bytes:
    """Reads the bytes begin..end.

    Raises:
        OSError: The file is shorter.
    """
    blocks = []
    while begin < end:
        block = os.pread(descriptor, end - begin, begin)
        if not block:
            raise OSError("a file became shorter while it was read")
        blocks.append(block)
        begin += len(block)
    return blocks[0] if len(blocks) == 1 else b"".join(blocks)
