"""The tables of the SQLite journal: their names, columns and the statements that read and write them.

Each table of this module but `batches` has its key columns first, the run's integer key before all others, and ends
with the checksum of what stands before it. A text `run_id` is stored once, in `runs`; elsewhere its integer stands.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from .seal import Value, seal_row

POSITION_BITS = 40
"""A batch's integer key is its run's key followed by so many bits of position: one B-tree, in order, no index."""

MAX_POSITION = (1 << POSITION_BITS) - 1

_LARGEST_INSERT = 128
"""Rows a statement. Each statement hands the GIL over once, which a busy process pays for with up to 5 ms: a commit of
1,000 rows must not be 1,000 statements."""


@dataclass(frozen=True, eq=False)
class Table:
    """A table.

    Args:
        name: Its name.
        columns: Its columns.
        key_size: How many of them, from the left, are its key.
        verb: How a row is written: `INSERT`, or `INSERT OR REPLACE`.
    """

    name: str
    columns: tuple[str, ...]
    key_size: int
    verb: str = "INSERT OR REPLACE"

    @property
    def select(self) -> str:
        """The statement that reads all rows, to which conditions may be added."""
        return f"SELECT {', '.join(self.columns)} FROM {self.name}"

    def order(self, direction: str) -> str:
        """Returns the clause that orders rows by key, `ASC` or `DESC`."""
        return "ORDER BY " + ", ".join(f"{column} {direction}" for column in self.columns[: self.key_size])

    def insert(self, rows: int) -> str:
        """Returns the statement that writes so many rows at once."""
        row = f"({', '.join('?' * len(self.columns))})"
        return f"{self.verb} INTO {self.name} ({', '.join(self.columns)}) VALUES {', '.join([row] * rows)}"


def _sealed(name: str, key_size: int, *columns: str) -> Table:
    return Table(name, (*columns, "crc"), key_size)


RUNS = _sealed(
    "runs", 1, "key", "run_id", "namespace", "exp_name", "epoch", "closed", "created_ns", "backends", "tags", "notes"
)
TAILS = _sealed("tails", 1, "run", "last_position", "last_write_ns")
"""Where a run's last batch stood, written when batches are trimmed: the batches themselves no longer tell."""
WRITERS = _sealed(
    "writers", 2, "run", "writer_id", "epoch", "status", "last_sequence", "last_position", "last_seen_ns", "client",
    "accepted", "repeated", "dropped", "rejected",
)  # fmt: skip
REJECTIONS = _sealed("rejections", 4, "run", "writer_id", "sequence", "backend", "payload")
CURSORS = _sealed("cursors", 2, "run", "backend", "position", "applied", "rejected", "state")
LENGTHS = _sealed("lengths", 3, "run", "backend", "path", "length")
COUNTED = _sealed("counted", 1, "run", "position")
"""The position as of which a run's counters are."""
COUNTERS = _sealed("counters", 3, "run", "kind", "name", "count")
REQUESTS = _sealed("requests", 2, "run", "key", "response", "expires_ns")
NOTICES = _sealed("notices", 2, "run", "number", "time_ns", "kind", "message")

OF_A_RUN = (TAILS, WRITERS, REJECTIONS, CURSORS, LENGTHS, COUNTED, COUNTERS, REQUESTS, NOTICES)
"""The sealed tables whose rows belong to a run."""

BATCHES = Table("batches", ("key", "time_ns", "writer_id", "sequence", "crc", "payload"), 1, "INSERT")
"""The payload is last, so that what stands before it is read without it."""

_INSERTS = {
    table: {size: table.insert(size) for size in (1 << power for power in range(_LARGEST_INSERT.bit_length()))}
    for table in (RUNS, *OF_A_RUN, BATCHES)
}

STATEMENTS = sum(len(sizes) for sizes in _INSERTS.values()) + 32
"""How many statements a connection should keep prepared."""


def batch_key(run: int, position: int) -> int:
    """Returns the integer key of a batch."""
    return run << POSITION_BITS | position


def position_of(key: int) -> int:
    """Returns the position in a batch's integer key."""
    return key & MAX_POSITION


def write_rows(connection: sqlite3.Connection, table: Table, rows: Sequence[tuple[Value, ...]]) -> None:
    """Writes rows in order, in as few statements as fit."""
    sizes = _INSERTS[table]
    start, left = 0, len(rows)
    while left:
        size = min(_LARGEST_INSERT, 1 << left.bit_length() - 1)
        connection.execute(sizes[size], tuple(chain.from_iterable(rows[start : start + size])))
        start += size
        left -= size


def write_sealed(connection: sqlite3.Connection, table: Table, rows: Iterable[tuple[Value, ...]]) -> None:
    """Writes rows of a sealed table, adding their checksums."""
    write_rows(connection, table, [(*row, seal_row(table.name, row)) for row in rows])


def is_whole(table: Table, row: tuple[Value, ...]) -> bool:
    """Returns whether the checksum of a row of a sealed table fits."""
    return seal_row(table.name, row[:-1]) == row[-1]


def read_sealed(connection: sqlite3.Connection, table: Table) -> Iterator[tuple[Any, ...]]:
    """Returns all rows of a sealed table in the order of their keys, checksums included and not yet looked at."""
    return connection.execute(f"{table.select} {table.order('ASC')}")
