"""The easy door: one record in one call, on an opened run, answered once it is journaled."""

from __future__ import annotations

import hashlib
import time
from concurrent.futures import Future

from logger_service.contract.errors import Reason, ServiceError
from logger_service.hosting.accepting import Decided, Entrance
from logger_service.hosting.writer import UNARY_WRITER_ID, WriterState
from logger_service.journal.base import Change, RequestRow
from logger_service.v1 import logging_service_pb2, query_service_pb2, records_pb2

KEEP_NS = 600 * 10**9
"""How long the answer to a `request_id` is kept."""

Steps = dict[str, int]


def request_key(method: str, request_id: str) -> bytes | None:
    """Hashes a `request_id`; None: there is none."""
    if not request_id:
        return None
    if len(request_id.encode()) > 128:
        raise ServiceError(Reason.INVALID_FIELD, "request_id: at most 128 bytes are allowed", field="request_id")
    return hashlib.blake2b(f"{method}\0{request_id}".encode(), digest_size=16).digest()


class UnaryDoor:
    """Logs single records to a run. Guarded by the run's lock.

    Args:
        entrance: The way into the run.
    """

    def __init__(self, entrance: Entrance) -> None:
        self.entrance = entrance
        self._run = entrance.run
        self._pending: dict[bytes, Future[Steps]] = {}

    def log(self, record: records_pb2.Record, epoch: int | None, key: bytes | None) -> Future[Steps]:
        """Submits a record; the run must be open. The future has name to step, once durable.

        Raises:
            ServiceError: It was refused, whole.
        """
        run = self._run
        answered: Future[Steps] = Future()
        if key is not None:
            if key in self._pending:
                return self._pending[key]
            earlier = run.requests.get(key)
            if earlier is not None and earlier.expires_ns > time.time_ns():
                answered.set_result(dict(logging_service_pb2.LogMetricsResponse.FromString(earlier.response).steps))
                return answered
        self.entrance.check_writable(run.row.epoch if epoch is None else epoch)
        batch = records_pb2.Batch(records=[record])
        rejections = self.entrance.admit(batch, batch.ByteSize())
        if rejections:
            first = rejections[0]
            raise ServiceError(Reason(first.reason), first.message, field="metrics" if first.names else "")
        writer = run.writers.get(UNARY_WRITER_ID)
        if writer is None:
            writer = run.writers[UNARY_WRITER_ID] = WriterState(UNARY_WRITER_ID, run.row.epoch)
            writer.status = query_service_pb2.WRITER_STATUS_FINISHED
        changes: list[Change] = []
        batch.sequence = batch.first_held = writer.last_sequence + 1
        run.log.counters.fill(batch)
        steps = _steps(batch.records[0])
        if key is not None:
            response = logging_service_pb2.LogMetricsResponse(steps=steps).SerializeToString()
            row = RequestRow(run.run_id, key, response, time.time_ns() + KEEP_NS)
            changes.append(row)
            self._pending[key] = answered

        def durable() -> None:
            if key is not None:
                with run.lock:
                    run.requests[key] = row
                    del self._pending[key]
                    self._forget_expired()
            answered.set_result(steps)

        def lost() -> None:
            with run.lock:
                self._pending.pop(key or b"", None)
            answered.set_exception(ServiceError(Reason.INTERNAL))

        self.entrance.append(writer, batch, changes, Decided(then=durable, lost=lost))
        return answered

    def _forget_expired(self) -> None:
        now = time.time_ns()
        requests = self._run.requests
        while requests:
            oldest = next(iter(requests))
            if requests[oldest].expires_ns > now:
                break
            del requests[oldest]


def _steps(record: records_pb2.Record) -> Steps:
    if record.WhichOneof("kind") == "metrics":
        rows = record.metrics
        return dict(zip(rows.names, rows.first_steps or [rows.steps[0]] * len(rows.names), strict=True))
    if record.WhichOneof("kind") == "hparams":
        return {}
    single = getattr(record, record.WhichOneof("kind") or "")
    return {single.name: single.step}
