"""Copies what can still be read of a damaged database into a new one, row by row."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import tables
from .connections import connect_reader, connect_writer
from .damage import DamageReport
from .faults import is_damage
from .loading import report_row
from .reading import StoredBatch, read_batches
from .schema import migrate
from .tables import BATCHES, CURSORS, MAX_POSITION, RUNS, TAILS, Table, batch_key, position_of

_POSITION_COLUMNS = {
    table: table.columns.index(column)
    for table, column in (
        (tables.TAILS, "last_position"),
        (tables.WRITERS, "last_position"),
        (tables.CURSORS, "position"),
        (tables.COUNTED, "position"),
    )
}
"""Where rows say that a position was reached: it must never be given again, whatever became of its batch."""

_PAGE_BYTES = 4_096


def salvage(source: Path, target: Path, report: DamageReport) -> str:
    """Copies what can be read; reports what cannot.

    Args:
        source: The damaged database. Only read.
        target: The new one; must not exist. Complete and closed on return.
        report: Where what is lost is reported.

    Returns:
        For the operator, what was saved.
    """
    if source.stat().st_size == 0:
        # SQLite takes an empty file for a new database and deletes its log, which may hold everything.
        os.truncate(source, _PAGE_BYTES)
    damaged, whole = connect_reader(source), connect_writer(target)
    try:
        damaged.execute("PRAGMA writable_schema = ON")  # reads what is there of a file that was cut short
        migrate(whole)
        whole.execute("BEGIN IMMEDIATE")
        runs = _copy(damaged, whole, RUNS, None, "", report)
        batches = sum(_salvage_run(damaged, whole, row[0], row[1], report) for row in runs)
        whole.execute("COMMIT")
    finally:
        damaged.close()
        whole.close()
    return f"{len(runs)} runs and {batches} batches were salvaged"


def _salvage_run(
    damaged: sqlite3.Connection, whole: sqlite3.Connection, run: int, run_id: str, report: DamageReport
) -> int:
    """Copies what belongs to a run; returns how many batches."""
    copied = {table: _copy(damaged, whole, table, run, run_id, report) for table in tables.OF_A_RUN}
    last = max((row[column] for table, column in _POSITION_COLUMNS.items() for row in copied[table]), default=0)
    last = max(last, _last_readable(damaged, run))
    needed = min((row[_POSITION_COLUMNS[CURSORS]] for row in copied[CURSORS]), default=0) + 1
    time_ns = max((row[TAILS.columns.index("last_write_ns")] for row in copied[TAILS]), default=0)
    count = 0

    def batches() -> Iterator[StoredBatch]:
        nonlocal count, time_ns
        for row in read_batches(damaged, run, run_id, 1, last, report, needed=needed):
            count += 1
            time_ns = max(time_ns, row[1])
            yield row

    whole.executemany(BATCHES.insert(1), batches())
    if last:
        tables.write_sealed(whole, TAILS, [(run, last, time_ns)])
    return count


def _copy(
    damaged: sqlite3.Connection,
    whole: sqlite3.Connection,
    table: Table,
    run: int | None,
    run_id: str,
    report: DamageReport,
) -> list[tuple[Any, ...]]:
    """Copies the whole rows of a sealed table, of one run where it is given; returns them."""
    rows = _readable(damaged, table, run, run_id, report)
    good = [row for row in rows if tables.is_whole(row)]
    for row in rows:
        if not tables.is_whole(row):
            report_row(table, row, run_id, report)
    tables.write_rows(whole, table, good)
    return good


def _readable(
    damaged: sqlite3.Connection, table: Table, run: int | None, run_id: str, report: DamageReport
) -> list[tuple[Any, ...]]:
    """Reads forwards to the first page that cannot be read, then backwards to the last."""
    rows: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    where, parameters = ("", ()) if run is None else ("WHERE run = ?", (run,))
    for direction in ("ASC", "DESC"):
        try:
            for row in damaged.execute(f"{table.select} {where} {table.order(direction)}", parameters):
                rows[row[: table.key_size]] = row
            break
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            owner = f"run {run_id}: " if run_id else ""
            report.add(f"{owner}a part of {table.name} cannot be read; what was salvaged of it may not be all")
    return list(rows.values())


def _last_readable(damaged: sqlite3.Connection, run: int) -> int:
    """Returns the last position of a run that can be read; 0 if none can."""
    try:
        row = damaged.execute(
            "SELECT key FROM batches WHERE key BETWEEN ? AND ? ORDER BY key DESC LIMIT 1",
            (batch_key(run, 0), batch_key(run, MAX_POSITION)),
        ).fetchone()
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return 0
    return position_of(row[0]) if row else 0
