"""Tells what became of a run's points, and how the run and its writers stand."""

from __future__ import annotations

import json
from collections import Counter

from logger_service.hosting.run import Run
from logger_service.hosting.writer import BASELINE_WRITER_ID, UNARY_WRITER_ID
from logger_service.v1 import query_service_pb2, run_service_pb2

_WRITERS_SHOWN = 1000


def ledger_of(run: Run) -> run_service_pb2.Ledger:
    """Returns the run's ledger."""
    with run.lock:
        rejected: Counter[str] = Counter()
        accepted = repeated = dropped = 0
        for writer in run.writers.values():
            accepted += writer.accepted
            repeated += writer.repeated
            dropped += writer.dropped
            rejected.update(writer.rejected)
        refused = sum(rejected.values())
        return run_service_pb2.Ledger(
            sent=accepted + repeated + refused,
            accepted=accepted,
            repeated=repeated,
            rejected=refused,
            rejected_by_reason=dict(rejected),
            dropped=dropped,
            backends=[
                run_service_pb2.BackendLedger(
                    type=projector.type,
                    applied=projector.applied_points,
                    rejected=projector.rejected_points,
                    lag=max(0, accepted - projector.applied_points - projector.rejected_points),
                    problem=projector.problem,
                )
                for projector in run.projectors
            ],
            notices=[
                run_service_pb2.Notice(time_unix_nano=notice.time_ns, kind=notice.kind, message=notice.message)
                for notice in run.notices
            ],
        )


def points_of(run: Run) -> int:
    """Returns how many points the run has."""
    with run.lock:
        return sum(writer.accepted for writer in run.writers.values())


def status_of(run: Run) -> query_service_pb2.RunStatus:
    """Says where the run stands."""
    with run.lock:
        if run.row.closed:
            return query_service_pb2.RUN_STATUS_CLOSED
        if run.has_sessions:
            return query_service_pb2.RUN_STATUS_RUNNING
        writers = [writer for writer in run.writers.values() if writer.writer_id != BASELINE_WRITER_ID]
        last = max(writers, key=lambda writer: writer.last_seen_ns, default=None)
        if last is not None and last.status == query_service_pb2.WRITER_STATUS_VANISHED:
            return query_service_pb2.RUN_STATUS_INTERRUPTED
        return query_service_pb2.RUN_STATUS_FINISHED


def describe(run: Run) -> query_service_pb2.Run:
    """Returns what ListRuns and GetRun say of a run."""
    row = run.row
    return query_service_pb2.Run(
        run_id=row.run_id,
        namespace=row.namespace,
        exp_name=row.exp_name,
        status=status_of(run),
        epoch=row.epoch,
        log_dir=run.log_dir,
        backends=[projector.type for projector in run.projectors],
        created_unix_nano=row.created_ns,
        last_write_unix_nano=run.last_write_ns,
        points=points_of(run),
        tags=json.loads(row.tags),
        notes=row.notes,
    )


def writers_of(run: Run) -> list[query_service_pb2.Writer]:
    """Returns the run's writers, last seen first, without those that stand for no client."""
    with run.lock:
        shown = [
            writer for writer in run.writers.values() if writer.writer_id not in (UNARY_WRITER_ID, BASELINE_WRITER_ID)
        ]
        shown.sort(key=lambda writer: -writer.last_seen_ns)
        return [
            query_service_pb2.Writer(
                writer_id=writer.writer_id,
                status=writer.status,  # type: ignore[arg-type]
                last_sequence=writer.committed_sequence,
                last_seen_unix_nano=writer.last_seen_ns,
                client=writer.client,
            )
            for writer in shown[:_WRITERS_SHOWN]
        ]
