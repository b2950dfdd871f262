"""Histograms of a CSV run: a line of JSON for each."""

from __future__ import annotations

import numpy as np

from logger_service.backends.json_text import json_line
from logger_service.contract.binning import DEFAULT_RULE
from logger_service.contract.histograms import bin_array
from logger_service.v1 import records_pb2


def histogram_line(histogram: records_pb2.HistogramRecord) -> bytes:
    """Returns a histogram as a line of JSON, whose keys are the fields of `HistogramBins`.

    Raw values are binned here, by the same code in a replay. Where no value is finite, `min` and `max` are null.
    """
    bins = histogram.bins
    if histogram.HasField("raw"):
        bins = bin_array(np.asarray(histogram.raw.values, np.float64), histogram.raw.bin_count or DEFAULT_RULE)
    return json_line(
        {
            "step": histogram.step,
            "time_unix_nano": histogram.time_unix_nano,
            "edges": list(bins.edges),
            "counts": list(bins.counts),
            "min": bins.min if bins.count else None,
            "max": bins.max if bins.count else None,
            "sum": bins.sum,
            "sum_squares": bins.sum_squares,
            "count": bins.count,
            "nan_count": bins.nan_count,
            "positive_infinity_count": bins.positive_infinity_count,
            "negative_infinity_count": bins.negative_infinity_count,
        }
    )
