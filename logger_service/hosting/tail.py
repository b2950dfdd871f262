"""The newest accepted batches of a run, kept in memory so that projectors need not read them back from the journal."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass

from logger_service.contract.wire import batch_points
from logger_service.journal.base import BatchRow
from logger_service.v1 import records_pb2


@dataclass(frozen=True, slots=True)
class Accepted:
    """A batch at its position."""

    position: int
    writer_id: str
    sequence: int
    batch: records_pb2.Batch
    points: int
    size: int
    """Of its payload, in bytes."""

    @classmethod
    def from_row(cls, row: BatchRow) -> Accepted:
        """Reads back what the journal holds."""
        batch = records_pb2.Batch.FromString(row.payload)
        count = batch_points(batch.records)
        return cls(row.position, row.writer_id, row.sequence, batch, count, len(row.payload))


class TailBudget:
    """What all tails of a host may hold together."""

    def __init__(self, size: int) -> None:
        self._left = size
        self._lock = threading.Lock()

    def take(self, size: int) -> bool:
        """Reserves `size` bytes; False: there are not so many left."""
        with self._lock:
            if size > self._left:
                return False
            self._left -= size
            return True

    def give_back(self, size: int) -> None:
        """Returns what was reserved."""
        with self._lock:
            self._left += size


class Tail:
    """A contiguous run of newest batches; the oldest go first where the budget ends. Guarded by the run's lock."""

    def __init__(self, budget: TailBudget) -> None:
        self._budget = budget
        self._batches: deque[Accepted] = deque()

    def append(self, accepted: Accepted) -> None:
        """Adds the newest batch."""
        while not self._budget.take(accepted.size):
            if not self._batches:
                return  # it will be read back from the journal
            self._drop_oldest()
        self._batches.append(accepted)

    def after(self, position: int, max_bytes: int) -> list[Accepted] | None:
        """Returns batches from `position + 1` on, at most about `max_bytes`; None: they are not in memory."""
        batches = self._batches
        if not batches or batches[0].position > position + 1:
            return None
        taken: list[Accepted] = []
        size = 0
        for accepted in batches:
            if accepted.position <= position:
                continue
            if taken and size + accepted.size > max_bytes:
                break
            taken.append(accepted)
            size += accepted.size
        return taken

    def drop(self, upto: int) -> None:
        """Forgets what every projector has applied."""
        while self._batches and self._batches[0].position <= upto:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        self._budget.give_back(self._batches.popleft().size)
