"""Checksums of rows, so that damage inside a row is seen and does not pass for data."""

from __future__ import annotations

from typing import TypeAlias
from zlib import crc32

Value: TypeAlias = int | str | bytes
"""What a column may hold."""


def seal_row(table: str, values: tuple[Value, ...]) -> int:
    """Returns the checksum of a row of a small table.

    The table's name is in it: a page that got into another table is no part of it, though its rows are whole.
    `ascii` and not `repr`: which characters `repr` escapes changes with the version of Python.
    """
    return crc32(ascii((table, *values)).encode("ascii"))


def seal_batch(key: int, time_ns: int, writer_id: str, sequence: int, payload: bytes) -> int:
    """Returns the checksum of a batch, over everything that its row says."""
    return crc32(payload, crc32(f"{key}/{time_ns}/{writer_id}/{sequence}".encode()))
