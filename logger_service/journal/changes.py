"""Turns the changes of one commit into the rows to write, table by table."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any

from . import tables
from .base import (
    BatchRow,
    Change,
    CounterRows,
    CursorRow,
    ForgetRejections,
    NoticeRow,
    RejectionRow,
    RequestRow,
    RunRow,
    WriterRow,
)
from .runs import KEPT_NOTICES, RunState, out_of_order, unknown_run
from .seal import Value, seal_batch
from .tables import Table, batch_key

_writer_values = attrgetter(*tables.WRITERS.columns[1:-1])
_rejection_values = attrgetter(*tables.REJECTIONS.columns[1:-1])
_cursor_values = attrgetter(*tables.CURSORS.columns[1:-1])
_request_values = attrgetter(*tables.REQUESTS.columns[1:-1])


class ChangeSet:
    """The rows of one commit, and what its runs are like after it.

    A row written twice is written once, as it was last. So order is kept although tables are written one by one:
    changes to different tables do not meet, and to the one pair that does (rejections, and forgetting them) the
    deletions come first, of what stood before and of what this commit added until then.

    Args:
        states: The runs as of the last commit; not changed.
        next_key: The integer key of the next new run.
        now_ns: The time.
    """

    def __init__(self, states: Mapping[str, RunState], next_key: int, now_ns: int) -> None:
        self._before = states
        self._now_ns = now_ns
        self._batches: list[tuple[Value, ...]] = []
        self._rows: dict[Table, dict[tuple[Value, ...], tuple[Value, ...]]] = {}
        self._forgotten: dict[tuple[int, str], int] = {}
        self._noticed: dict[int, int] = {}
        self.next_key = next_key
        self.states: dict[str, RunState] = {}
        """The runs that differ after the commit."""
        self.must_sync = False
        """Whether it says what stands in files: then it is synced under every durability."""
        self.first_expiry_ns: int | None = None
        """When the first of its requests expires."""

    def add_all(self, changes: Iterable[Change]) -> None:
        """Adds changes, in order.

        Raises:
            ValueError: A change names an unknown run, or a batch does not follow the run's last one.
        """
        batches, states, now_ns = self._batches, self.states, self._now_ns
        for change in changes:
            if type(change) is not BatchRow:
                _HANDLERS[type(change)](self, change)
                continue
            run_id, position = change.run_id, change.position
            state = states.get(run_id) or self._touch(run_id)
            if position != state.last_position + 1:
                raise out_of_order(run_id, position, state.last_position)
            payload, key = change.payload, batch_key(state.key, position)
            crc = seal_batch(key, now_ns, change.writer_id, change.sequence, payload)
            batches.append((key, now_ns, change.writer_id, change.sequence, crc, payload))
            state.last_position = position
            state.last_write_ns = now_ns
            state.held_bytes += len(payload)

    def write(self, connection: sqlite3.Connection) -> None:
        """Writes the rows, in the transaction that is open."""
        for (run, writer_id), before in self._forgotten.items():
            connection.execute(
                "DELETE FROM rejections WHERE run = ? AND writer_id = ? AND sequence < ?", (run, writer_id, before)
            )
        for table, rows in self._rows.items():
            tables.write_sealed(connection, table, rows.values())
        for run, number in self._noticed.items():
            connection.execute("DELETE FROM notices WHERE run = ? AND number <= ?", (run, number - KEPT_NOTICES))
        tables.write_rows(connection, tables.BATCHES, self._batches)

    def _touch(self, run_id: str) -> RunState:
        state = self.states.get(run_id)
        if state is None:
            before = self._before.get(run_id)
            if before is None:
                raise unknown_run(run_id)
            state = self.states[run_id] = before.copy()
        return state

    def _key(self, run_id: str) -> int:
        state = self._before.get(run_id) or self.states.get(run_id)
        if state is None:
            raise unknown_run(run_id)
        return state.key

    def _put(self, table: Table, *values: Value) -> None:
        self._rows.setdefault(table, {})[values[: table.key_size]] = values

    def _add_run(self, row: RunRow) -> None:
        if row.run_id not in self._before and row.run_id not in self.states:
            self.states[row.run_id] = RunState(self.next_key)
            self.next_key += 1
        names = (row.run_id, row.namespace, row.exp_name)
        rest = (row.epoch, int(row.closed), row.created_ns, row.backends, row.tags, row.notes)
        self._put(tables.RUNS, self._key(row.run_id), *names, *rest)

    def _add_writer(self, row: WriterRow) -> None:
        self._put(tables.WRITERS, self._key(row.run_id), *_writer_values(row))

    def _add_rejection(self, row: RejectionRow) -> None:
        self._put(tables.REJECTIONS, self._key(row.run_id), *_rejection_values(row))

    def _forget_rejections(self, change: ForgetRejections) -> None:
        writer = (self._key(change.run_id), change.writer_id)
        self._forgotten[writer] = max(change.before, self._forgotten.get(writer, 0))
        added = self._rows.get(tables.REJECTIONS, {})
        for key in [key for key, row in added.items() if row[:2] == writer and int(row[2]) < change.before]:
            del added[key]

    def _add_cursor(self, row: CursorRow) -> None:
        self.must_sync = True
        run = self._key(row.run_id)
        self._put(tables.CURSORS, run, *_cursor_values(row))
        for path, length in row.lengths.items():
            self._put(tables.LENGTHS, run, row.backend, path, length)

    def _add_counters(self, rows: CounterRows) -> None:
        self.must_sync = True
        run = self._key(rows.run_id)
        self._put(tables.COUNTED, run, rows.position)
        for (kind, name), count in rows.counts.items():
            self._put(tables.COUNTERS, run, kind, name, count)

    def _add_request(self, row: RequestRow) -> None:
        self._put(tables.REQUESTS, self._key(row.run_id), *_request_values(row))
        first = self.first_expiry_ns
        self.first_expiry_ns = row.expires_ns if first is None else min(first, row.expires_ns)

    def _add_notice(self, row: NoticeRow) -> None:
        state = self._touch(row.run_id)
        state.notices += 1
        self._noticed[state.key] = state.notices
        self._put(tables.NOTICES, state.key, state.notices, row.time_ns, row.kind, row.message)


_HANDLERS: Mapping[type, Callable[[ChangeSet, Any], None]] = {
    RunRow: ChangeSet._add_run,
    WriterRow: ChangeSet._add_writer,
    RejectionRow: ChangeSet._add_rejection,
    ForgetRejections: ChangeSet._forget_rejections,
    CursorRow: ChangeSet._add_cursor,
    CounterRows: ChangeSet._add_counters,
    RequestRow: ChangeSet._add_request,
    NoticeRow: ChangeSet._add_notice,
}
