"""One run in memory: who it is, what it has accepted, its writers, its projectors, and what its owner should know."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from logger_service.backends import registry
from logger_service.backends.base import Recovery
from logger_service.contract.errors import Reason, ServiceError
from logger_service.contract.names import run_path
from logger_service.hosting import identity, recovery
from logger_service.hosting.context import HostContext
from logger_service.hosting.projector import Projector
from logger_service.hosting.run_log import RunLog
from logger_service.hosting.waiters import Waiters
from logger_service.hosting.writer import BASELINE_WRITER_ID, WriterState
from logger_service.journal.base import NoticeRow, RunSnapshot
from logger_service.v1 import query_service_pb2, records_pb2, run_service_pb2

_log = logging.getLogger(__name__)

_NOTICES = 100


class Run:
    """A run. Its methods may be called from any thread; none blocks, but for those that say so.

    Args:
        context: What all runs share.
        snapshot: What the journal has of it.

    Attributes:
        row: What the journal is to know of it.
        log: What it has accepted; its lock guards the run too.
        writers: All who ever wrote to it, by id.
        projectors: One for each backend.
        served: The kinds of record that its backends take.
        notices: What its owner should know, oldest first.
        requests: Answers to calls with a `request_id`.
        open_lock: Held by who opens or closes the backends.
        is_open: Whether its backends are open, so that it may accept.
        is_broken: Whether it takes nothing more until the host is started again, after a fault of the host.
        is_unknown: Whether the journal knew nothing of it until now, so that what its directory holds is to be adopted.
        existed: Whether its directory was there before this host made it; None: this host did not make it.
        last_write_ns: When it was last written to; 0: never.
        last_activity: When somebody last wrote, or left, by the monotonic clock.
    """

    def __init__(self, context: HostContext, snapshot: RunSnapshot) -> None:
        self.context = context
        self.row = snapshot.run
        self.log = RunLog(context, snapshot)
        self.lock = self.log.lock
        self.open_lock = threading.Lock()
        self.writers = {row.writer_id: WriterState.from_row(row) for row in snapshot.writers}
        for rejection in snapshot.rejections:
            told = records_pb2.BatchRejections.FromString(rejection.payload)
            if rejection.writer_id in self.writers:  # its row may have been left out as damaged
                self.writers[rejection.writer_id].rejections[rejection.sequence, rejection.backend] = told
        cursors = {cursor.backend: cursor for cursor in snapshot.cursors}
        self.projectors = [
            Projector(
                context, self, self.log, spec["type"], spec["options"], cursors.get(spec["type"]), snapshot.is_whole
            )
            for spec in json.loads(self.row.backends)
        ]
        self.served = frozenset(
            capability.kind
            for projector in self.projectors
            for capability in registry.backend_class(projector.type).capabilities()
            if capability.support != run_service_pb2.SUPPORT_NONE
        )
        self.notices = list(snapshot.notices)
        self.requests = {row.key: row for row in snapshot.requests}
        self.is_open = False
        self.is_broken = False
        self.is_unknown = False
        self.existed: bool | None = None
        self.last_write_ns = snapshot.last_write_ns
        self.last_activity = time.monotonic()
        self._applied_waiters = Waiters()

    # Who it is

    @property
    def run_id(self) -> str:
        """The id."""
        return self.row.run_id

    @property
    def name(self) -> str:
        """`namespace/exp_name`."""
        return f"{self.row.namespace}/{self.row.exp_name}"

    @property
    def log_dir(self) -> str:
        """Where its files are, relative to the data directory, with `/`."""
        return run_path(self.row.namespace, self.row.exp_name)

    @property
    def directory(self) -> Path:
        """The run's directory."""
        return self.context.settings.data_dir / self.log_dir

    @property
    def identity(self) -> identity.Identity:
        """What `run.json` is to say."""
        row = self.row
        return identity.Identity(row.run_id, row.epoch, row.namespace, row.exp_name, row.created_ns)

    def remember(self, **changes: Any) -> None:
        """Changes the run's row; `context.committer.commit([])` waits until the journal knows it."""
        with self.lock:
            self.row = replace(self.row, **changes)
            self.context.committer.submit([self.row])

    def raise_epoch(self, epoch: int) -> None:
        """Takes over a higher epoch, from a client that has seen it; a lower one changes nothing. Blocks."""
        with self.lock:
            if epoch <= self.row.epoch:
                return
            self.remember(epoch=epoch)
        # First the journal, then the directory: one that is ahead of the journal would be taken for another's.
        self.context.committer.commit([])
        identity.write(self.context.settings.data_dir, self.identity)

    # How far it is

    @property
    def has_sessions(self) -> bool:
        """Whether a writer is connected."""
        return any(writer.session is not None for writer in self.writers.values())

    @property
    def applied(self) -> int:
        """The position up to which all backends are written."""
        return min(projector.applied for projector in self.projectors)

    @property
    def backlog_bytes(self) -> int:
        """How much is accepted and not yet applied by all backends."""
        return self.log.accepted_bytes - min(projector.applied_bytes for projector in self.projectors)

    @property
    def is_awaited(self) -> bool:
        """Whether somebody waits for something to be applied."""
        return bool(self._applied_waiters)

    def wake_projectors(self, *, urgent: bool) -> None:
        """Has the projectors get on: at once, or before what they have waited too long."""
        delay = 0.0 if urgent else self.context.settings.write_after_s
        for projector in self.projectors:
            if not projector.problem:
                self.context.pool.schedule(projector.task, delay)

    def when_durable(self, writer_id: str, sequence: int, callback: Callable[[], None]) -> None:
        """Calls back once a writer's batch, or without a writer all that was accepted so far, is durable.

        Raises:
            ServiceError: INVALID_FIELD: there is no such writer.
        """
        with self.lock:
            if writer_id:
                writer = self.writers.get(writer_id)
                if writer is None:
                    message = f"writer_id: the run has no writer {writer_id!r}"
                    raise ServiceError(Reason.INVALID_FIELD, message, field="writer_id")
                writer.committed_waiters.add(sequence, callback)
                due = writer.committed_waiters.reached(writer.committed_sequence)
            else:
                due = self.log.when_durable(callback)
        for ready in due:
            ready()

    def when_applied(self, position: int, callback: Callable[[], None]) -> None:
        """Calls back once all backends are written up to a position."""
        with self.lock:
            self._applied_waiters.add(position, callback)
            reachable = self.applied < position <= self.log.committed
        # What is not durable yet wakes them when it is.
        if reachable:
            for projector in self.projectors:  # also one that waits for its next try
                self.context.pool.schedule(projector.task)
        self.fire_applied()

    def when_writer_applied(self, writer_id: str, callback: Callable[[], None]) -> None:
        """As `when_applied`, for all that is durable of a writer, or without a writer of the run."""
        with self.lock:
            position = self.writers[writer_id].last_position if writer_id else self.log.committed
        self.when_applied(position, callback)

    def fire_applied(self) -> None:
        """Calls back whoever waits for what is applied now."""
        with self.lock:
            due = self._applied_waiters.reached(self.applied)
        for callback in due:
            callback()

    # What its projectors tell

    def got_on(self) -> None:
        """A projector has written more."""
        self.log.applied(self.applied)
        self.fire_applied()

    def checkpointed(self) -> None:
        """A projector's checkpoint is durable."""
        self.log.trim(min(projector.checkpointed for projector in self.projectors))

    def refused(self, writer_id: str, told: records_pb2.BatchRejections) -> None:
        """A backend refused records for good, and the journal knows it."""
        with self.lock:
            writer = self.writers.get(writer_id)
            if writer is None:
                return
            writer.rejections[told.sequence, told.backend] = told
            session = writer.session
        if session is not None:
            session.refused_later(told)

    def missing(self, first: int, last: int) -> None:
        """The journal lost the batches of these positions."""
        self.add_notice(
            "JOURNAL_DAMAGED",
            f"accepted batches {first} to {last} of the run cannot be read back; what files hold of them was kept",
        )

    def recovered(self, found: Recovery, *, adopted: bool) -> int:
        """Takes over what a recovery found.

        Returns:
            How many points the files hold that no writer of this journal wrote.
        """
        with self.lock:
            counts = self.log.counters.counts
            points = sum(max(0, rows - counts.get(key, 0)) for key, rows in found.rows.items())
            self.log.counters.raise_to(found.rows)
            if points:
                baseline = self.writers.setdefault(BASELINE_WRITER_ID, WriterState(BASELINE_WRITER_ID, self.row.epoch))
                baseline.status = query_service_pb2.WRITER_STATUS_FINISHED
                baseline.accepted += points
                baseline.last_seen_ns = time.time_ns()
                self.log.submit_with_counters([baseline.row(self.run_id)], None)
        for kind, message in recovery.notices(found, points, adopted=adopted):
            self.add_notice(kind, message)
        if found.mended:
            _log.warning("run %s: torn ends of files were cut: %s", self.name, recovery.named(found.mended))
        return points

    def add_notice(self, kind: str, message: str) -> None:
        """Keeps, in the ledger, something that happened."""
        _log.warning("run %s: %s: %s", self.name, kind, message)
        notice = NoticeRow(self.run_id, time.time_ns(), kind, message)
        with self.lock:
            self.notices = [*self.notices[-_NOTICES + 1 :], notice]
            self.context.committer.submit([notice])
