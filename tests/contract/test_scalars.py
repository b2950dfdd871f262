"""`log_scalar`: which values it takes, and the steps that they stand at."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
import torch

INT64 = 2**63 - 1


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.1, 0.1),
        (3, 3.0),
        (True, 1.0),
        (2**53, 2.0**53),
        (5e-324, 5e-324),
        (1.7976931348623157e308, 1.7976931348623157e308),
        (np.float64(0.3), 0.3),
        (np.float32(0.1), float(np.float32(0.1))),
        (np.int16(-7), -7.0),
        (np.bool_(True), 1.0),
        (np.array(2.5), 2.5),
        (np.array([[4]]), 4.0),
        (torch.tensor(0.5), 0.5),
        (torch.tensor([0.25]), 0.25),
        (torch.tensor(1 / 3, dtype=torch.float64), 1 / 3),
        (torch.tensor(0.1, dtype=torch.bfloat16), float(torch.tensor(0.1, dtype=torch.bfloat16))),
        (torch.tensor(0.1, dtype=torch.float16), float(torch.tensor(0.1, dtype=torch.float16))),
        (torch.tensor(True), 1.0),
        (torch.tensor(2**53), 2.0**53),
        (torch.tensor(1.5, requires_grad=True), 1.5),
    ],
    ids=repr,
)
def test_value_is_kept_exactly(logger, read, value, expected):
    logger.log_scalar("value", value, 1)
    assert read().scalars == {"value": [(1, expected)]}


def test_values_that_compare_oddly_are_kept(logger, read):
    values = [math.nan, math.inf, -math.inf, -0.0]
    for step, value in enumerate(values):
        logger.log_scalar("odd", value, step)
    found = [value for _step, value in read().scalars["odd"]]
    assert math.isnan(found[0])
    assert found[1:3] == values[1:3]
    assert struct.pack("d", found[3]) == struct.pack("d", -0.0)


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("0.5", TypeError),
        (None, TypeError),
        (1j, TypeError),
        (np.array([1.0, 2.0]), ValueError),
        (torch.tensor([1.0, 2.0]), ValueError),
        (torch.tensor(1j), TypeError),
        (torch.empty(1, device="meta"), TypeError),
        (torch.empty(0), ValueError),
        (np.array("x"), TypeError),
        ([1.0], TypeError),
        ({"a": 1.0}, TypeError),
        (b"1", TypeError),
        (10**400, ValueError),
        (object(), TypeError),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_is_no_scalar_is_refused(logger, read, value, error):
    with pytest.raises(error, match="bad"):
        logger.log_scalar("bad", value, 0)
    logger.log_scalar("good", 1.0, 0)
    assert read().scalars == {"good": [(0, 1.0)]}


def test_explicit_steps_are_kept_in_order(logger, read):
    steps = [5, 5, 3, -1, 0, INT64, -INT64 - 1, 5]
    for index, step in enumerate(steps):
        logger.log_scalar("loss", index, step)
    assert read().scalars["loss"] == [(step, float(index)) for index, step in enumerate(steps)]


class Index:
    def __index__(self) -> int:
        return 7


@pytest.mark.parametrize(
    "step",
    [np.int64(7), np.uint8(7), np.array(7), torch.tensor(7), torch.tensor([7]), True + 6, Index()],
    ids=["int64", "uint8", "array", "tensor", "tensor of one", "int", "index"],
)
def test_step_is_any_index(logger, read, step):
    logger.log_scalar("loss", 0.5, step)
    logger.log_metrics({"metric": 0.5, "list": [1, 2]}, step)
    logger.log_str("notes", "text", step)
    files = read()
    assert files.scalars == {"loss": [(7, 0.5)], "metric": [(7, 0.5)], "list/0": [(7, 1.0)], "list/1": [(7, 2.0)]}
    assert files.texts == {"notes": [(7, "text")]}


@pytest.mark.parametrize("make", [int, np.int64, torch.tensor], ids=["int", "int64", "tensor"])
def test_steps_reach_to_the_ends_of_int64(logger, read, make):
    ends = [INT64, -INT64 - 1, 2**53 + 1, -(2**53) - 1]
    for step in ends:
        logger.log_scalar("loss", 0.5, make(step))
        logger.log_metrics({"metric": 0.5}, make(step))
        logger.log_str("notes", "text", make(step))
    files = read()
    assert files.scalars == {name: [(step, 0.5) for step in ends] for name in ("loss", "metric")}
    assert files.texts == {"notes": [(step, "text") for step in ends]}


NO_STEPS = [1.0, "1", np.float64(1), [1], np.array(1.0), np.array([1, 2]), torch.tensor(1.0), torch.tensor([1, 2]), 1j]


@pytest.mark.parametrize("step", NO_STEPS, ids=repr)
def test_step_that_is_no_index_is_refused(logger, read, step):
    calls = (
        lambda: logger.log_scalar("loss", 0.5, step),
        lambda: logger.log_metrics({"loss": 0.5}, step),
        lambda: logger.log_metrics({}, step),
        lambda: logger.log_str("notes", "text", step),
    )
    for call in calls:
        with pytest.raises(TypeError, match="step"):
            call()
    files = read()
    assert files.scalars == {}
    assert files.texts == {}


@pytest.mark.parametrize("step", [INT64 + 1, -INT64 - 2, np.uint64(2**63), 10**5000], ids=["+", "-", "uint64", "huge"])
def test_step_beyond_int64_is_refused(logger, read, step):
    calls = (
        lambda: logger.log_scalar("loss", 0.5, step),
        lambda: logger.log_metrics({"loss": 0.5}, step),
        lambda: logger.log_str("notes", "text", step),
    )
    for call in calls:
        with pytest.raises(ValueError, match="step"):
            call()
    assert read().scalars == {}


def test_automatic_steps_count_the_rows_of_each_name(logger, read):
    for value in (0.0, 1.0, 2.0):
        logger.log_scalar("a", value)
    logger.log_metrics({"a": 3.0, "b": 0.5})
    logger.log_scalar("a", 4.0, 100)
    logger.log_scalar("a", 5.0)
    assert read().scalars == {"a": [(0, 0.0), (1, 1.0), (2, 2.0), (3, 3.0), (100, 4.0), (5, 5.0)], "b": [(0, 0.5)]}


def test_automatic_steps_go_on_in_a_run_that_is_opened_again(deployment, exp_name):
    for values in ((0.0, 1.0), (2.0, 3.0)):
        logger = deployment.open(exp_name)
        for value in values:
            logger.log_scalar("loss", value)
        logger.shutdown()
    assert deployment.read(exp_name).scalars["loss"] == [(0, 0.0), (1, 1.0), (2, 2.0), (3, 3.0)]


def test_many_points_stand_in_order(logger, read):
    for step in range(20_000):
        logger.log_scalar("loss", step / 7, step)
        if step % 3 == 0:
            logger.log_scalar("other", step)
    scalars = read().scalars
    assert scalars["loss"] == [(step, step / 7) for step in range(20_000)]
    assert scalars["other"] == [(index, 3.0 * index) for index in range(6_667)]
