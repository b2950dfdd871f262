"""Writers: what a host knows of each, and the session of one that is connected."""

from __future__ import annotations

import json
import threading
from collections import Counter, deque
from collections.abc import Callable
from typing import Protocol

from logger_service.contract.errors import Reason, ServiceError
from logger_service.hosting.waiters import Waiters
from logger_service.journal.base import WriterRow
from logger_service.v1 import logging_service_pb2, query_service_pb2, records_pb2

_WRITING = query_service_pb2.WRITER_STATUS_WRITING
_FINISHED = query_service_pb2.WRITER_STATUS_FINISHED
_VANISHED = query_service_pb2.WRITER_STATUS_VANISHED

UNARY_WRITER_ID = "unary"
"""Under which the batches of unary calls are journaled. A client's writer is never called so: its id is hexadecimal."""
BASELINE_WRITER_ID = "adopted"
"""Under which the points are counted that a run's files held beyond what this journal knew."""


def _nothing() -> None:
    """What a session calls on progress while nobody listens."""


class WriterState:
    """A writer of a run, connected or not. Guarded by the run's lock."""

    def __init__(self, writer_id: str, epoch: int) -> None:
        self.writer_id = writer_id
        self.epoch = epoch
        self.status: int = _WRITING
        self.client = ""
        self.last_seen_ns = 0
        self.last_sequence = 0
        """The last one given a position."""
        self.committed_sequence = 0
        """The last one that is durable."""
        self.last_position = 0
        self.accepted = 0
        self.repeated = 0
        self.dropped = 0
        self.rejected: Counter[str] = Counter()
        self.rejections: dict[tuple[int, str], records_pb2.BatchRejections] = {}
        """Those that the writer may not have seen, by sequence and backend."""
        self.committed_waiters = Waiters()
        """Who waits for a sequence to be durable."""
        self.session: WriterSession | None = None

    @classmethod
    def from_row(cls, row: WriterRow) -> WriterState:
        """Restores what the journal holds; one that was writing when the host ended has vanished until it is back."""
        writer = cls(row.writer_id, row.epoch)
        writer.status = _VANISHED if row.status == _WRITING else row.status
        writer.client = row.client
        writer.last_seen_ns = row.last_seen_ns
        writer.last_sequence = writer.committed_sequence = row.last_sequence
        writer.last_position = row.last_position
        writer.accepted, writer.repeated, writer.dropped = row.accepted, row.repeated, row.dropped
        writer.rejected = Counter(json.loads(row.rejected))
        return writer

    def row(self, run_id: str) -> WriterRow:
        """What the journal is to hold."""
        return WriterRow(
            run_id,
            self.writer_id,
            self.epoch,
            self.status,
            self.last_sequence,
            self.last_position,
            self.last_seen_ns,
            self.client,
            self.accepted,
            self.repeated,
            self.dropped,
            json.dumps(self.rejected) if self.rejected else "{}",
        )


class Entrance(Protocol):
    """Where a session's batches go."""

    def accept(self, writer: WriterState, session: WriterSession, batch: records_pb2.Batch, size: int) -> None:
        """Decides on a batch."""
        ...

    def leave(self, writer: WriterState, session: WriterSession, status: int, done: Callable[[], None]) -> None:
        """The connection ends."""
        ...


class WriterSession:
    """The connection of one writer. `accept`, `finish` and `vanish` are called by the transport, one at a time.

    Attributes:
        welcome: What the writer is answered first.
        on_progress: Called, from any thread, when `acknowledgement`, `finished`, `failed` or `pending_bytes` may say
            something new.
    """

    def __init__(
        self, entrance: Entrance, writer: WriterState, welcome: logging_service_pb2.Welcome, first_held: int
    ) -> None:
        self.welcome = welcome
        self.on_progress: Callable[[], None] = _nothing
        self._entrance = entrance
        self._writer = writer
        self._lock = threading.Lock()
        self._pending_bytes = 0
        self._accepted_sent = welcome.last_sequence
        self._applied = self._applied_sent = 0
        self._rejections = deque(
            rejections for (sequence, _), rejections in sorted(writer.rejections.items()) if sequence >= first_held
        )
        self._finishing = False
        self._finished = False
        self._failed: ServiceError | None = None

    @property
    def pending_bytes(self) -> int:
        """The size of the batches that are neither durable nor refused."""
        return self._pending_bytes

    @property
    def finished(self) -> bool:
        """Whether the writer said Finish and all of it is durable."""
        return self._finished

    @property
    def failed(self) -> ServiceError | None:
        """Why the stream must end; None: it need not."""
        return self._failed

    def accept(self, batch: records_pb2.Batch, size: int) -> None:
        """Takes a batch. Never blocks; `on_progress` follows once it is durable.

        Args:
            batch: The batch; belongs to the host from now on.
            size: Its size on the wire, in bytes.

        Raises:
            ServiceError: The stream ends with it; the batch was not taken.
        """
        if self._failed is not None:
            raise self._failed
        if self._finishing:
            raise ServiceError(Reason.INVALID_FIELD, "nothing may follow Finish", field="message")
        with self._lock:
            self._pending_bytes += size
        self._entrance.accept(self._writer, self, batch, size)

    def acknowledgement(self) -> logging_service_pb2.Acknowledgement | None:
        """Returns what is new since the last call; None: nothing."""
        with self._lock:
            accepted, applied = self._writer.committed_sequence, self._applied
            rejections = list(self._rejections)
            self._rejections.clear()
            if not rejections and accepted == self._accepted_sent and applied == self._applied_sent:
                return None
            self._accepted_sent, self._applied_sent = accepted, applied
        return logging_service_pb2.Acknowledgement(accepted=accepted, applied=applied, rejections=rejections)

    def finish(self) -> None:
        """The writer is done. `finished` turns True once everything it sent is durable."""
        self._finishing = True
        self._entrance.leave(self._writer, self, _FINISHED, self._set_finished)

    def vanish(self) -> None:
        """The connection ended. Without a Finish before, the writer counts as vanished."""
        if not self._finishing:
            self._entrance.leave(self._writer, self, _VANISHED, _nothing)

    # What follows is called by the run.

    def decided(self, size: int, rejections: records_pb2.BatchRejections | None) -> None:
        """A batch of `size` bytes is durable; `on_progress` is the caller's to call."""
        with self._lock:
            self._pending_bytes -= size
            if rejections is not None:
                self._rejections.append(rejections)

    def refused_later(self, rejections: records_pb2.BatchRejections) -> None:
        """A backend refused records for good."""
        with self._lock:
            self._rejections.append(rejections)
        self.on_progress()

    def applied(self, sequence: int) -> None:
        """Everything up to a sequence is applied."""
        with self._lock:
            self._applied = max(self._applied, sequence)
        self.on_progress()

    def fail(self, error: ServiceError) -> None:
        """Ends the stream."""
        self._failed = error
        self.on_progress()

    def _set_finished(self) -> None:
        self._finished = True
        self.on_progress()
