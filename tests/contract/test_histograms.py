"""`log_histogram`: what stands in the files, and what is refused."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch

RANDOM = np.random.default_rng(1)


def test_bins_and_moments_stand_in_the_file(logger, read):
    data = RANDOM.normal(size=(40, 50))
    logger.log_histogram("weights/layer", data, step=7, bins=16)
    (row,) = read().histograms["weights/layer"]
    counts, edges = np.histogram(data, 16)
    assert list(row) == [
        "step", "edges", "counts", "min", "max", "sum", "sum_squares",
        "count", "nan_count", "positive_infinity_count", "negative_infinity_count",
    ]  # fmt: skip
    assert row["step"] == 7
    assert row["edges"] == edges.tolist()
    assert row["counts"] == counts.tolist()
    assert (row["min"], row["max"], row["count"]) == (data.min(), data.max(), 2_000)
    assert row["sum"] == pytest.approx(data.sum())
    assert row["sum_squares"] == pytest.approx((data**2).sum())
    assert (row["nan_count"], row["positive_infinity_count"], row["negative_infinity_count"]) == (0, 0, 0)


@pytest.mark.parametrize("bins", ["auto", "fd", "doane", "scott", "rice", "sturges", "sqrt", 1, 30])
def test_rules_are_numpys(logger, read, bins):
    data = RANDOM.exponential(size=700)
    logger.log_histogram("h", data, bins=bins)
    assert read().histograms["h"][0]["counts"] == np.histogram(data, bins)[0].tolist()


def test_histograms_have_their_own_automatic_steps(logger, read):
    logger.log_scalar("name", 1.0)
    logger.log_histogram("name", [1.0, 2.0])
    logger.log_str("name", "zero")
    logger.log_histogram("name", [1.0], step=10)
    logger.log_histogram("name", [3.0])
    files = read()
    assert [(row["step"], row["max"]) for row in files.histograms["name"]] == [(0, 2.0), (10, 1.0), (2, 3.0)]
    assert files.scalars == {"name": [(0, 1.0)]}
    assert files.texts == {"name": [(0, "zero")]}


def test_what_is_not_finite_is_counted_apart(logger, read):
    data = [math.nan, 1.0, math.inf, -math.inf, 2.0, math.nan, math.inf, math.inf]
    logger.log_histogram("list", data, bins=2)
    logger.log_histogram("tensor", torch.tensor(data), bins=2)
    files = read()
    for name in ("list", "tensor"):
        (row,) = files.histograms[name]
        assert (row["edges"], row["counts"], row["count"]) == ([1.0, 1.5, 2.0], [1, 1], 2)
        assert (row["nan_count"], row["positive_infinity_count"], row["negative_infinity_count"]) == (2, 3, 1)


def test_empty_constant_and_huge_data(logger, read):
    logger.log_histogram("empty", [])
    logger.log_histogram("constant", np.full(5, 3), bins=4)
    logger.log_histogram("huge", [-1.7e308, 1.7e308], bins=2)
    files = read()
    (empty,) = files.histograms["empty"]
    assert (empty["edges"], empty["counts"], empty["sum"]) == ([0.0, 1.0], [0], 0.0)
    assert empty["min"] is empty["max"] is None
    (constant,) = files.histograms["constant"]
    assert (constant["edges"], constant["counts"]) == ([2.5, 2.75, 3.0, 3.25, 3.5], [0, 0, 5, 0])
    (huge,) = files.histograms["huge"]
    assert (huge["edges"], huge["counts"]) == ([-1.7e308, 0.0, 1.7e308], [1, 1])
    assert huge["sum_squares"] == "Infinity"


def test_edges_that_are_given_stay(logger, read):
    logger.log_histogram("h", [-1, 0, 0.5, 1, 3, 7], bins=[0, 1, 3])
    (row,) = read().histograms["h"]
    assert (row["edges"], row["counts"], row["count"]) == ([0.0, 1.0, 3.0], [2, 2], 6)
    assert (row["min"], row["max"]) == (-1.0, 7.0)


def test_tensors_of_every_dtype(logger, read):
    dtypes = (torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.uint8, torch.bool)
    for dtype in dtypes:
        logger.log_histogram(f"{dtype}", torch.tensor([[0, 1], [1, 1]]).to(dtype), bins=2)
    logger.log_histogram("grad", torch.tensor([0.0, 1, 1, 1], requires_grad=True), bins=2)
    logger.log_histogram("list", [torch.tensor(0.0), 1, np.float32(1), True], bins=2)
    histograms = read().histograms
    assert len(histograms) == len(dtypes) + 2
    for (row,) in histograms.values():
        assert (row["edges"], row["counts"], row["sum"]) == ([0.0, 0.5, 1.0], [1, 3], 3.0)


def test_a_tensor_on_a_device_is_binned_there(logger, read, devices):
    data = torch.from_numpy(RANDOM.normal(size=100_000))
    logger.log_histogram("device", devices.tensor(data, "cuda:1"), step=0)
    # The moments, from which edges are made, and the counts. None of the values.
    assert devices.copies == devices.waits == {"cuda:1": 2}
    logger.log_histogram("host", data, step=0)
    histograms = read().histograms
    (there,), (here,) = histograms["device"], histograms["host"]
    assert there["counts"] == here["counts"]
    assert there["edges"] == pytest.approx(here["edges"])
    assert there["sum_squares"] == pytest.approx(here["sum_squares"])


def test_the_time_can_be_given(deployment, exp_name, logger):
    logger.log_histogram("h", [1.0], walltime=1_700_000_000.25)
    logger.flush()
    (path,) = (deployment.run_dir(exp_name) / "histograms").iterdir()
    assert json.loads(path.read_text())["time_unix_nano"] == 1_700_000_000_250_000_000


def test_views_and_clients_log_histograms(logger, read):
    logger.with_prefix("a").with_prefix("b").log_histogram("h", [1.0], step=1)
    worker = logger.client()
    worker.with_prefix("worker").log_histogram("h", [2.0], step=2)
    worker.flush()
    histograms = read().histograms
    assert {name: rows[0]["step"] for name, rows in histograms.items()} == {"a/b/h": 1, "worker/h": 2}


@pytest.mark.parametrize(
    ("name", "data", "arguments", "error", "match"),
    [
        ("h", "text", {}, TypeError, "'h'.*str"),
        ("h", None, {}, TypeError, "'h'.*NoneType"),
        ("h", [1 + 2j], {}, TypeError, "'h'.*complex"),
        ("h", torch.zeros(2, dtype=torch.complex64), {}, TypeError, "'h'.*complex"),
        ("h", [[1], [1, 2]], {}, TypeError, "'h'.*lengths"),
        ("h", np.ma.masked_array([1.0, 2.0], [True, False]), {}, TypeError, "'h'.*masked"),
        ("h", {"a": 1}, {}, TypeError, "'h'.*dict"),
        ("h", [1.0], {"bins": 0}, ValueError, "'h'.*65,536"),
        ("h", [1.0], {"bins": 65_537}, ValueError, "'h'.*65,536"),
        ("h", [1.0], {"bins": "best"}, ValueError, "'h'.*'best'"),
        ("h", [1.0], {"bins": [1.0, 0.0]}, ValueError, "'h'.*ascend"),
        ("h", [1.0], {"bins": [0.0, math.inf]}, ValueError, "'h'.*finite"),
        ("h", [1.0], {"bins": [0.0]}, ValueError, "'h'.*edges"),
        ("h", [1.0], {"bins": None}, TypeError, "'h'.*NoneType"),
        ("h", [1.0], {"bins": True}, TypeError, "'h'.*bool"),
        ("h", [1.0], {"step": 1.0}, TypeError, "step"),
        ("h", [1.0], {"step": 2**63}, ValueError, "step"),
        ("h", [1.0], {"walltime": "now"}, TypeError, "walltime"),
        ("h", [1.0], {"walltime": 0}, ValueError, "walltime"),
        ("h", [1.0], {"walltime": math.nan}, ValueError, "walltime"),
        ("h", [1.0], {"density": True}, TypeError, "density"),
        ("../h", [1.0], {}, ValueError, "segment"),
        ("", [1.0], {}, ValueError, "name"),
        (3, [1.0], {}, TypeError, "name"),
    ],
)
def test_what_is_no_histogram_is_refused_at_the_call(logger, read, name, data, arguments, error, match):
    logger.log_histogram("before", [1.0])
    with pytest.raises(error, match=match):
        logger.log_histogram(name, data, **arguments)
    assert list(read().histograms) == ["before"]
