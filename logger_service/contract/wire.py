"""Records as they travel: made from what was logged, and asked what they hold.

`Record` of `records.proto` is the one representation, from the buffer of a logger to the backend that writes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from logger_service.contract.groups import Taken, rows_per_record
from logger_service.contract.names import check_name
from logger_service.v1 import records_pb2, values_pb2

MAX_COLUMNS = 16_384
"""The greatest number of names in one record of metric rows."""
MAX_VALUES = 1_048_576
"""The greatest number of values in one record of metric rows."""


def encode_records(taken: Taken) -> list[records_pb2.Record]:
    """Makes records of what a `RecordBuffer` gave away, in its order; long groups become several records.

    Raises:
        ValueError: Values of it are late: it was not settled.
    """
    records: list[records_pb2.Record] = []
    for item in taken:
        if isinstance(item, records_pb2.Record):
            records.append(item)
            continue
        if item.late:
            raise ValueError("values are late: what was taken must be settled before it is encoded")
        rows, columns, limit = len(item.times), len(item.names), rows_per_record(len(item.names))
        for begin in range(0, rows, limit):
            end = min(begin + limit, rows)
            record = records_pb2.Record()
            metrics = record.metrics
            metrics.names.extend(item.names)
            if limit >= rows:
                metrics.steps.extend(item.steps)
                metrics.time_unix_nano.extend(item.times)
                metrics.values.extend(item.values)
            else:
                metrics.steps.extend(item.steps[begin:end])
                metrics.time_unix_nano.extend(item.times[begin:end])
                metrics.values.extend(item.values[begin * columns : end * columns])
            records.append(record)
    return records


def text_record(name: str, text: str, step: int | None, time_ns: int) -> records_pb2.Record:
    """Makes the record of a text.

    Raises:
        TypeError: `name` or `text` is not a `str`.
        ValueError: `name` is not a name, or `text` has a surrogate, which UTF-8 cannot hold.
    """
    check_name(name)
    if not isinstance(text, str):
        raise TypeError(f"the text of {name!r} must be a str, not {type(text).__name__}")
    record = records_pb2.Record()
    try:
        record.text.name, record.text.text, record.text.time_unix_nano = name, text, time_ns
    except UnicodeEncodeError:
        raise ValueError(f"the text of {name!r} has a surrogate, which UTF-8 cannot hold") from None
    if step is not None:
        record.text.step = step
    return record


def histogram_record(name: str, bins: records_pb2.HistogramBins, step: int | None, time_ns: int) -> records_pb2.Record:
    """Makes the record of a histogram, whose name has been checked."""
    histogram = records_pb2.HistogramRecord(name=name, step=step, time_unix_nano=time_ns, bins=bins)
    return records_pb2.Record(histogram=histogram)


def hparams_record(hparams: values_pb2.MapValue, time_ns: int) -> records_pb2.Record:
    """Makes the record of hyperparameters."""
    return records_pb2.Record(hparams=records_pb2.HparamsRecord(hparams=hparams, time_unix_nano=time_ns))


def points(record: records_pb2.Record) -> int:
    """Returns how many points a record holds: its values if it has rows of metrics, else 1."""
    return len(record.metrics.values) if record.HasField("metrics") else 1


def batch_points(records: Iterable[records_pb2.Record]) -> int:
    """Returns how many points records hold together."""
    return sum(map(points, records))


def row_count(rows: records_pb2.MetricRows) -> int:
    """Returns how many rows there are."""
    return len(rows.values) // len(rows.names) if rows.names else 0


def column_steps(rows: records_pb2.MetricRows, column: int) -> Sequence[int]:
    """Returns the steps of one column, of rows whose automatic steps are filled in."""
    if rows.steps:
        return rows.steps
    first = rows.first_steps[column]
    return range(first, first + row_count(rows))
