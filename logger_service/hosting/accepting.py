"""How a batch gets into a run: checked, deduplicated, numbered, journaled, and told to those who wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from logger_service.contract.errors import Reason, ServiceError
from logger_service.contract.wire import batch_points
from logger_service.hosting.admission import admit
from logger_service.hosting.identity import MOST
from logger_service.hosting.run import Run
from logger_service.hosting.tail import Accepted
from logger_service.hosting.writer import WriterSession, WriterState
from logger_service.journal.base import Change, ForgetRejections, RejectionRow
from logger_service.v1 import logging_service_pb2, query_service_pb2, records_pb2

_URGENT_BYTES = 64 << 10
_MOST_DROPPED = 1 << 40


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
    lost: Callable[[], None] | None = None
    """Instead, if the journal will never take it."""


class Entrance:
    """The way into one run, of streams and unary calls alike. Nothing here blocks.

    Args:
        run: The run.
    """

    def __init__(self, run: Run) -> None:
        self.run = run

    # Streams

    def connect(self, hello: logging_service_pb2.Hello) -> WriterSession:
        """Makes a session for a writer; the run must be open, or closed for good.

        Raises:
            ServiceError: WRITER_FENCED, JOURNAL_LOST.
        """
        run = self.run
        with run.lock:
            if run.is_broken:
                raise ServiceError(Reason.INTERNAL)
            self._check_epoch(hello.epoch)
            writer = run.writers.get(hello.writer_id)
            last = writer.last_sequence if writer else 0
            if hello.first_held > last + 1:
                raise self._journal_lost(hello, last)
            if writer is None:
                writer = run.writers[hello.writer_id] = WriterState(hello.writer_id, hello.epoch)
            if writer.session is not None:
                writer.session.fail(ServiceError(Reason.SEQUENCE_GAP, "the writer opened another stream"))
            writer.epoch = hello.epoch
            writer.status = query_service_pb2.WRITER_STATUS_WRITING
            writer.client = hello.client
            writer.last_seen_ns = time.time_ns()
            welcome = logging_service_pb2.Welcome(
                last_sequence=writer.committed_sequence, epoch=run.row.epoch, limits=run.context.settings.limits
            )
            writer.session = WriterSession(self, writer, welcome, hello.first_held)
            return writer.session

    def leave(self, writer: WriterState, session: WriterSession, status: int, done: Callable[[], None]) -> None:
        """A writer's connection ends; `done` is called once all it sent, and how it left, is durable."""
        run = self.run
        with run.lock:
            if writer.session is session:
                writer.session = None
                writer.status = status
                writer.last_seen_ns = time.time_ns()
                run.last_activity = time.monotonic()
                run.context.committer.submit([writer.row(run.run_id)], lambda _: done())

    def accept(self, writer: WriterState, session: WriterSession, batch: records_pb2.Batch, size: int) -> None:
        """Decides on a batch and submits it to the journal.

        Raises:
            ServiceError: It was not taken.
        """
        run = self.run
        _check_numbers(batch)
        with run.lock:
            sequence = batch.sequence
            if sequence <= writer.last_sequence:
                self._repeat(writer, session, batch, size)
                return
            if sequence != writer.last_sequence + 1:
                message = f"sequence {sequence} does not follow {writer.last_sequence}"
                raise ServiceError(Reason.SEQUENCE_GAP, message, field="sequence")
            self.check_writable(writer.epoch)
            changes: list[Change] = []
            self._forget_rejections(writer, batch.first_held, changes)
            rejections = self.admit(batch, size)
            told = self._remember_rejections(writer, sequence, rejections, changes) if rejections else None
            writer.dropped += batch.dropped
            run.log.counters.fill(batch)
            self.append(writer, batch, changes, Decided(session=session, size=size, told=told))
            if batch.wait_applied:
                run.when_applied(run.log.position, lambda: session.applied(sequence))

    def _repeat(self, writer: WriterState, session: WriterSession, batch: records_pb2.Batch, size: int) -> None:
        writer.repeated += batch_points(batch.records)
        sequence = batch.sequence
        if batch.wait_applied:
            # Its own position is not known, but it is not beyond the writer's last one.
            self.run.when_applied(writer.last_position, lambda: session.applied(sequence))
        writer.committed_waiters.add(sequence, lambda: session.decided(size, None))
        for callback in writer.committed_waiters.reached(writer.committed_sequence):
            callback()
        session.on_progress()

    def _journal_lost(self, hello: logging_service_pb2.Hello, last: int) -> ServiceError:
        first_lost, last_lost = last + 1, hello.first_held - 1
        self.run.add_notice(
            "JOURNAL_LOST",
            f"batches {first_lost} to {last_lost} of writer {hello.writer_id} were acknowledged by a journal that is "
            "gone; files were continued as they are; what was not acknowledged then may stand twice",
        )
        return ServiceError(
            Reason.JOURNAL_LOST,
            f"batches {first_lost} to {last_lost} were acknowledged, and the journal no longer has them",
            metadata={"first_sequence": str(first_lost), "last_sequence": str(last_lost)},
        )

    def _remember_rejections(
        self, writer: WriterState, sequence: int, rejections: list[records_pb2.Rejection], changes: list[Change]
    ) -> records_pb2.BatchRejections:
        told = records_pb2.BatchRejections(sequence=sequence, rejections=rejections)
        changes.append(RejectionRow(self.run.run_id, writer.writer_id, sequence, "", told.SerializeToString()))
        writer.rejections[sequence, ""] = told
        for rejection in rejections:
            writer.rejected[Reason(rejection.reason).name] += rejection.points
        return told

    def _forget_rejections(self, writer: WriterState, first_held: int, changes: list[Change]) -> None:
        seen = [key for key in writer.rejections if key[0] < first_held]
        if seen:
            for key in seen:
                del writer.rejections[key]
            changes.append(ForgetRejections(self.run.run_id, writer.writer_id, first_held))

    # Steps that streams and unary calls share. Called with the run's lock held.

    def check_writable(self, epoch: int) -> None:
        """Raises why nothing new can be written at present, if so."""
        self._check_epoch(epoch)
        run = self.run
        if run.is_broken:
            raise ServiceError(Reason.INTERNAL)
        if run.row.closed:
            raise ServiceError(Reason.RUN_CLOSED)
        if run.context.draining:
            raise ServiceError(Reason.SHUTTING_DOWN)
        if run.backlog_bytes > run.context.settings.backlog_bytes:
            raise ServiceError(Reason.JOURNAL_FULL)

    def _check_epoch(self, epoch: int) -> None:
        current = self.run.row.epoch
        if epoch < current:
            raise ServiceError(Reason.WRITER_FENCED, f"the run is at epoch {current}, the writer at {epoch}")

    def admit(self, batch: records_pb2.Batch, size: int) -> list[records_pb2.Rejection]:
        """Removes what is refused from a batch and returns why."""
        return admit(
            batch,
            size,
            served=self.run.served,
            known_names=self.run.log.counters.counts,
            max_record_bytes=self.run.context.settings.max_record_bytes,
            now_ns=time.time_ns(),
        )

    def append(self, writer: WriterState, batch: records_pb2.Batch, changes: list[Change], decided: Decided) -> None:
        """Submits a batch that is admitted and has its steps filled in."""
        run = self.run
        decided.writer = writer
        decided.sequence = writer.last_sequence = batch.sequence
        if batch.records:
            accepted, row = run.log.append(writer.writer_id, batch)
            decided.accepted = accepted
            changes.append(row)
            writer.last_position = accepted.position
            writer.accepted += accepted.points
        writer.last_seen_ns = run.last_write_ns = time.time_ns()
        run.last_activity = time.monotonic()
        changes.append(writer.row(run.run_id))
        run.context.committer.submit_for(self, changes, decided)

    def durable(self, notes: list[Decided]) -> None:
        """Batches are committed. Called by the committer, in the order of positions."""
        run = self.run
        due: list[Callable[[], None]] = []
        sessions: dict[WriterSession, None] = {}
        with run.lock:
            for decided in notes:
                writer, session = decided.writer, decided.session
                if session is not None:
                    session.decided(decided.size, decided.told)
                if decided.accepted is not None:
                    run.log.durable(decided.accepted)
                writer.committed_sequence = decided.sequence
                if writer.committed_waiters:
                    due += writer.committed_waiters.reached(decided.sequence)
                if decided.then is not None:
                    due.append(decided.then)
                if writer.session is not None:
                    sessions[writer.session] = None
            due += run.log.take_due()
        for callback in due:
            callback()
        for session in sessions:
            session.on_progress()
        if run.applied < run.log.committed:
            run.wake_projectors(urgent=run.is_awaited or run.backlog_bytes >= _URGENT_BYTES)
        run.fire_applied()

    def lost(self, note: Decided, fault: Exception) -> None:
        """The journal will never take a batch: what follows it cannot be acknowledged until the run is loaded again."""
        run = self.run
        with run.lock:
            run.is_broken = True
            sessions = [writer.session for writer in run.writers.values() if writer.session is not None]
        for session in sessions:
            session.fail(ServiceError(Reason.INTERNAL))
        if note.lost is not None:
            note.lost()


def _check_numbers(batch: records_pb2.Batch) -> None:
    """Refuses numbers that no client can come to, and no journal has to hold."""
    for name, least, most in (
        ("sequence", 1, MOST),
        ("first_held", 0, batch.sequence),
        ("dropped", 0, _MOST_DROPPED),
    ):
        if not least <= getattr(batch, name) <= most:
            raise ServiceError(Reason.INVALID_FIELD, f"{name}: not within {least} and {most}", field=name)
