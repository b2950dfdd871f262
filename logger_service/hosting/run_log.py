"""What a run has accepted: positions, the newest batches, the automatic steps. Knows neither writers nor backends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from logger_service.contract.steps import StepCounters
from logger_service.contract.wire import batch_points
from logger_service.hosting.committer import Done
from logger_service.hosting.context import HostContext
from logger_service.hosting.tail import Accepted, Tail
from logger_service.hosting.waiters import Waiters
from logger_service.journal.base import BatchRow, Change, CounterRows, RunSnapshot
from logger_service.v1 import records_pb2

_READ_BYTES = 1 << 20


class RunLog:
    """The accepted batches of one run. May be used from any thread; nothing blocks, but for reading back.

    Args:
        context: What all runs share.
        snapshot: What the journal has of the run.

    Attributes:
        lock: Guards this object, and whatever of its run changes together with it.
        run_id: The run's id.
        position: The last position given.
        committed: The last position that is durable.
        accepted_bytes: The size of all payloads that were given a position since the host started.
        counters: The automatic steps.
    """

    def __init__(self, context: HostContext, snapshot: RunSnapshot) -> None:
        self.lock = threading.RLock()
        self.run_id = snapshot.run.run_id
        self.position = self.committed = snapshot.last_position
        self.accepted_bytes = 0
        self.counters = StepCounters()
        self._context = context
        self._first_position = snapshot.first_position
        self._tail = Tail(context.tail_budget)
        self._durable_waiters = Waiters()
        # Up to where the journal's counters go; None once the batches beyond are counted too.
        self._counted: int | None = 0
        if snapshot.counters is not None:
            self.counters.load(snapshot.counters.counts)
            self._counted = snapshot.counters.position

    # Growing. Called with the lock held.

    def append(self, writer_id: str, batch: records_pb2.Batch) -> tuple[Accepted, BatchRow]:
        """Gives the next position to a batch that has records; the row is for the caller to submit."""
        self.position += 1
        payload = batch.SerializeToString()
        size, points = len(payload), batch_points(batch.records)
        self.accepted_bytes += size
        accepted = Accepted(self.position, writer_id, batch.sequence, batch, points, size)
        return accepted, BatchRow(self.run_id, self.position, writer_id, batch.sequence, payload)

    def durable(self, accepted: Accepted) -> None:
        """A batch is durable, as are all before it."""
        self._tail.append(accepted)
        self.committed = accepted.position

    def take_due(self) -> list[Callable[[], None]]:
        """Returns the callbacks of those who waited for what is durable now."""
        return self._durable_waiters.reached(self.committed) if self._durable_waiters else []

    def when_durable(self, callback: Callable[[], None]) -> list[Callable[[], None]]:
        """Has `take_due` return the callback once all accepted so far is durable; returns what is due already."""
        self._durable_waiters.add(self.position, callback)
        return self.take_due()

    # Reading

    def after(self, position: int, max_bytes: int) -> list[Accepted]:
        """Returns durable batches from `position + 1` on; empty: there are none, or they are damaged."""
        with self.lock:
            batches = self._tail.after(position, max_bytes)
        return self.read_back(position, max_bytes) if batches is None else batches

    def read_back(self, position: int, max_bytes: int) -> list[Accepted]:
        """As `after`, from the journal."""
        return [Accepted.from_row(row) for row in self._context.journal.read(self.run_id, position, max_bytes)]

    def count_tail(self) -> None:
        """Counts, once, the rows of the batches that are newer than the journal's counters."""
        position = self._counted
        while position is not None and position < self.committed:
            batches = self.read_back(position, _READ_BYTES)
            if not batches:
                break
            with self.lock:
                for accepted in batches:
                    self.counters.fill(accepted.batch)
            position = self._counted = batches[-1].position
        self._counted = None

    # Letting go

    def submit_with_counters(self, changes: Sequence[Change], done: Done | None) -> None:
        """Submits changes together with the counters as of now, so that what lies before need not be counted again."""
        with self.lock:
            dirty = self.counters.dirty()
            counters = [CounterRows(self.run_id, self.position, dirty)] if dirty else []
            self._context.committer.submit([*changes, *counters], done)

    def applied(self, position: int) -> None:
        """Forgets what every backend has applied."""
        with self.lock:
            self._tail.drop(position)

    def trim(self, position: int) -> None:
        """Gives up, in the journal, what every backend has fsynced."""
        with self.lock:
            if position < self._first_position:
                return
            self._first_position = position + 1
        self._context.committer.trim(self.run_id, position)
