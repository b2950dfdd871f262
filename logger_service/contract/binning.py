"""How many bins, and where: from what is known of data before it is binned, wherever the data is."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from logger_service.v1 import records_pb2

MAX_BINS = 65_536
"""The greatest number of bins."""
MAX_RULE_BINS = 1_024
"""The greatest number of bins that a rule gives: for a single outlier most of them ask for any number."""
DEFAULT_RULE = "auto"

Doubles: TypeAlias = npt.NDArray[np.float64]
Wanted: TypeAlias = "int | str | Doubles"
"""A number of bins, a rule, or edges."""


@dataclass(frozen=True, slots=True)
class Moments:
    """What is known of data: but for the first three counts, of its finite values alone. 0 where there are none."""

    nan_count: int
    positive_infinity_count: int
    negative_infinity_count: int
    count: int = 0
    """How many values are finite."""
    min: float = 0.0
    max: float = 0.0
    sum: float = 0.0
    sum_squares: float = 0.0
    deviation: float = 0.0
    """The standard deviation. This and the following are only there if the rule needs them."""
    skewness: float = 0.0
    quartile_range: float = 0.0
    """From the first quartile to the third."""
    are_integers: bool = False
    """Whether the data is of a dtype of integers, for which bins narrower than 1 make no sense."""

    @property
    def range(self) -> float:
        """From the least to the greatest value; may be infinite."""
        return self.max - self.min


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule for the width of bins, as `numpy.histogram_bin_edges` has them."""

    width: Callable[[Moments], float]
    """The width; 0: the rule has none for this data. Asked with a count and a range above 0."""
    needs_deviation: bool = False
    needs_skewness: bool = False
    needs_quartiles: bool = False


def _sqrt(moments: Moments) -> float:
    return moments.range / math.sqrt(moments.count)


def _sturges(moments: Moments) -> float:
    return moments.range / (math.log2(moments.count) + 1.0)


def _rice(moments: Moments) -> float:
    return float(moments.range / (2.0 * moments.count ** (1.0 / 3)))


def _scott(moments: Moments) -> float:
    return float((24.0 * math.pi**0.5 / moments.count) ** (1.0 / 3.0) * moments.deviation)


def _freedman_diaconis(moments: Moments) -> float:
    return float(2.0 * moments.quartile_range * moments.count ** (-1.0 / 3.0))


def _doane(moments: Moments) -> float:
    n = moments.count
    if n <= 2 or not moments.deviation:
        return 0.0
    spread = math.sqrt(6.0 * (n - 2) / ((n + 1.0) * (n + 3)))
    return moments.range / (1.0 + math.log2(n) + math.log2(1.0 + abs(moments.skewness) / spread))


def _auto(moments: Moments) -> float:
    return min(max(_freedman_diaconis(moments), _sqrt(moments) / 2), _sturges(moments))


RULES = {
    "auto": Rule(_auto, needs_quartiles=True),
    "fd": Rule(_freedman_diaconis, needs_quartiles=True),
    "doane": Rule(_doane, needs_deviation=True, needs_skewness=True),
    "scott": Rule(_scott, needs_deviation=True),
    "rice": Rule(_rice),
    "sturges": Rule(_sturges),
    "sqrt": Rule(_sqrt),
}


def check_edges(edges: Doubles, what: str) -> None:
    """Checks edges of bins.

    Raises:
        ValueError: There are too few or too many, or they are not finite and ascending; the message begins with `what`.
    """
    if edges.ndim != 1 or not 2 <= len(edges) <= MAX_BINS + 1:
        raise ValueError(f"{what}: 2 to {MAX_BINS + 1:,} edges in one dimension are needed")
    if not (np.isfinite(edges).all() and (edges[1:] > edges[:-1]).all()):
        raise ValueError(f"{what}: the edges must be finite and ascend")


def edges_for(moments: Moments, wanted: Wanted) -> Doubles:
    """Returns the edges of bins that hold the data, or those wanted."""
    if not isinstance(wanted, int | str):
        return wanted
    count = wanted if isinstance(wanted, int) else _count(moments, RULES[wanted])
    if not moments.count:
        return np.linspace(0.0, 1.0, count + 1)
    low, high = moments.min, moments.max
    if low == high:
        low, high = low - 0.5, high + 0.5
    # Values so large, or so close, that there are not enough doubles between them for so many edges.
    spacing = math.ulp(max(abs(low), abs(high)))
    if high / count - low / count < 2 * spacing:
        low, high = low - count * spacing, high + count * spacing
    most = sys.float_info.max
    low, high = max(low, -most), min(high, most)
    if math.isinf(high - low):
        return np.linspace(low / 2, high / 2, count + 1) * 2
    return np.linspace(low, high, count + 1)


def _count(moments: Moments, rule: Rule) -> int:
    if not moments.count or not 0 < moments.range < math.inf:
        return 1
    width = rule.width(moments)
    if moments.are_integers and width:
        width = max(width, 1.0)
    if not width or not math.isfinite(width):
        return 1
    return max(1, math.ceil(min(moments.range / width, MAX_RULE_BINS)))


def histogram_bins(moments: Moments, edges: Doubles, counts: Sequence[int]) -> records_pb2.HistogramBins:
    """Returns bins as they travel."""
    return records_pb2.HistogramBins(
        edges=edges.tolist(),
        counts=counts,
        min=moments.min,
        max=moments.max,
        sum=moments.sum,
        sum_squares=moments.sum_squares,
        count=moments.count,
        nan_count=moments.nan_count,
        positive_infinity_count=moments.positive_infinity_count,
        negative_infinity_count=moments.negative_infinity_count,
    )
