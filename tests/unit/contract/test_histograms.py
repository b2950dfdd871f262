"""Histograms: the bins that NumPy makes, moments, and what is no histogram."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from logger_service.contract.binning import MAX_BINS, MAX_RULE_BINS, RULES
from logger_service.contract.device_histograms import bin_tensor
from logger_service.contract.histograms import bin_data
from logger_service.v1 import records_pb2

RANDOM = np.random.default_rng(0)
SHAPES = {
    "normal": RANDOM.normal(size=5_000),
    "uniform": RANDOM.uniform(-3, 7, size=1_000),
    "skewed": RANDOM.exponential(size=3_000),
    "integers": RANDOM.integers(-20, 20, size=2_000),
    "few": np.array([1.0, 2.0, 4.0]),
    "two": np.array([1.0, 2.0]),
}


def check(bins: records_pb2.HistogramBins, data: Any) -> None:
    """Checks what holds for every histogram whose edges were not given."""
    values = np.asarray(data, np.float64).ravel()
    finite = values[np.isfinite(values)]
    edges, counts = list(bins.edges), list(bins.counts)
    assert len(edges) == len(counts) + 1
    assert all(before < after for before, after in itertools.pairwise(edges))
    assert all(map(math.isfinite, edges))
    assert sum(counts) == bins.count == len(finite)
    assert bins.nan_count == np.isnan(values).sum()
    assert bins.positive_infinity_count == (values == math.inf).sum()
    assert bins.negative_infinity_count == (values == -math.inf).sum()
    if len(finite):
        assert (bins.min, bins.max) == (finite.min(), finite.max())
        assert edges[0] <= bins.min
        assert bins.max <= edges[-1]
        for index, count in enumerate(counts):
            is_last = index == len(counts) - 1
            below = finite <= edges[index + 1] if is_last else finite < edges[index + 1]
            assert ((finite >= edges[index]) & below).sum() == count


@pytest.mark.parametrize("bins", [1, 7, 100, *RULES])
@pytest.mark.parametrize("shape", SHAPES)
def test_bins_are_numpys(shape, bins):
    data = SHAPES[shape]
    made = bin_data("h", data, bins)
    check(made, data)
    counts, edges = np.histogram(data, bins)
    assert list(made.counts) == counts.tolist()
    assert list(made.edges) == pytest.approx(edges.tolist(), rel=1e-12)
    assert made.sum == pytest.approx(data.sum(), rel=1e-9, abs=1e-9)
    assert made.sum_squares == pytest.approx((data.astype(float) ** 2).sum(), rel=1e-9)


@pytest.mark.parametrize("bins", [1, 7, 100, *RULES])
@pytest.mark.parametrize("shape", SHAPES)
def test_what_a_device_computes_are_the_same_bins(shape, bins):
    data = SHAPES[shape]
    made = bin_tensor(torch.from_numpy(data), bins)
    check(made, data)
    expected = bin_data("h", data, bins)
    assert list(made.counts) == list(expected.counts)
    assert list(made.edges) == pytest.approx(list(expected.edges), rel=1e-12)
    assert made.sum_squares == pytest.approx(expected.sum_squares, rel=1e-9)


@settings(deadline=None, max_examples=300)
@given(
    st.lists(st.floats(width=64) | st.sampled_from([5e-324, 1.7e308, -1.7e308, 1e16, 1e16 + 2]), max_size=20),
    st.integers(1, 50) | st.sampled_from(sorted(RULES)),
)
def test_every_list_of_doubles_has_a_histogram(data, bins):
    made = bin_data("h", data, bins)
    check(made, data)
    if isinstance(bins, int):
        assert len(made.counts) == bins
    made.SerializeToString()


@settings(deadline=None, max_examples=100)
@given(st.lists(st.floats(width=64), max_size=20), st.integers(1, 50) | st.sampled_from(sorted(RULES)))
def test_a_tensor_elsewhere_is_binned_as_a_list(data, bins):
    made = bin_tensor(torch.tensor(data, dtype=torch.float64), bins)
    check(made, data)
    assert list(made.edges) == pytest.approx(list(bin_data("h", data, bins).edges), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("data", [[], [math.nan, math.inf, -math.inf, math.nan], np.zeros((0, 3)), torch.zeros(0)])
def test_nothing_finite(data):
    made = bin_data("h", data)
    assert (list(made.edges), list(made.counts), made.count) == ([0.0, 1.0], [0], 0)
    assert list(bin_data("h", data, 3).counts) == [0, 0, 0]
    assert list(bin_data("h", data, [1, 2, 5]).edges) == [1, 2, 5]


@pytest.mark.parametrize("value", [0.0, 3, -7.25, 1e300, 1.7976931348623157e308, 5e-324])
@pytest.mark.parametrize("bins", [1, 64, "auto"])
def test_constant_data(value, bins):
    made = bin_data("h", [value] * 9, bins)
    check(made, [value] * 9)
    assert max(made.counts) == 9


def test_edges_that_are_given():
    made = bin_data("h", [-5, 0, 0.5, 1, 1.5, 2, 9, math.nan], [0, 1, 2])
    assert list(made.counts) == [2, 3]
    assert (made.count, made.min, made.max, made.nan_count) == (7, -5, 9, 1)


def test_an_outlier_does_not_make_millions_of_bins():
    data = np.append(RANDOM.normal(size=100_000), 1e12)
    made = bin_data("h", data, "fd")
    check(made, data)
    assert len(made.counts) == MAX_RULE_BINS


@pytest.mark.parametrize(
    "data",
    [
        [[1, 2], [3, 4]],
        (1, 2, 3, 4),
        range(1, 5) and [1, 2, 3, 4],
        np.array([1, 2, 3, 4], np.uint8),
        np.array([1, 2, 3, 4], np.float16),
        np.array([1, 2, 3, 4], np.longdouble),
        torch.tensor([[1, 2], [3, 4]]),
        torch.tensor([1, 2, 3, 4], dtype=torch.bfloat16, requires_grad=True),
        torch.tensor([1, 2, 3, 4], dtype=torch.float8_e4m3fn),
        torch.tensor([0, 1, 2, 3, 4], dtype=torch.float32)[1:],
        torch.tensor([1, 2, 3, 4]).to_sparse(),
        [torch.tensor(1.0), torch.tensor(2.0), 3, np.float32(4)],
        [Decimal(1), Fraction(2), 3, 4],
    ],
    ids=repr,
)
def test_data_of_every_form(data):
    made = bin_data("h", data, 3)
    assert (list(made.counts), made.min, made.max, made.sum, made.sum_squares) == ([1, 1, 2], 1, 4, 10, 30)


def test_booleans_and_one_number():
    assert list(bin_data("h", [True, False, True], 2).counts) == [1, 2]
    assert bin_data("h", 3.5).count == 1
    assert bin_data("h", torch.tensor(3.5)).count == 1


@pytest.mark.parametrize(
    "data",
    [None, "text", ["a"], {"a": 1}, {1, 2}, b"12", [1, [2, 3]], [1j], np.array([1j]), torch.tensor([1j]), object()],
    ids=repr,
)
def test_what_cannot_be_binned(data):
    with pytest.raises(TypeError, match="'weights/0'"):
        bin_data("weights/0", data)


@pytest.mark.parametrize(
    ("bins", "error"),
    [
        (0, ValueError),
        (-1, ValueError),
        (MAX_BINS + 1, ValueError),
        ("stone", ValueError),
        ([1.0], ValueError),
        ([], ValueError),
        ([1, 1], ValueError),
        ([2, 1], ValueError),
        ([0, math.inf], ValueError),
        ([0, math.nan], ValueError),
        ([[0, 1], [2, 3]], ValueError),
        (np.arange(MAX_BINS + 2), ValueError),
        (None, TypeError),
        (["a", "b"], TypeError),
        ({"a": 1}, TypeError),
    ],
    ids=repr,
)
def test_bins_that_are_none(bins, error):
    with pytest.raises(error, match="bins of histogram 'h'"):
        bin_data("h", [1.0, 2.0], bins)
