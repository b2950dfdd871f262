"""Copies what can still be read of a damaged database into a new one, row by row."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from . import tables
from .connections import connect_reader, connect_writer
from .damage import DamageReport
from .faults import is_damage
from .loading import report_row
from .pages import PAGE_BYTES, scan_batches
from .reading import read_batches
from .replacing import beside
from .schema import migrate
from .tables import BATCHES, CURSORS, MAX_POSITION, POSITION_BITS, RUNS, TAILS, Table, batch_key, position_of

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


def salvage(source: Path, target: Path, report: DamageReport) -> str:
    """Copies what can be read; reports what cannot.

    Args:
        source: The damaged database. Only read.
        target: The new one; must not exist. Complete and closed on return.
        report: Where what is lost is reported.

    Returns:
        For the operator, what was saved.
    """
    log = beside(source, "-wal")
    if source.stat().st_size < PAGE_BYTES and log.exists() and log.stat().st_size:
        # SQLite takes so short a file for a new database and deletes its log, which may hold everything.
        os.truncate(source, PAGE_BYTES)
    damaged, whole = connect_reader(source), connect_writer(target)
    try:
        damaged.execute("PRAGMA writable_schema = ON")  # reads what is there of a file that was cut short
        migrate(whole)
        whole.execute("BEGIN IMMEDIATE")
        runs = {row[0]: row[1] for row in _copy(damaged, whole, RUNS, None, "", report)}
        lost: set[int] = set()
        for run, run_id in runs.items():
            lost |= _copy_run(damaged, whole, run, run_id, report)
        if lost:
            found = scan_batches(source, log, lost)
            whole.executemany(replace(BATCHES, verb="INSERT OR IGNORE").insert(1), found)
        (batches,) = whole.execute("SELECT count(*) FROM batches").fetchone()
        whole.execute("COMMIT")
        _report_lost(whole, runs, lost, report)
    finally:
        damaged.close()
        whole.close()
    return f"{len(runs)} runs and {batches} batches were salvaged"


def _copy_run(
    damaged: sqlite3.Connection, whole: sqlite3.Connection, run: int, run_id: str, report: DamageReport
) -> set[int]:
    """Copies what belongs to a run; returns the keys of the batches that SQLite cannot read."""
    copied = {table: _copy(damaged, whole, table, run, run_id, report) for table in tables.OF_A_RUN if table != TAILS}
    copied[TAILS] = _whole_rows(damaged, TAILS, run, run_id, report)
    last = max((row[column] for table, column in _POSITION_COLUMNS.items() for row in copied[table]), default=0)
    last = max(last, _last_readable(damaged, run))
    needed = min((row[_POSITION_COLUMNS[CURSORS]] for row in copied[CURSORS]), default=0) + 1
    time_ns = max((row[TAILS.columns.index("last_write_ns")] for row in copied[TAILS]), default=0)
    lost: set[int] = set()

    def add_lost(first: int, last: int) -> None:
        lost.update(range(batch_key(run, first), batch_key(run, last) + 1))

    whole.executemany(BATCHES.insert(1), read_batches(damaged, run, 1, last, add_lost, needed=needed))
    if last:
        tables.write_sealed(whole, TAILS, [(run, last, time_ns)])
    return lost


def _report_lost(whole: sqlite3.Connection, runs: dict[int, str], lost: set[int], report: DamageReport) -> None:
    """Reports those of the batches that SQLite could not read which were not found otherwise."""
    still = [key for key in sorted(lost) if not whole.execute("SELECT 1 FROM batches WHERE key = ?", (key,)).fetchone()]
    for _, group in groupby(enumerate(still), key=lambda item: item[1] - item[0]):  # keys that follow each other
        keys = [key for _, key in group]
        report.add_batches(runs[keys[0] >> POSITION_BITS], position_of(keys[0]), position_of(keys[-1]))


def _copy(
    damaged: sqlite3.Connection,
    whole: sqlite3.Connection,
    table: Table,
    run: int | None,
    run_id: str,
    report: DamageReport,
) -> list[tuple[Any, ...]]:
    """Copies the whole rows of a sealed table, of one run where it is given; returns them."""
    rows = _whole_rows(damaged, table, run, run_id, report)
    tables.write_rows(whole, table, rows)
    return rows


def _whole_rows(
    damaged: sqlite3.Connection, table: Table, run: int | None, run_id: str, report: DamageReport
) -> list[tuple[Any, ...]]:
    whole = []
    for row in _readable(damaged, table, run, run_id, report):
        if tables.is_whole(table, row):
            whole.append(row)
        else:
            report_row(table, row, run_id, report)
    return whole


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
