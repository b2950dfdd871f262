"""What stands in the files parses to the same bits as what was logged, by whatever call it was logged."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from tensordict import TensorDict

SPECIAL = [
    math.nan,
    math.inf,
    -math.inf,
    0.0,
    -0.0,
    5e-324,
    -5e-324,
    2.2250738585072011e-308,
    2.2250738585072014e-308,
    1.7976931348623157e308,
    -1.7976931348623157e308,
    0.1 + 0.2,
    1 / 3,
    1e16,
    1e-5,
    123456789012345680.0,
    9007199254740993.0,
    1e22,
    1e23,
]
WIDTH = 64
"""How many names a row has."""


def doubles(count: int) -> list[float]:
    """The special ones and random patterns of bits: all exponents, subnormal numbers, NaNs."""
    patterns = random.Random(7)
    return [*SPECIAL, *(struct.unpack("<d", patterns.randbytes(8))[0] for _ in range(count - len(SPECIAL)))]


def bits(values: Iterable[float]) -> list[bytes]:
    """The bits of doubles; every NaN is one, since a text has but one."""
    return [b"nan" if math.isnan(value) else struct.pack("<d", value) for value in values]


def rows(values: Sequence[Any]) -> Iterable[tuple[int, Sequence[Any]]]:
    """The values in rows of `WIDTH`, each with its step."""
    return ((start // WIDTH, values[start : start + WIDTH]) for start in range(0, len(values), WIDTH))


def log_scalars(logger: Any, values: list[float]) -> None:
    for step, row in rows(values):
        for index, value in enumerate(row):
            logger.log_scalar(f"x/{index}", value, step)


def log_numpy(logger: Any, values: list[float]) -> None:
    for step, row in rows(np.array(values)):
        for index, value in enumerate(row):
            logger.log_scalar(f"x/{index}", value, step)


def log_dicts(logger: Any, values: list[float]) -> None:
    for step, row in rows(values):
        logger.log_metrics({f"x/{index}": value for index, value in enumerate(row)}, step)


def log_nested(logger: Any, values: list[float]) -> None:
    for step, row in rows(np.array(values)):
        logger.log_metrics({"x": {str(index): value for index, value in enumerate(row)}, "nothing": None}, step)


def log_mixed(logger: Any, values: list[float]) -> None:
    makes: list[Callable[[float], Any]] = [float, np.float64, np.array, torch.DoubleTensor]
    for step, row in rows(values):
        logger.log_metrics(
            {f"x/{index}": makes[index % 4]([value] if index % 4 > 1 else value) for index, value in enumerate(row)},
            step,
        )


def log_tensordicts(logger: Any, values: list[float]) -> None:
    for step, row in rows(torch.tensor(values, dtype=torch.float64)):
        logger.log_metrics(TensorDict({"x": TensorDict({str(index): row[index] for index in range(len(row))})}), step)


def log_lists(logger: Any, values: list[float]) -> None:
    for step, row in rows(values):
        logger.log_metrics({"x": list(row)}, step)


def log_tensors(logger: Any, values: list[float]) -> None:
    for step, row in rows(torch.tensor(values, dtype=torch.float64)):
        logger.log_metrics({"x": row}, step)


CALLS = [log_scalars, log_numpy, log_dicts, log_nested, log_mixed, log_tensordicts, log_lists, log_tensors]


def logged(read: Callable[[], Any]) -> list[float]:
    """What stands in the files, in the order of `rows`."""
    scalars = read().scalars
    steps = len(scalars["x/0"])
    return [scalars[f"x/{index}"][step][1] for step in range(steps) for index in range(WIDTH)]


@pytest.mark.parametrize("log", CALLS, ids=lambda log: log.__name__)
def test_doubles_keep_their_bits(logger, read, log):
    values = doubles(3200)
    log(logger, values)
    assert bits(logged(read)) == bits(values)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_smaller_floats_are_exact(logger, read, dtype):
    size = torch.int32 if dtype is torch.float32 else torch.int16
    limits = torch.iinfo(size)
    generator = torch.Generator().manual_seed(7)
    patterns = torch.randint(limits.min, limits.max, (3200,), generator=generator, dtype=torch.int64).to(size)
    values = patterns.view(dtype)
    for step, row in rows(values):
        logger.log_metrics({"x": row[: WIDTH // 2], **{f"x/{i}": row[i] for i in range(WIDTH // 2, WIDTH)}}, step)
    assert bits(logged(read)) == bits(values.to(torch.float64).tolist())


def test_numpys_smaller_floats_are_exact(logger, read):
    for dtype, kept in ((np.float32, np.uint32), (np.float16, np.uint16)):
        values = np.random.default_rng(7).integers(0, np.iinfo(kept).max, 640, kept).view(dtype)
        for step, value in enumerate(values):
            logger.log_scalar(dtype.__name__, value, step)
            logger.log_metrics({f"{dtype.__name__}-of-row": value}, step)
        scalars = read().scalars
        for name in (dtype.__name__, f"{dtype.__name__}-of-row"):
            assert bits(value for _, value in scalars[name]) == bits(map(float, values))


@pytest.mark.parametrize("make", [int, np.int64, np.uint64, torch.tensor], ids=["int", "int64", "uint64", "tensor"])
def test_integers_are_exact_to_2_to_the_53(logger, read, make):
    values = [sign * (2**power + offset) for power in range(54) for offset in (-1, 0) for sign in (1, -1)]
    values = [abs(value) if make is np.uint64 else value for value in values]
    for step, value in enumerate(values):
        logger.log_scalar("one", make(value), step)
        logger.log_metrics({"two": make(value), "three": {"x": [make(value), 0]}}, step)
    expected = [(step, float(value)) for step, value in enumerate(values)]
    assert [int(value) for _, value in expected] == values
    scalars = read().scalars
    assert scalars["one"] == scalars["two"] == scalars["three/x/0"] == expected
