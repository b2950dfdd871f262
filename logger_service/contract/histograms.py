"""Histograms: made where the data is, so that bins and moments travel and the data does not."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
import numpy.typing as npt

from logger_service.contract import device_histograms, tensors
from logger_service.contract.arrays import is_masked
from logger_service.contract.binning import (
    DEFAULT_RULE,
    MAX_BINS,
    RULES,
    Doubles,
    Moments,
    Wanted,
    check_edges,
    edges_for,
    histogram_bins,
)
from logger_service.v1 import records_pb2


def bin_data(name: str, data: Any, bins: Any = DEFAULT_RULE) -> records_pb2.HistogramBins:
    """Bins data, on its device if it is a tensor.

    Args:
        name: The histogram's name, for messages.
        data: A tensor, an array or a (nested) list of real numbers, of any shape.
        bins: How many bins of one width, 1 to 65,536, from the least to the greatest value; or their edges, ascending:
            what is beyond them is in no bin; or a rule that tells how many, at most 1,024: `auto`, `fd`, `doane`,
            `scott`, `rice`, `sturges` or `sqrt`, as in `numpy.histogram_bin_edges`.

    Returns:
        Bins and moments. Where no value is finite, empty bins from 0 to 1, unless edges are given; where all are alike,
        bins around that value.

    Raises:
        TypeError: The data is not of real numbers, or `bins` is none of these; the message names the histogram.
        ValueError: `bins` is out of range, or its edges do not ascend.
        RuntimeError: The data is on a CUDA device, and a CUDA graph is being captured, or the device failed.
    """
    wanted = _check_bins(name, bins)
    try:
        if tensors.is_tensor(data):
            tensors.check(data)
            if not data.is_cpu:
                return device_histograms.bin_tensor(data, wanted)
        array = _as_array(data)
    except TypeError as error:
        raise TypeError(f"the data of histogram {name!r} cannot be binned: {error}") from error
    return bin_array(array, wanted)


def bin_array(array: npt.NDArray[Any], wanted: Wanted) -> records_pb2.HistogramBins:
    """Bins an array of real numbers."""
    are_integers = array.dtype.kind in "biu"
    values: Doubles = array.astype(np.float64, copy=False).ravel()
    others = (0, 0, 0)
    if not are_integers:
        is_finite = np.isfinite(values)
        if not is_finite.all():
            nan, positive = int(np.isnan(values).sum()), int((values == math.inf).sum())
            others = (nan, positive, int((values == -math.inf).sum()))
            values = values[is_finite]
    moments = _moments(values, others, are_integers, wanted)
    edges = edges_for(moments, wanted)
    if isinstance(wanted, int | str) and math.isfinite(float(edges[-1]) - float(edges[0])):
        # The same edges, and several times as fast.
        counts = np.histogram(values, bins=len(edges) - 1, range=(edges[0], edges[-1]))[0]
    else:
        counts = np.histogram(values, edges)[0]
    return histogram_bins(moments, edges, counts.tolist())


def _moments(values: Doubles, others: tuple[int, int, int], are_integers: bool, wanted: Wanted) -> Moments:
    if not len(values):
        return Moments(*others)
    rule = RULES[wanted] if isinstance(wanted, str) else None
    deviation = skewness = quartile_range = 0.0
    with np.errstate(over="ignore", invalid="ignore"):  # The squares of large doubles are infinite.
        if rule is not None and rule.needs_deviation:
            deviation = float(values.std())
        if rule is not None and rule.needs_skewness and deviation:
            skewness = float((((values - values.mean()) / deviation) ** 3).mean())
        if rule is not None and rule.needs_quartiles:
            first, third = np.percentile(values, [25, 75])
            quartile_range = float(third - first)
        return Moments(
            *others,
            count=len(values),
            min=float(values.min()),
            max=float(values.max()),
            sum=float(values.sum()),
            sum_squares=float(np.dot(values, values)),
            deviation=deviation,
            skewness=skewness,
            quartile_range=quartile_range,
            are_integers=are_integers,
        )


def _check_bins(name: str, bins: Any) -> Wanted:
    what = f"bins of histogram {name!r}"
    if isinstance(bins, str):
        if bins not in RULES:
            raise ValueError(f"{what}: the rules are {', '.join(RULES)}; {bins!r} is none of them")
        return bins
    if isinstance(bins, numbers.Integral) and not isinstance(bins, bool):
        count = int(bins)
        if not 1 <= count <= MAX_BINS:
            raise ValueError(f"{what}: 1 to {MAX_BINS:,} are allowed, not {count}")
        return count
    try:
        if isinstance(bins, numbers.Real):
            raise TypeError
        edges = _as_array(bins).astype(np.float64)
    except TypeError:
        raise TypeError(f"{what} must be their number, their edges or a rule, not {type(bins).__name__}") from None
    check_edges(edges, what)
    return edges


def _as_array(data: Any) -> npt.NDArray[Any]:
    """Returns real numbers as an array.

    Raises:
        TypeError: They are none.
    """
    if tensors.is_tensor(data):
        return tensors.as_array(data)
    if not isinstance(data, list | tuple | np.ndarray | np.generic | numbers.Real):
        raise TypeError(f"it is of type {type(data).__name__}")
    if is_masked(data) or (isinstance(data, list | tuple) and any(map(is_masked, data))):
        raise TypeError("it is masked: log what is not, array.compressed()")
    if isinstance(data, list | tuple) and any(map(tensors.is_tensor, data)):
        data = [tensors.as_array(value) if tensors.is_tensor(value) else value for value in data]
    try:
        array = np.asarray(data)
        if array.dtype.kind == "O":  # Integers beyond 64 bits, fractions, or what is no number.
            array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise TypeError("it holds what is not a real number, or lists of several lengths") from None
    if array.dtype.kind not in "biuf":
        raise TypeError(f"it is of dtype {array.dtype}")
    return array
