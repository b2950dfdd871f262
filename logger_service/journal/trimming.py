"""Deletes batches that nobody needs any more, and gives their space back to the file system."""

from __future__ import annotations

import sqlite3

from . import tables
from .runs import RunState
from .tables import batch_key, position_of

_PAGES_KEPT = 2_048
"""Free pages (8 MiB) that stay in the file: the next batches want them."""

_PAGES_AT_ONCE = 4_096
"""Free pages given back in one go: it moves pages and holds up commits meanwhile."""


def trim_run(connection: sqlite3.Connection, state: RunState, upto: int, max_batches: int) -> tuple[int, RunState]:
    """Deletes a run's first batches, in the transaction that is open.

    Args:
        connection: Where.
        state: The run; not changed.
        upto: The last position that may go.
        max_batches: How many may go.

    Returns:
        How many went, and the run after it.
    """
    first = batch_key(state.key, state.first_position)
    last = batch_key(state.key, min(upto, state.last_position))
    count, size, last_gone = connection.execute(
        "SELECT count(*), coalesce(sum(size), 0), max(key) FROM "
        "(SELECT key, length(payload) AS size FROM batches WHERE key BETWEEN ? AND ? ORDER BY key LIMIT ?)",
        (first, last, max_batches),
    ).fetchone()
    after = state.copy()
    if count:
        connection.execute("DELETE FROM batches WHERE key BETWEEN ? AND ?", (first, last_gone))
        tables.write_sealed(connection, tables.TAILS, [(state.key, state.last_position, state.last_write_ns)])
        after.held_bytes -= size
    # Not simply the successor: positions that were lost to damage leave gaps.
    next_held = connection.execute(
        "SELECT key FROM batches WHERE key > ? AND key <= ? ORDER BY key LIMIT 1",
        (last if last_gone is None else last_gone, batch_key(state.key, state.last_position)),
    ).fetchone()
    after.first_position = position_of(next_held[0]) if next_held else state.last_position + 1
    return count, after


def give_back_pages(connection: sqlite3.Connection) -> None:
    """Shortens the file if it has many free pages. Must stand outside of a transaction."""
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    if free > _PAGES_KEPT:
        # SQLite gives back a page a step; `executescript` takes all of them without taking the GIL in between.
        connection.executescript(f"PRAGMA incremental_vacuum({min(free - _PAGES_KEPT, _PAGES_AT_ONCE)})")
