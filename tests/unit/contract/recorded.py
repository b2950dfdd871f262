"""A logger that ends at a `RecordBuffer`, and what was logged into it, read back from the records."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence

from logger_service.contract.buffer import RecordBuffer
from logger_service.contract.groups import settle
from logger_service.contract.late import Late
from logger_service.contract.logger import FlushLevel, Logger
from logger_service.contract.values import from_map
from logger_service.contract.wire import column_steps, encode_records
from logger_service.v1 import records_pb2


class BufferSink:
    """The least sink: a buffer behind a lock. Counts the points whose values never came, by the reason."""

    def __init__(self) -> None:
        self.lost: Counter[str] = Counter()
        self.buffer = RecordBuffer()
        self._lock = threading.Lock()

    def add_scalar(self, name: str, value: float, step: int | None) -> None:
        with self._lock:
            self.buffer.add_scalar(name, value, step, time.time_ns())

    def add_row(
        self,
        names: tuple[str, ...],
        values: list[float],
        step: int | None,
        texts: Sequence[tuple[str, str]] = (),
        late: Late | None = None,
    ) -> None:
        with self._lock:
            self.buffer.add_row(names, values, step, time.time_ns(), texts, late)

    def add_record(self, record: records_pb2.Record) -> None:
        with self._lock:
            self.buffer.add_record(record, record.ByteSize())

    def take(self) -> list[records_pb2.Record]:
        with self._lock:
            taken = self.buffer.take()
        self.lost += Counter(settle(taken))
        return encode_records(taken)


class BufferLogger(Logger):
    """A logger into a buffer. Counts how often it was flushed and ended."""

    _backend_type = "buffer"

    def __init__(self, exp_name: str = "run", log_dir: str = "logs") -> None:
        self.sink = BufferSink()
        self.flushes: list[tuple[float | None, FlushLevel]] = []
        self.shutdowns: list[float | None] = []
        super().__init__(exp_name, log_dir, self.sink)

    def _flush(self, timeout: float | None, level: FlushLevel) -> None:
        self.flushes.append((timeout, level))

    def _shutdown(self, timeout: float | None) -> None:
        self.shutdowns.append(timeout)


def scalars(records: Sequence[records_pb2.Record]) -> dict[str, list[tuple[int | None, float]]]:
    """Returns (step, value) by name; the step is None where an automatic one was asked for."""
    points: dict[str, list[tuple[int | None, float]]] = {}
    for record in records:
        rows = record.metrics
        columns = len(rows.names)
        for column, name in enumerate(rows.names):
            values = rows.values[column::columns]
            steps = column_steps(rows, column) if rows.steps or rows.first_steps else [None] * len(values)
            points.setdefault(name, []).extend(zip(steps, values, strict=True))
    return points


def texts(records: Sequence[records_pb2.Record]) -> list[tuple[str, int | None, str]]:
    """Returns (name, step, text) of each text."""
    found = [record.text for record in records if record.HasField("text")]
    return [(text.name, text.step if text.HasField("step") else None, text.text) for text in found]


def hparams(records: Sequence[records_pb2.Record]) -> list[dict[str, object]]:
    """Returns the hyperparameters of each record."""
    return [from_map(record.hparams.hparams) for record in records if record.HasField("hparams")]
