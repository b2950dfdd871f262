"""`log_hparams` with what people have as their configuration: typed in `hparams.json`, and as text.

What cannot be kept is refused by its key, and nothing of the call is logged.
"""

from __future__ import annotations

import argparse
import dataclasses
import enum
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from omegaconf import MISSING, OmegaConf


class Mode(enum.Enum):
    FAST = (1, 2)


class Level(enum.IntEnum):
    HIGH = 3


class Kind(str, enum.Enum):
    ON_POLICY = "on-policy"


class Access(enum.Flag):
    READ = 1
    WRITE = 2


class Betas(NamedTuple):
    first: float
    second: float


@dataclasses.dataclass
class Optimizer:
    rate: float = 3e-4
    betas: tuple[float, float] = (0.9, 0.999)
    steps: int = dataclasses.field(init=False, default=7)


@dataclasses.dataclass
class Config:
    optimizer: Optimizer = dataclasses.field(default_factory=Optimizer)
    layers: list[int] = dataclasses.field(default_factory=lambda: [64, 64])
    mode: Mode = Mode.FAST
    rate: float = "${optimizer.rate}"  # type: ignore[assignment]


@dataclasses.dataclass
class Unfinished:
    rate: float = MISSING


@dataclasses.dataclass
class WithoutValue:
    late: int = dataclasses.field(init=False)


class Failing(Mapping[str, int]):
    """A mapping whose iteration fails half-way."""

    def __getitem__(self, key: str) -> int:
        return 1

    def __iter__(self) -> Iterator[str]:
        yield "first"
        raise RuntimeError("the disk is gone")

    def __len__(self) -> int:
        return 2


def interpolated() -> Any:
    return OmegaConf.create(
        {
            "env": {"name": "CartPole", "title": "${env.name}-v1"},
            "rates": ["${base}", {"half": "${base}"}],
            "base": 0.5,
            "loss": {"rate": "${base}", "nothing": None},
        }
    )


# What is given, and what it is in hparams.json.
SHAPES: dict[str, tuple[Any, Any]] = {
    "none": (None, None),
    "flag": (True, True),
    "negative": (-(2**63), -(2**63)),
    "largest": (2**63 - 1, 2**63 - 1),
    "beyond": (2**63, "9223372036854775808"),
    "beyond_below": (-(2**63) - 1, "-9223372036854775809"),
    "digits20": (12345678901234567890, "12345678901234567890"),
    "digits4300": (10**4300 - 1, "9" * 4300),
    "float": (0.1, 0.1),
    "zero": (-0.0, -0.0),
    "nan": (math.nan, "NaN"),
    "infinities": ([math.inf, -math.inf], ["Infinity", "-Infinity"]),
    "text": ("two\nlines ✓ \U0001f600 \u2028", "two\nlines ✓ \U0001f600 \u2028"),
    "empty": ({}, {}),
    "empty_list": ([], []),
    "nested": ({"a": {"b": [{"c": 1}]}}, {"a": {"b": [{"c": 1}]}}),
    "tuple": ((1, (2, "x")), [1, [2, "x"]]),
    "namedtuple": (Betas(0.9, 0.999), {"first": 0.9, "second": 0.999}),
    "dataclass": (Optimizer(), {"rate": 3e-4, "betas": [0.9, 0.999], "steps": 7}),
    "namespace": (argparse.Namespace(a=SimpleNamespace(b=1)), {"a": {"b": 1}}),
    "omegaconf": (interpolated().loss, {"rate": 0.5, "nothing": None}),
    "omegaconf_list": ([interpolated().rates], [[0.5, {"half": 0.5}]]),
    "path": (Path("data") / "set", "data/set"),
    "enum": (Mode.FAST, "FAST"),
    "enums": ([Level.HIGH, Kind.ON_POLICY, Access.READ | Access.WRITE], [3, "on-policy", "READ|WRITE"]),
    "numpy": ([np.int32(4), np.float32(0.1), np.bool_(True)], [4, float(np.float32(0.1)), True]),
    "array": (np.array([[1.5, 2.0]]), [[1.5, 2.0]]),
    "words": (np.array(["a", "b"]), ["a", "b"]),
    "tensor": (torch.tensor([[1, 2]]), [[1, 2]]),
    "tensor0": (torch.tensor(0.5, requires_grad=True), 0.5),
    "torch": ([torch.device("cuda:0"), torch.float32, torch.Size([3, 4])], ["cuda:0", "torch.float32", [3, 4]]),
    "keys": (
        {1: "int", 2.5: "float", False: "bool", None: "none", Mode.FAST: "enum", Level.HIGH: "number"}
        | {np.int8(4): "numpy"},
        {"1": "int", "2.5": "float", "False": "bool", "None": "none", "FAST": "enum", "3": "number", "4": "numpy"},
    ),
}


def written(deployment: Any, exp_name: str) -> str:
    return (deployment.run_dir(exp_name) / "hparams.json").read_text("utf-8")


def refuse_constant(text: str) -> Any:
    raise AssertionError(f"{text} is not JSON")


def test_every_shape_keeps_its_type(logger, read, deployment, exp_name):
    logger.log_hparams({key: given for key, (given, _) in SHAPES.items()})
    read()
    (found,) = json.loads(written(deployment, exp_name), parse_constant=refuse_constant)
    assert found.keys() == SHAPES.keys()
    for key, (_, expected) in SHAPES.items():
        assert repr(found[key]) == repr(expected if not isinstance(expected, dict) else dict(sorted(expected.items())))


def test_the_text_is_for_people(logger, deployment, exp_name):
    logger.log_hparams({"b": {"c": [1, 2.5, None]}, "a": "text", "clip": math.inf, "large": 2**64})
    logger.log_hparams({})
    logger.log_hparams(Optimizer())
    logger.flush()
    texts = deployment.run_dir(exp_name) / "texts"
    assert (texts / "hparams0.txt").read_text() == (
        "a: text\nb: {'c': [1, 2.5, None]}\nclip: inf\nlarge: 18446744073709551616"
    )
    assert (texts / "hparams1.txt").read_text() == ""
    assert (texts / "hparams2.txt").read_text() == ("betas: [0.9, 0.999]\nrate: 0.0003\nsteps: 7")
    assert [len(hparams) for hparams in json.loads(written(deployment, exp_name))] == [4, 0, 3]


def test_omegaconf_is_resolved(logger, read):
    logger.log_hparams(interpolated())
    logger.log_hparams(OmegaConf.structured(Config))
    logger.log_hparams({"config": OmegaConf.structured(Config()).optimizer, "other": interpolated().env})
    optimizer = {"rate": 3e-4, "betas": [0.9, 0.999], "steps": 7}
    resolved, structured, mixed = read().hparams
    assert resolved == {
        "env": {"name": "CartPole", "title": "CartPole-v1"},
        "rates": [0.5, {"half": 0.5}],
        "base": 0.5,
        "loss": {"rate": 0.5, "nothing": None},
    }
    assert structured == {"optimizer": optimizer, "layers": [64, 64], "mode": "FAST", "rate": 3e-4}
    assert mixed == {"config": optimizer, "other": {"name": "CartPole", "title": "CartPole-v1"}}


def nested(levels: int) -> Any:
    return {"k": nested(levels - 1)} if levels else 1


def circle() -> Any:
    inner: dict[str, Any] = {}
    inner.update({f"k{index}": [inner] for index in range(10)})
    return inner


def ring() -> Any:
    one = SimpleNamespace()
    one.ring = [{"back": one}]
    return one


REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "no mapping": ([("a", 1)], TypeError, "hparams must be a mapping"),
    "class": (Optimizer, TypeError, r"not the class .*Optimizer"),
    "bytes": ({"a": {"b": b"x"}}, TypeError, r"'a\.b'.*bytes"),
    "set": ({"a": {"b": {1, 2}}}, TypeError, r"'a\.b'.*set.*sorted"),
    "function": ({"a": {"b": len}}, TypeError, r"'a\.b'.*function"),
    "activation": ({"net": [{"act": torch.nn.Tanh}]}, TypeError, r"'net\[0\]\.act'.*class torch\.nn\..*Tanh"),
    "module": ({"net": torch.nn.Tanh()}, TypeError, "'net'.*Tanh"),
    "complex": ({"a": 1j}, TypeError, "'a'.*complex"),
    "complex tensor": ({"a": torch.tensor([1j])}, TypeError, "'a'.*complex"),
    "tensor without content": ({"a": torch.empty(2, device="meta")}, TypeError, "'a'"),
    "objects": ({"a": np.array([object()])}, TypeError, "'a'.*ndarray"),
    "surrogate": ({"a": {"b": "\ud800"}}, ValueError, r"'a\.b'.*surrogate"),
    "surrogate in a key": ({"a": {"\ud800": 1}}, ValueError, "surrogate"),
    "too many digits": ({"a": {"b": 10**4300}}, ValueError, r"'a\.b'.*digits"),
    "too many digits in a key": ({"a": {10**4300: 1}}, ValueError, "key in 'a'.*digits"),
    "tuple as a key": ({"a": {(1, 2): 1}}, TypeError, "'a'"),
    "colliding keys": ({"a": {1: "x", "1": "y"}}, ValueError, r"'a\.1'"),
    "colliding enum": ({Mode.FAST: 1, "FAST": 2}, ValueError, "'FAST'"),
    "31 levels": (nested(31), ValueError, "nested"),
    "a thousand levels": (nested(900), ValueError, "nested"),
    "circle": ({"a": circle()}, ValueError, "contains itself"),
    "ring": (ring(), ValueError, "contains itself"),
    "failing": ({"a": 1, "b": Failing()}, RuntimeError, "disk is gone"),
    "field without a value": ({"a": WithoutValue()}, ValueError, r"'a\.late'"),
    "missing": (OmegaConf.structured(Unfinished), ValueError, "'rate'"),
    "missing inside": ({"a": OmegaConf.create({"b": ["???"]})}, ValueError, r"'b\[0\]'.*'a'"),
    "interpolation to nowhere": ({"a": [OmegaConf.create({"b": "${x.y}"})]}, ValueError, r"'b'.*'a\[0\]'.*'x\.y'"),
    "interpolation in a circle": (OmegaConf.create({"a": "${b}", "b": "${a}"}), ValueError, "'a'"),
    "resolver that is not there": (OmegaConf.create({"a": {"b": "${nope:1}"}}), ValueError, r"'a\.b'.*nope"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_kept_is_refused_by_key_and_logs_nothing(logger, read, case):
    hparams, error, message = REFUSED[case]
    with pytest.raises(error, match=message):
        logger.log_hparams(hparams)
    with pytest.raises(error, match=message):
        logger.with_prefix("eval").log_hparams(hparams)
    logger.log_hparams({"fine": 1})
    files = read()
    assert files.hparams == [{"fine": 1}]
    assert files.hparams_texts == 1


def test_30_levels_are_kept(logger, read):
    logger.log_hparams(nested(30))
    logger.log_hparams({"same": [shared := {"a": 1}, shared]})
    assert read().hparams == [nested(30), {"same": [{"a": 1}, {"a": 1}]}]


def test_a_run_opened_again_keeps_what_it_had(deployment, exp_name):
    for clip in (math.inf, -math.inf, math.nan):
        with deployment.open(exp_name) as logger:
            logger.log_hparams({"clip": clip})
    files = deployment.read(exp_name)
    assert files.hparams == [{"clip": "Infinity"}, {"clip": "-Infinity"}, {"clip": "NaN"}]
    assert files.hparams_texts == 3
