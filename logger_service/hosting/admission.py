"""Decides which records of a batch are accepted, by the rules that the contract's comments state."""

from __future__ import annotations

from collections.abc import Container

import numpy as np

from logger_service.contract.errors import Reason, ServiceError
from logger_service.contract.names import check_name, first_repeated
from logger_service.contract.values import check_map
from logger_service.contract.wire import MAX_COLUMNS, MAX_VALUES, points
from logger_service.hosting.histograms import check_histogram
from logger_service.v1 import records_pb2


def admit(
    batch: records_pb2.Batch,
    size: int,
    *,
    served: Container[str],
    known_names: Container[tuple[str, str]],
    max_record_bytes: int,
    now_ns: int,
) -> list[records_pb2.Rejection]:
    """Removes from a batch what is refused, and fills in the times that it leaves to the host.

    Args:
        batch: The batch; changed in place.
        size: Its size in bytes, at least about.
        served: The kinds of record that the run's backends take.
        known_names: (kind, name) pairs that were found valid before.
        max_record_bytes: The greatest size of a record.
        now_ns: The host's time.

    Returns:
        What was refused, by the index that the record had.
    """
    rejections: list[records_pb2.Rejection] = []
    refused: list[int] = []
    for index, record in enumerate(batch.records):
        try:
            kind = record.WhichOneof("kind")
            if kind is None or kind not in served:
                raise ServiceError(Reason.NOT_SERVED, f"records of kind {kind or 'unknown'!r} are not served")
            if size > max_record_bytes and record.ByteSize() > max_record_bytes:
                raise ServiceError(
                    Reason.TOO_LARGE,
                    f"the record has {record.ByteSize():,} bytes; at most {max_record_bytes:,} are allowed",
                )
            if kind == "metrics":
                rejections += _admit_rows(index, record.metrics, known_names, now_ns)
                if not record.metrics.names:
                    refused.append(index)
            else:
                _admit_single(kind, getattr(record, kind), known_names, now_ns)
        except ServiceError as error:
            refused.append(index)
            rejections.append(_rejection(index, [], error, points(record)))
    for index in reversed(refused):
        del batch.records[index]
    return rejections


def _rejection(index: int, names: list[str], error: ServiceError, count: int) -> records_pb2.Rejection:
    return records_pb2.Rejection(
        record=index,
        names=names,
        reason=error.reason.value,
        message=error.message,
        points=count,
    )


def _checked(name: str, kind: str, known: Container[tuple[str, str]]) -> None:
    if (kind, name) in known:
        return
    try:
        check_name(name)
    except ValueError as error:
        raise ServiceError(Reason.INVALID_NAME, str(error), field="name") from None


def _admit_rows(
    index: int, rows: records_pb2.MetricRows, known: Container[tuple[str, str]], now_ns: int
) -> list[records_pb2.Rejection]:
    # Each access to a repeated field makes a new container object: they are looked up once.
    names, steps, times = list(rows.names), rows.steps, rows.time_unix_nano
    width, size, timed = len(names), len(rows.values), len(times)
    if not 1 <= width <= MAX_COLUMNS:
        raise ServiceError(
            Reason.INVALID_FIELD, f"names: 1 to {MAX_COLUMNS:,} are allowed, got {width:,}", field="names"
        )
    if size > MAX_VALUES:
        raise ServiceError(
            Reason.TOO_LARGE, f"values: at most {MAX_VALUES:,} are allowed, got {size:,}", field="values"
        )
    if rows.first_steps:
        raise ServiceError(Reason.INVALID_FIELD, "first_steps is the host's to set", field="first_steps")
    count = len(steps) or size // width
    if count == 0 or size != count * width:
        raise ServiceError(
            Reason.INVALID_SHAPE,
            f"values: {count} rows of {width} names need {count * width:,} values, got {size:,}",
            field="values",
        )
    if timed not in (0, count):
        raise ServiceError(
            Reason.INVALID_SHAPE,
            f"time_unix_nano: {count} rows need {count} times, got {timed}",
            field="time_unix_nano",
        )
    twice = first_repeated(names) if width > 1 else None
    if twice is not None:
        raise ServiceError(Reason.DUPLICATE_NAME, f"names: {twice!r} stands twice", field="names")
    if not timed:
        times.extend([now_ns] * count)
    if all(("metrics", name) in known for name in names):
        return []
    return _drop_bad_columns(index, rows, names, count, known)


def _drop_bad_columns(
    index: int, rows: records_pb2.MetricRows, names: list[str], count: int, known: Container[tuple[str, str]]
) -> list[records_pb2.Rejection]:
    rejections = []
    keep = []
    for at, name in enumerate(names):
        try:
            _checked(name, "metrics", known)
            keep.append(at)
        except ServiceError as error:
            rejections.append(_rejection(index, [name], error, count))
    if rejections:
        values = np.asarray(rows.values).reshape(count, len(names))[:, keep].ravel().tolist()
        del rows.names[:], rows.values[:]
        rows.names.extend([names[at] for at in keep])
        rows.values.extend(values)
    return rejections


def _admit_single(
    kind: str,
    record: records_pb2.HistogramRecord | records_pb2.TextRecord | records_pb2.HparamsRecord,
    known: Container[tuple[str, str]],
    now_ns: int,
) -> None:
    if isinstance(record, records_pb2.HparamsRecord):
        try:
            check_map(record.hparams)
        except ValueError as error:
            raise ServiceError(Reason.INVALID_FIELD, f"hparams: {error}", field="hparams") from None
    else:
        _checked(record.name, kind, known)
        if isinstance(record, records_pb2.HistogramRecord):
            check_histogram(record)
    if record.time_unix_nano == 0:
        record.time_unix_nano = now_ns
