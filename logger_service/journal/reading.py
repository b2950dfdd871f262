"""Reads batches, leaving out those that are damaged."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator, Iterator
from typing import TypeAlias

from .faults import is_damage
from .seal import seal_batch
from .tables import BATCHES, batch_key, position_of

StoredBatch: TypeAlias = tuple[int, int, str, int, int, bytes]
"""The columns of `batches`."""


def is_whole_batch(row: StoredBatch) -> bool:
    """Returns whether a batch's checksum fits."""
    key, time_ns, writer_id, sequence, crc, payload = row
    # What is damaged may have another type than it had.
    return isinstance(payload, bytes) and seal_batch(key, time_ns, writer_id, sequence, payload) == crc


def read_batches(
    connection: sqlite3.Connection,
    run: int,
    first: int,
    last: int,
    lost: Callable[[int, int], None],
    *,
    needed: int = 1,
) -> Generator[StoredBatch, None, None]:
    """Yields the whole batches of a run from position `first` to `last`, in order.

    Args:
        connection: Where from.
        run: The run's integer key.
        first: The first position.
        last: The last position.
        lost: Called with the first and last position of what is damaged.
        needed: Where to begin if not even the first can be read: batches before it may be lost silently.
    """
    lost_from = 0
    for position, row in _walk(connection, run, first, last, needed):
        if row is not None and is_whole_batch(row):
            if lost_from:
                lost(lost_from, position - 1)
                lost_from = 0
            yield row
        else:
            lost_from = lost_from or position
    if lost_from:
        lost(lost_from, last)


def _walk(
    connection: sqlite3.Connection, run: int, first: int, last: int, needed: int
) -> Iterator[tuple[int, StoredBatch | None]]:
    """Yields positions with what stands there; None where it cannot be read. What is not there is passed over.

    A page that cannot be read, or that leads astray, ends SQLite's walk: from there on the positions are asked for one
    by one.
    """
    following = first
    try:
        for row in connection.execute(
            f"{BATCHES.select} WHERE key BETWEEN ? AND ? ORDER BY key", (batch_key(run, first), batch_key(run, last))
        ):
            if not batch_key(run, following) <= row[0] <= batch_key(run, last):
                break
            yield position_of(row[0]), row
            following = position_of(row[0]) + 1
        else:
            return
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
    if following == first:
        following = max(first, needed)
    one = f"{BATCHES.select} WHERE key = ?"
    for position in range(following, last + 1):
        try:
            row = connection.execute(one, (batch_key(run, position),)).fetchone()
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            yield position, None
        else:
            if row is not None:
                yield position, row
