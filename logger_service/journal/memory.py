"""The journal in memory: for tests, and for hosts that are told to keep nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

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
    RunSnapshot,
    WriterRow,
)
from .runs import KEPT_NOTICES, out_of_order, unknown_run


@dataclass(slots=True)
class _Run:
    row: RunRow
    first_position: int = 1
    last_position: int = 0
    last_write_ns: int = 0
    batches: dict[int, BatchRow] = field(default_factory=dict)
    """By position."""
    writers: dict[str, WriterRow] = field(default_factory=dict)
    cursors: dict[str, CursorRow] = field(default_factory=dict)
    counters: CounterRows | None = None
    rejections: dict[tuple[str, int, str], RejectionRow] = field(default_factory=dict)
    requests: dict[bytes, RequestRow] = field(default_factory=dict)
    notices: list[NoticeRow] = field(default_factory=list)

    def snapshot(self, now_ns: int) -> RunSnapshot:
        return RunSnapshot(
            run=self.row,
            last_position=self.last_position,
            first_position=self.first_position,
            held_bytes=sum(len(batch.payload) for batch in self.batches.values()),
            last_write_ns=self.last_write_ns,
            writers=[self.writers[writer_id] for writer_id in sorted(self.writers)],
            cursors=[self.cursors[backend] for backend in sorted(self.cursors)],
            counters=self.counters,
            rejections=[self.rejections[key] for key in sorted(self.rejections)],
            requests=[self.requests[key] for key in sorted(self.requests) if self.requests[key].expires_ns > now_ns],
            notices=list(self.notices),
        )


class MemoryJournal:
    """A journal that ends with its process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: dict[str, _Run] = {}

    @property
    def was_created(self) -> bool:
        """Always: there was none before."""
        return True

    def load(self) -> list[RunSnapshot]:
        """Returns all runs."""
        with self._lock:
            return [run.snapshot(time.time_ns()) for run in self._runs.values()]

    def commit(self, changes: Sequence[Change], now_ns: int) -> None:
        """Applies the changes, in order.

        Raises:
            ValueError: Nothing was applied: a batch does not follow its run's last one, or a run is unknown.
        """
        with self._lock:
            self._check(changes)
            for change in changes:
                self._apply(change, now_ns)
            for run in self._runs.values():
                for key in [key for key, request in run.requests.items() if request.expires_ns <= now_ns]:
                    del run.requests[key]

    def read(self, run_id: str, after: int, max_bytes: int) -> list[BatchRow]:
        """Returns batches from position `after + 1` on, in order: at least one if any, then up to `max_bytes`."""
        read: list[BatchRow] = []
        with self._lock:
            run = self._runs.get(run_id)
            if run is None:
                return read
            for position in range(max(after + 1, run.first_position), run.last_position + 1):
                max_bytes -= len(run.batches[position].payload)
                if max_bytes < 0 and read:
                    break
                read.append(run.batches[position])
        return read

    def trim(self, upto: Mapping[str, int], max_batches: int) -> int:
        """Deletes at most `max_batches` batches at or before the given position of each run; returns how many."""
        trimmed = 0
        with self._lock:
            for run_id, position in upto.items():
                run = self._runs.get(run_id)
                while run and trimmed < max_batches and run.first_position <= min(position, run.last_position):
                    del run.batches[run.first_position]
                    run.first_position += 1
                    trimmed += 1
        return trimmed

    def damaged(self) -> Iterable[str]:
        """Nothing ever is."""
        return ()

    def close(self) -> None:
        """Forgets everything."""
        with self._lock:
            self._runs.clear()

    def _check(self, changes: Iterable[Change]) -> None:
        last = {run_id: run.last_position for run_id, run in self._runs.items()}
        for change in changes:
            if isinstance(change, RunRow):
                last.setdefault(change.run_id, 0)
            elif change.run_id not in last:
                raise unknown_run(change.run_id)
            elif isinstance(change, BatchRow):
                if change.position != last[change.run_id] + 1:
                    raise out_of_order(change.run_id, change.position, last[change.run_id])
                last[change.run_id] = change.position

    def _apply(self, change: Change, now_ns: int) -> None:
        if isinstance(change, RunRow):
            if change.run_id in self._runs:
                self._runs[change.run_id].row = change
            else:
                self._runs[change.run_id] = _Run(change)
            return
        run = self._runs[change.run_id]
        match change:
            case BatchRow():
                run.batches[change.position] = change
                run.last_position, run.last_write_ns = change.position, now_ns
            case WriterRow():
                run.writers[change.writer_id] = change
            case RejectionRow():
                run.rejections[change.writer_id, change.sequence, change.backend] = change
            case ForgetRejections():
                writer_id, before = change.writer_id, change.before
                for key in [key for key in run.rejections if key[0] == writer_id and key[1] < before]:
                    del run.rejections[key]
            case CursorRow():
                known = run.cursors[change.backend].lengths if change.backend in run.cursors else {}
                run.cursors[change.backend] = replace(change, lengths={**known, **change.lengths})
            case CounterRows():
                known_counts = run.counters.counts if run.counters else {}
                run.counters = replace(change, counts={**known_counts, **change.counts})
            case RequestRow():
                run.requests[change.key] = change
            case NoticeRow():
                run.notices = [*run.notices, change][-KEPT_NOTICES:]
