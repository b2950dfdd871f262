"""One run in memory: its writers, its automatic steps, its newest batches, its projectors, and how a batch gets in."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from logger_service.backends import registry
from logger_service.backends.base import RECORD_KINDS
from logger_service.contract.errors import Reason, ServiceError
from logger_service.contract.names import run_path
from logger_service.contract.steps import StepCounters
from logger_service.contract.wire import batch_points
from logger_service.hosting import identity
from logger_service.hosting.admission import admit
from logger_service.hosting.committer import Committer
from logger_service.hosting.pool import TaskPool
from logger_service.hosting.projector import Projector
from logger_service.hosting.settings import HostSettings
from logger_service.hosting.tail import Accepted, Tail, TailBudget
from logger_service.hosting.waiters import Waiters
from logger_service.hosting.writer import WriterSession, WriterState
from logger_service.journal.base import (
    BatchRow,
    Change,
    CounterRows,
    ForgetRejections,
    Journal,
    NoticeRow,
    RejectionRow,
    RunRow,
    RunSnapshot,
)
from logger_service.v1 import logging_service_pb2, query_service_pb2, records_pb2, run_service_pb2

_log = logging.getLogger(__name__)

_URGENT_BYTES = 64 << 10
_NOTICES = 100


@dataclass
class HostContext:
    """What all runs of a host share."""

    settings: HostSettings
    journal: Journal
    committer: Committer
    pool: TaskPool
    tail_budget: TailBudget
    draining: bool = False


@dataclass(slots=True)
class Decided:
    """A batch on its way through the journal, and what is to happen once it is durable."""

    writer: WriterState = field(init=False)
    sequence: int = field(init=False)
    accepted: Accepted | None = field(init=False, default=None)
    """None: none of its records was."""
    session: WriterSession | None = None
    size: int = 0
    """On the wire, in bytes."""
    told: records_pb2.BatchRejections | None = None
    then: Callable[[], None] | None = None


class Run:
    """A run. Its methods may be called from any thread; none blocks, but for those that say so.

    Args:
        context: What all runs share.
        snapshot: What the journal has of it.
    """

    def __init__(self, context: HostContext, snapshot: RunSnapshot) -> None:
        self.context = context
        self.lock = threading.RLock()
        self.open_lock = threading.Lock()
        """Held by who opens or closes the backends."""
        self.row = snapshot.run
        self.committed = self._position = snapshot.last_position
        self.first_position = snapshot.first_position
        self.last_write_ns = snapshot.last_write_ns
        self.counters = StepCounters()
        self.counters_position = 0
        """As of where the journal's counters were when it was loaded."""
        if snapshot.counters is not None:
            self.counters.load(snapshot.counters.counts)
            self.counters_position = snapshot.counters.position
        self.writers = {row.writer_id: WriterState.from_row(row) for row in snapshot.writers}
        for rejection in snapshot.rejections:
            told = records_pb2.BatchRejections.FromString(rejection.payload)
            self.writers[rejection.writer_id].rejections[rejection.sequence, rejection.backend] = told
        cursors = {cursor.backend: cursor for cursor in snapshot.cursors}
        self.projectors = [
            Projector(self, spec["type"], spec["options"], cursors.get(spec["type"]))
            for spec in json.loads(self.row.backends)
        ]
        self.served = frozenset(
            capability.kind
            for projector in self.projectors
            for capability in registry.backend_class(projector.type).capabilities()
            if capability.support != run_service_pb2.SUPPORT_NONE
        )
        assert self.served <= set(RECORD_KINDS)
        self.notices = list(snapshot.notices)
        self.requests = {row.key: row for row in snapshot.requests}
        self.is_unknown = False
        """Whether the journal knew nothing of it until now, so that what its directory holds is to be adopted."""
        self.is_counted = False
        """Whether `counters` cover the batches beyond `counters_position`."""
        self.is_open = False
        """Whether its backends are open, so that it may accept."""
        self.last_activity = time.monotonic()
        self._tail = Tail(context.tail_budget)
        self.accepted_bytes = 0
        """Of payloads, since the host started."""
        self._committed_waiters = Waiters()
        self._applied_waiters = Waiters()

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

    @property
    def applied(self) -> int:
        """The position up to which all backends are written."""
        return min(projector.applied for projector in self.projectors)

    @property
    def backlog_bytes(self) -> int:
        """How much is accepted and not yet applied by all backends."""
        return self.accepted_bytes - min(projector.applied_bytes for projector in self.projectors)

    @property
    def has_sessions(self) -> bool:
        """Whether a writer is connected."""
        return any(writer.session is not None for writer in self.writers.values())

    # Writers

    def connect(self, hello: logging_service_pb2.Hello) -> WriterSession:
        """Makes a session for a writer; the run must be open.

        Raises:
            ServiceError: WRITER_FENCED, JOURNAL_LOST.
        """
        with self.lock:
            self._check_epoch(hello.epoch)
            writer = self.writers.get(hello.writer_id)
            last = writer.last_sequence if writer else 0
            if hello.first_held > last + 1:
                raise self._journal_lost(hello, last)
            if hello.epoch > self.row.epoch:
                self._raise_epoch(hello.epoch)
            if writer is None:
                writer = self.writers[hello.writer_id] = WriterState(hello.writer_id, hello.epoch)
            if writer.session is not None:
                writer.session.fail(ServiceError(Reason.SEQUENCE_GAP, "the writer opened another stream"))
            writer.epoch = hello.epoch
            writer.status = query_service_pb2.WRITER_STATUS_WRITING
            writer.client = hello.client
            writer.last_seen_ns = time.time_ns()
            welcome = logging_service_pb2.Welcome(
                last_sequence=writer.committed_sequence, epoch=self.row.epoch, limits=self.context.settings.limits
            )
            writer.session = WriterSession(self, writer, welcome, hello.first_held)
            return writer.session

    def _check_epoch(self, epoch: int) -> None:
        if epoch < self.row.epoch:
            raise ServiceError(Reason.WRITER_FENCED, f"the run is at epoch {self.row.epoch}, the writer at {epoch}")

    def _journal_lost(self, hello: logging_service_pb2.Hello, last: int) -> ServiceError:
        first_lost, last_lost = last + 1, hello.first_held - 1
        self.add_notice(
            "JOURNAL_LOST",
            f"batches {first_lost} to {last_lost} of writer {hello.writer_id} were acknowledged by a journal that is "
            "gone; files were continued as they are; what was not acknowledged then may stand twice",
        )
        return ServiceError(
            Reason.JOURNAL_LOST,
            f"batches {first_lost} to {last_lost} were acknowledged, and the journal no longer has them",
            metadata={"first_sequence": str(first_lost), "last_sequence": str(last_lost)},
        )

    def _raise_epoch(self, epoch: int) -> None:
        self.row = replace(self.row, epoch=epoch)
        self.context.committer.submit([self.row])
        identity.write(self.directory, self.identity)

    def leave(self, writer: WriterState, session: WriterSession, status: int, done: Callable[[], None]) -> None:
        """A writer's connection ends; `done` is called once all it sent, and how it left, is durable."""
        with self.lock:
            if writer.session is session:
                writer.session = None
                writer.status = status
                writer.last_seen_ns = time.time_ns()
                self.last_activity = time.monotonic()
                self.context.committer.submit([writer.row(self.run_id)], done)

    # Accepting

    def accept(self, writer: WriterState, session: WriterSession, batch: records_pb2.Batch, size: int) -> None:
        """Decides on a batch and submits it to the journal.

        Raises:
            ServiceError: It was not taken.
        """
        with self.lock:
            if batch.sequence <= writer.last_sequence:
                self._repeat(writer, session, batch, size)
                return
            if batch.sequence != writer.last_sequence + 1:
                raise ServiceError(
                    Reason.SEQUENCE_GAP,
                    f"sequence {batch.sequence} does not follow {writer.last_sequence}",
                    field="sequence",
                )
            self.check_writable(writer.epoch)
            changes: list[Change] = []
            self._forget_rejections(writer, batch.first_held, changes)
            rejections = self.admit(batch, size)
            told = self._remember_rejections(writer, batch.sequence, rejections, changes) if rejections else None
            writer.dropped += batch.dropped
            self.counters.fill(batch)
            self.append(writer, batch, changes, Decided(session=session, size=size, told=told))
            if batch.wait_applied:
                sequence = batch.sequence
                self._applied_waiters.add(self._position, lambda: session.applied(sequence))

    def _remember_rejections(
        self, writer: WriterState, sequence: int, rejections: list[records_pb2.Rejection], changes: list[Change]
    ) -> records_pb2.BatchRejections:
        told = records_pb2.BatchRejections(sequence=sequence, rejections=rejections)
        changes.append(RejectionRow(self.run_id, writer.writer_id, sequence, "", told.SerializeToString()))
        writer.rejections[sequence, ""] = told
        for rejection in rejections:
            writer.rejected[Reason(rejection.reason).name] += rejection.points
        return told

    def _repeat(self, writer: WriterState, session: WriterSession, batch: records_pb2.Batch, size: int) -> None:
        writer.repeated += batch_points(batch.records)
        sequence = batch.sequence
        if batch.wait_applied:
            # Its own position is not known, but it is not beyond the writer's last one.
            self._applied_waiters.add(writer.last_position, lambda: session.applied(sequence))
            self._fire_applied()
        writer.committed_waiters.add(sequence, lambda: session.decided(size, None))
        for callback in writer.committed_waiters.reached(writer.committed_sequence):
            callback()
        session.on_progress()

    def check_writable(self, epoch: int) -> None:
        """Raises why nothing new can be written at present, if so."""
        self._check_epoch(epoch)
        if self.row.closed:
            raise ServiceError(Reason.RUN_CLOSED)
        if self.context.draining:
            raise ServiceError(Reason.SHUTTING_DOWN)
        if self.backlog_bytes > self.context.settings.backlog_bytes:
            raise ServiceError(Reason.JOURNAL_FULL)

    def _forget_rejections(self, writer: WriterState, first_held: int, changes: list[Change]) -> None:
        seen = [key for key in writer.rejections if key[0] < first_held]
        if seen:
            for key in seen:
                del writer.rejections[key]
            changes.append(ForgetRejections(self.run_id, writer.writer_id, first_held))

    def admit(self, batch: records_pb2.Batch, size: int) -> list[records_pb2.Rejection]:
        """Removes what is refused from a batch and returns why. Called with the lock held."""
        return admit(
            batch,
            size,
            served=self.served,
            known_names=self.counters.counts,
            max_record_bytes=self.context.settings.max_record_bytes,
            now_ns=time.time_ns(),
        )

    def append(self, writer: WriterState, batch: records_pb2.Batch, changes: list[Change], decided: Decided) -> None:
        """Gives a batch, admitted and its steps filled in, its position, and submits it. Called with the lock held."""
        decided.writer = writer
        decided.sequence = sequence = batch.sequence
        if batch.records:
            self._position += 1
            payload = batch.SerializeToString()
            count = batch_points(batch.records)
            decided.accepted = Accepted(self._position, writer.writer_id, sequence, batch, count, len(payload))
            changes.append(BatchRow(self.run_id, self._position, writer.writer_id, sequence, payload))
            writer.last_position = self._position
            writer.accepted += count
            self.accepted_bytes += len(payload)
        writer.last_sequence = sequence
        writer.last_seen_ns = self.last_write_ns = time.time_ns()
        self.last_activity = time.monotonic()
        changes.append(writer.row(self.run_id))
        self.context.committer.submit_for(self, changes, decided)

    def durable(self, notes: list[Decided]) -> None:
        """Batches are committed. Called by the committer, in the order of positions."""
        due: list[Callable[[], None]] = []
        sessions: dict[WriterSession, None] = {}
        with self.lock:
            for decided in notes:
                writer, session = decided.writer, decided.session
                if session is not None:
                    session.decided(decided.size, decided.told)
                if decided.accepted is not None:
                    self._tail.append(decided.accepted)
                    self.committed = decided.accepted.position
                writer.committed_sequence = decided.sequence
                if writer.committed_waiters:
                    due += writer.committed_waiters.reached(decided.sequence)
                if decided.then is not None:
                    due.append(decided.then)
                if writer.session is not None:
                    sessions[writer.session] = None
            due += self._committed_waiters.reached(self.committed)
            urgent = bool(self._applied_waiters) or self.backlog_bytes >= _URGENT_BYTES
        for callback in due:
            callback()
        for session in sessions:
            session.on_progress()
        if self.applied < self.committed:
            self.wake_projectors(urgent=urgent)
        self._fire_applied()

    # Projectors

    def wake_projectors(self, *, urgent: bool) -> None:
        """Has the projectors get on: at once, or before what they have waited too long."""
        delay = 0.0 if urgent else self.context.settings.write_after_s
        for projector in self.projectors:
            if not projector.problem:
                self.context.pool.schedule(projector.task, delay)

    def accepted_after(self, position: int, max_bytes: int) -> list[Accepted]:
        """Returns accepted batches from `position + 1` on; empty: there are none, or they are damaged."""
        with self.lock:
            batches = self._tail.after(position, max_bytes)
        return self.read_back(position, max_bytes) if batches is None else batches

    def read_back(self, position: int, max_bytes: int) -> list[Accepted]:
        """As `accepted_after`, from the journal."""
        return [Accepted.from_row(row) for row in self.context.journal.read(self.run_id, position, max_bytes)]

    def got_on(self) -> None:
        """A projector got on."""
        with self.lock:
            self._tail.drop(self.applied)
        self._fire_applied()

    def _fire_applied(self) -> None:
        with self.lock:
            due = self._applied_waiters.reached(self.applied)
        for callback in due:
            callback()

    def refused_later(self, writer_id: str, told: records_pb2.BatchRejections) -> None:
        """A backend refused records for good."""
        with self.lock:
            writer = self.writers[writer_id]
            writer.rejections[told.sequence, told.backend] = told
            session = writer.session
        if session is not None:
            session.refused_later(told)

    def submit_with_counters(self, changes: Sequence[Change], done: Callable[[], None] | None) -> None:
        """Submits changes together with the automatic-step counters as of now."""
        with self.lock:
            dirty = self.counters.dirty()
            position = self._position
            counters = [CounterRows(self.run_id, position, dirty)] if dirty else []
            self.context.committer.submit([*changes, *counters], done)

    def trim(self) -> None:
        """Gives up what no projector and no counter needs any more."""
        upto = min(projector.checkpointed for projector in self.projectors)
        if upto >= self.first_position:
            self.first_position = upto + 1
            self.context.committer.trim(self.run_id, upto)

    # Waiting

    def when_durable(self, writer_id: str, sequence: int, callback: Callable[[], None]) -> None:
        """Calls back once a writer's batch, or without a writer all that was accepted so far, is durable.

        Raises:
            ServiceError: INVALID_FIELD: there is no such writer.
        """
        with self.lock:
            if writer_id:
                writer = self.writers.get(writer_id)
                if writer is None:
                    raise ServiceError(
                        Reason.INVALID_FIELD, f"writer_id: the run has no writer {writer_id!r}", field="writer_id"
                    )
                writer.committed_waiters.add(sequence, callback)
                due = writer.committed_waiters.reached(writer.committed_sequence)
            else:
                self._committed_waiters.add(self._position, callback)
                due = self._committed_waiters.reached(self.committed)
        for ready in due:
            ready()

    def when_applied(self, writer_id: str, callback: Callable[[], None]) -> None:
        """Calls back once what is durable of a writer, or without a writer of the run, is applied by all backends."""
        with self.lock:
            position = self.writers[writer_id].last_position if writer_id else self.committed
            self._applied_waiters.add(position, callback)
        self.wake_projectors(urgent=True)
        self._fire_applied()

    # What its owner should know

    def add_notice(self, kind: str, message: str) -> None:
        """Keeps, in the ledger, something that happened."""
        _log.warning("run %s: %s: %s", self.name, kind, message)
        notice = NoticeRow(self.run_id, time.time_ns(), kind, message)
        with self.lock:
            self.notices = [*self.notices[-_NOTICES + 1 :], notice]
            self.context.committer.submit([notice])

    def remember(self, changes: dict[str, Any]) -> None:
        """Changes the run's row, durably (blocks)."""
        with self.lock:
            self.row = replace(self.row, **changes)
            row: RunRow = self.row
        self.context.committer.commit([row])
