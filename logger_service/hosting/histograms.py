"""The rules of histograms, as the contract's comments state them."""

from __future__ import annotations

import math

import numpy as np

from logger_service.contract.binning import MAX_BINS, check_edges
from logger_service.contract.errors import Reason, ServiceError
from logger_service.contract.wire import MAX_VALUES
from logger_service.v1 import records_pb2


def check_histogram(record: records_pb2.HistogramRecord) -> None:
    """Checks the data of a histogram.

    Raises:
        ServiceError: It breaks a rule.
    """
    if record.HasField("bins"):
        _check_bins(record.bins)
    elif record.HasField("raw"):
        _check_raw(record.raw)
    else:
        raise ServiceError(Reason.INVALID_FIELD, "data: bins or raw values are required", field="data")


def _check_bins(bins: records_pb2.HistogramBins) -> None:
    edges = np.asarray(bins.edges, np.float64)
    try:
        check_edges(edges, "edges")
    except ValueError as error:
        raise ServiceError(Reason.INVALID_FIELD, str(error), field="edges") from None
    if len(bins.counts) != len(edges) - 1:
        raise ServiceError(
            Reason.INVALID_SHAPE,
            f"counts: {len(edges):,} edges need {len(edges) - 1:,} counts, got {len(bins.counts):,}",
            field="counts",
        )
    binned = sum(bins.counts)
    if binned > bins.count:
        raise ServiceError(
            Reason.INVALID_FIELD,
            f"count: at least the sum of counts, {binned:,}, is needed, got {bins.count:,}",
            field="count",
        )
    if bins.count and not -math.inf < bins.min <= bins.max < math.inf:
        raise ServiceError(
            Reason.INVALID_FIELD,
            f"min, max: must be finite, and min not above max, got {bins.min} and {bins.max}",
            field="min",
        )


def _check_raw(raw: records_pb2.RawValues) -> None:
    if len(raw.values) > MAX_VALUES:
        raise ServiceError(
            Reason.TOO_LARGE, f"values: at most {MAX_VALUES:,} are allowed, got {len(raw.values):,}", field="values"
        )
    if raw.bin_count > MAX_BINS:
        raise ServiceError(
            Reason.INVALID_FIELD,
            f"bin_count: at most {MAX_BINS:,} are allowed, got {raw.bin_count:,}",
            field="bin_count",
        )
