"""Reads what a SQLite journal holds of its runs, row by row, leaving out and naming the rows that are damaged."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from . import tables
from .base import CounterRows, CursorRow, NoticeRow, RejectionRow, RequestRow, RunRow, RunSnapshot, WriterRow
from .damage import DamageReport
from .runs import RunState
from .seal import Value
from .tables import MAX_POSITION, POSITION_BITS, Table, batch_key, position_of


def load_states(connection: sqlite3.Connection, report: DamageReport) -> dict[str, RunState]:
    """Returns the runs by id. Walks all batches, without their payloads.

    Raises:
        sqlite3.DatabaseError: The file is damaged beyond single rows.
    """
    runs = {row[0]: (row[1], RunState(row[0])) for row in _whole(connection, tables.RUNS, None, report)}
    names: dict[int, str] = {key: run_id for key, (run_id, _) in runs.items()}
    damaged: set[Any] = set()
    for run, last_position, last_write_ns in _whole(connection, tables.TAILS, names, report, damaged):
        state = runs[run][1]
        state.last_position, state.last_write_ns = last_position, last_write_ns
        state.first_position = last_position + 1
    if damaged:
        for run, position in _known_positions(connection, names, report):
            state = runs[run][1]
            if run in damaged and position > state.last_position:
                state.last_position, state.first_position = position, position + 1
    for run, (run_id, state) in runs.items():
        first, last, count, size = connection.execute(
            "SELECT min(key), max(key), count(*), sum(length(payload)) FROM batches WHERE key BETWEEN ? AND ?",
            (batch_key(run, 0), batch_key(run, MAX_POSITION)),
        ).fetchone()
        if count:
            (time_ns,) = connection.execute("SELECT time_ns FROM batches WHERE key = ?", (last,)).fetchone()
            state.first_position = position_of(first)
            state.last_position = max(state.last_position, position_of(last))
            state.held_bytes, state.last_write_ns = size, max(state.last_write_ns, time_ns)
            if missing := last - first + 1 - count:
                report.add(f"run {run_id}: {missing} batches are missing between the first and the last held")
    for run, number in connection.execute("SELECT run, max(number) FROM notices GROUP BY run"):
        if run in runs and isinstance(number, int):  # a damaged one may be anything
            runs[run][1].notices = number
    return dict(runs.values())


def _known_positions(
    connection: sqlite3.Connection, names: Mapping[int, str], report: DamageReport
) -> Iterator[tuple[int, int]]:
    """Yields runs with positions that their other rows name."""
    for table, column in (
        (tables.WRITERS, "last_position"),
        (tables.CURSORS, "position"),
        (tables.COUNTED, "position"),
    ):
        at = table.columns.index(column)
        for row in _whole(connection, table, names, report):
            yield row[0], row[at]


def load_snapshots(
    connection: sqlite3.Connection, states: Mapping[str, RunState], now_ns: int, report: DamageReport
) -> list[RunSnapshot]:
    """Returns everything but the batches, in the order in which the runs were made."""
    snapshots: dict[int, RunSnapshot] = {}
    for key, run_id, namespace, exp_name, epoch, closed, *rest in _whole(connection, tables.RUNS, None, report):
        row = RunRow(run_id, namespace, exp_name, epoch, bool(closed), *rest)
        state = states[row.run_id]
        snapshots[key] = RunSnapshot(
            row,
            last_position=state.last_position,
            first_position=state.first_position,
            held_bytes=state.held_bytes,
            last_write_ns=state.last_write_ns,
        )
    names = {key: snapshot.run.run_id for key, snapshot in snapshots.items()}
    damaged: set[Any] = set()

    def rows(table: Table) -> Iterator[tuple[RunSnapshot, str, list[Any]]]:
        for run, *values in _whole(connection, table, names, report, damaged):
            yield snapshots[run], names[run], values

    lengths: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for _, run_id, (backend, path, length) in rows(tables.LENGTHS):
        lengths[run_id, backend][path] = length
    for snapshot, run_id, (backend, position, applied, rejected, state_json) in rows(tables.CURSORS):
        cursor = CursorRow(run_id, backend, position, applied, rejected, state_json, lengths[run_id, backend])
        snapshot.cursors.append(cursor)
    counts: dict[str, dict[tuple[str, str], int]] = defaultdict(dict)
    for _, run_id, (kind, name, count) in rows(tables.COUNTERS):
        counts[run_id][kind, name] = count
    for snapshot, run_id, (position,) in rows(tables.COUNTED):
        snapshot.counters = CounterRows(run_id, position, counts.pop(run_id, {}))
    for snapshot in snapshots.values():
        if left := counts.get(snapshot.run.run_id):
            # The row that says as of when is damaged: it was written with a cursor.
            position = max((cursor.position for cursor in snapshot.cursors), default=0)
            snapshot.counters = CounterRows(snapshot.run.run_id, position, left)
    for snapshot, run_id, values in rows(tables.WRITERS):
        snapshot.writers.append(WriterRow(run_id, *values))
    for snapshot, run_id, values in rows(tables.REJECTIONS):
        snapshot.rejections.append(RejectionRow(run_id, *values))
    for snapshot, run_id, values in rows(tables.REQUESTS):
        if (request := RequestRow(run_id, *values)).expires_ns > now_ns:
            snapshot.requests.append(request)
    for snapshot, run_id, values in rows(tables.NOTICES):
        snapshot.notices.append(NoticeRow(run_id, *values[1:]))
    for run in damaged & snapshots.keys():
        snapshots[run].is_whole = False
    return list(snapshots.values())


def next_run_key(connection: sqlite3.Connection) -> int:
    """Returns the integer key for the next new run."""
    (last_run,) = connection.execute("SELECT max(key) FROM runs").fetchone()
    # Batches of a run whose row was lost must not become those of a new one.
    (last_batch,) = connection.execute("SELECT max(key) FROM batches").fetchone()
    return max(last_run or 0, (last_batch or 0) >> POSITION_BITS) + 1


def first_expiry(connection: sqlite3.Connection) -> int | None:
    """Returns when the first request expires; None if there is none."""
    (expires_ns,) = connection.execute("SELECT min(expires_ns) FROM requests").fetchone()
    return expires_ns if isinstance(expires_ns, int) else None


def _whole(
    connection: sqlite3.Connection,
    table: Table,
    names: Mapping[int, str] | None,
    report: DamageReport,
    damaged: set[Any] | None = None,
) -> Iterator[tuple[Any, ...]]:
    """Yields the whole rows without their checksums; of runs that are known, where `names` has them.

    The runs of the other rows are added to `damaged`.
    """
    for row in tables.read_sealed(connection, table):
        run = row[0]
        if not tables.is_whole(table, row):
            report_row(table, row, "" if names is None else names.get(run, ""), report)
            if damaged is not None:
                damaged.add(run)
        elif names is None or run in names:
            yield row[:-1]


def report_row(table: Table, row: tuple[Value, ...], run_id: str, report: DamageReport) -> None:
    """Names a damaged row."""
    key = row[1 if run_id else 0 : table.key_size]
    owner = f"run {run_id}: " if run_id else ""
    report.add(f"{owner}a row of {table.name} is damaged and left out (key {', '.join(map(str, key)) or run_id})")
