"""Steps and times of records.

Steps are any int64, or automatic, when a row gets the number of rows of its name that came before it.
"""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Mapping
from typing import Any

from logger_service.v1 import records_pb2

METRICS = "metrics"
"""The kind of metric rows; the other kinds are called as the fields of `Record.kind` too."""


MIN_STEP = -(2**63)
MAX_STEP = 2**63 - 1


def check_step(step: Any) -> int:
    """Returns the step as an int.

    Raises:
        TypeError: It is not an integer by `operator.index` (NumPy's are, and integer tensors of one element).
        ValueError: It is not an int64.
    """
    try:
        index = operator.index(step)
    except TypeError:
        raise TypeError(f"step must be an integer, not {type(step).__name__}") from None
    if not MIN_STEP <= index <= MAX_STEP:
        raise ValueError("step must be an int64: at least -2**63 and below 2**63")
    return index


def check_walltime(walltime: Any) -> int:
    """Returns a time in seconds since 1970 as nanoseconds.

    Raises:
        TypeError: It is not a real number.
        ValueError: It is not after 1970, or later than an int64 of nanoseconds can say.
    """
    if not isinstance(walltime, numbers.Real) or isinstance(walltime, bool):
        raise TypeError(f"walltime must be a number of seconds, not {type(walltime).__name__}")
    seconds = float(walltime)
    if not (math.isfinite(seconds) and 1 <= seconds * 1e9 < 2**63):
        raise ValueError(f"walltime must be seconds after 1970, and before 2262, not {seconds!r}")
    part, whole = math.modf(seconds)
    return int(whole) * 10**9 + round(part * 1e9)


class StepCounters:
    """Counts the rows of each name and kind. Not thread-safe.

    Attributes:
        counts: Rows so far by (kind, name). Kinds are the fields of `Record.kind`; hparams are counted under name "".
    """

    def __init__(self) -> None:
        self.counts: dict[tuple[str, str], int] = {}
        self._dirty: set[tuple[str, str]] = set()

    def fill(self, batch: records_pb2.Batch) -> None:
        """Fills in the automatic steps of a batch, in place, and counts its rows, those with steps too.

        What is filled in already, as in a replayed batch, stays.
        """
        for record in batch.records:
            kind = record.WhichOneof("kind")
            if kind == METRICS:
                self._fill_rows(record.metrics)
            elif kind is not None:
                self._fill_single(kind, getattr(record, kind))

    def dirty(self) -> dict[tuple[str, str], int]:
        """Returns the counts that changed since the last call."""
        changed = {key: self.counts[key] for key in self._dirty}
        self._dirty.clear()
        return changed

    def load(self, counts: Mapping[tuple[str, str], int]) -> None:
        """Sets the counts to those of a checkpoint; nothing is dirty then."""
        self.counts = dict(counts)
        self._dirty.clear()

    def raise_to(self, counts: Mapping[tuple[str, str], int]) -> None:
        """Raises counts to what files were found to hold; those that are higher already stay."""
        for key, count in counts.items():
            if count > self.counts.get(key, 0):
                self.counts[key] = count
                self._dirty.add(key)

    def add(self, counts: Mapping[tuple[str, str], int]) -> None:
        """Counts rows that others have logged."""
        for key, count in counts.items():
            self.counts[key] = self.counts.get(key, 0) + count
            self._dirty.add(key)

    def _fill_rows(self, rows: records_pb2.MetricRows) -> None:
        if not rows.names:
            return
        counts = self.counts
        keys = [(METRICS, name) for name in rows.names]
        before = [counts.get(key, 0) for key in keys]
        if not rows.steps and not rows.first_steps:
            rows.first_steps.extend(before)
        added = len(rows.values) // len(keys)
        counts.update(zip(keys, [count + added for count in before], strict=True))
        self._dirty.update(keys)

    def _fill_single(
        self,
        kind: str,
        record: records_pb2.HistogramRecord
        | records_pb2.TextRecord
        | records_pb2.HparamsRecord
        | records_pb2.VideoRecord
        | records_pb2.ImageRecord,
    ) -> None:
        if isinstance(record, records_pb2.HparamsRecord):
            key = (kind, "")
        else:
            key = (kind, record.name)
            if not record.HasField("step"):
                record.step = self.counts.get(key, 0)
        self.counts[key] = self.counts.get(key, 0) + 1
        self._dirty.add(key)
