"""Hyperparameters: what goes in comes out with its type, over the wire."""

from __future__ import annotations

import argparse
import enum
import math
import struct
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from logger_service.contract.values import MOST_LEVELS, from_map, from_value, to_map, to_value
from logger_service.v1 import logging_service_pb2, values_pb2


class Color(enum.Enum):
    RED = (1, 2)


class Mode(str, enum.Enum):
    FAST = "fast"


class Level(enum.IntEnum):
    HIGH = 3


class Access(enum.Flag):
    READ = 1
    WRITE = 2
    BOTH = 3
    EXECUTE = 4


class Pair(NamedTuple):
    left: int
    right: str


@dataclass
class Optimizer:
    rate: float = 3e-4
    betas: tuple[float, float] = (0.9, 0.999)
    extra: dict[str, Any] = field(default_factory=dict)


def travelled(hparams: Any) -> dict[str, Any]:
    return from_map(values_pb2.MapValue.FromString(to_map(hparams).SerializeToString()))


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats()
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=20,
)


def same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return struct.pack("<d", one) == struct.pack("<d", other) or (math.isnan(one) and math.isnan(other))
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    return bool(one == other)


@settings(deadline=None)
@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), PLAIN, max_size=5))
def test_plain_values_keep_their_types(hparams: dict[str, Any]):
    assert same(travelled(hparams), hparams)


CONVERTED = [
    ((1, (2, "x")), [1, [2, "x"]]),
    (Pair(1, "r"), {"left": 1, "right": "r"}),
    ([], []),
    ({}, {}),
    (2**63, "9223372036854775808"),
    (-(2**63) - 1, "-9223372036854775809"),
    (2**63 - 1, 2**63 - 1),
    (np.int32(3), 3),
    (np.uint64(2**64 - 1), str(2**64 - 1)),
    (np.float32(0.1), float(np.float32(0.1))),
    (np.longdouble(0.5), 0.5),
    (np.bool_(True), True),
    (np.str_("x"), "x"),
    (np.array(["a", "bc"]), ["a", "bc"]),
    (np.array(0.5, np.longdouble), 0.5),
    (np.array([0.5], np.longdouble), [0.5]),
    (np.datetime64("2026-01-31").astype(np.int64), 20484),
    (np.array([[1, 2]]), [[1, 2]]),
    (torch.tensor(0.5), 0.5),
    (torch.tensor([1, 2]), [1, 2]),
    (torch.Size([3, 4]), [3, 4]),
    (torch.device("cuda:0"), "cuda:0"),
    (torch.float32, "torch.float32"),
    (Path("/a/b"), "/a/b"),
    (PurePosixPath("x"), "x"),
    (Color.RED, "RED"),
    (Mode.FAST, "fast"),
    (Level.HIGH, 3),
    (Access.READ, "READ"),
    (Access.BOTH, "BOTH"),
    (Access.READ | Access.EXECUTE, "READ|EXECUTE"),
    (Access(0), ""),
    (10**4299, "1" + "0" * 4299),
    (Optimizer(extra={"k": Level.HIGH}), {"rate": 3e-4, "betas": [0.9, 0.999], "extra": {"k": 3}}),
    (argparse.Namespace(a=1, b=[None]), {"a": 1, "b": [None]}),
    (SimpleNamespace(a=Path("x")), {"a": "x"}),
    (
        {1: "int", 2.5: "float", None: "none", Mode.FAST: "enum", np.int8(4): "numpy"},
        {"1": "int", "2.5": "float", "None": "none", "fast": "enum", "4": "numpy"},
    ),
    ({True: "bool"}, {"True": "bool"}),
]


@pytest.mark.parametrize(("value", "converted"), CONVERTED, ids=[repr(row[0])[:40] for row in CONVERTED])
def test_other_values_become_plain_ones(value: Any, converted: Any):
    result = travelled({"key": value, "list": [value]})
    assert same(result, {"key": converted, "list": [converted]})
    assert same(from_value(to_value(value)), converted)


@pytest.mark.parametrize("hparams", [{"rate": 1.0}, argparse.Namespace(rate=1.0), SimpleNamespace(rate=1.0)])
def test_what_hparams_may_be(hparams: Any):
    assert travelled(hparams) == {"rate": 1.0}
    assert travelled(Optimizer())["rate"] == 3e-4


@pytest.mark.parametrize("hparams", [None, 3, "text", [1], Optimizer, Color.RED])
def test_what_hparams_may_not_be(hparams: Any):
    with pytest.raises(TypeError, match="hparams must be"):
        to_map(hparams)


BAD = [
    object(),
    b"x",
    {1, 2},
    np.array([b"x"]),
    np.datetime64("2026-01-31"),
    Optimizer,
    torch.empty(2, device="meta"),
    1j,
    len,
    np.complex64(1),
    np.array([object()]),
    torch.tensor(1j),
]


@pytest.mark.parametrize("value", BAD, ids=repr)
def test_what_has_no_form_is_refused_by_key(value: Any):
    with pytest.raises(TypeError, match=r"'optim\.layers\[1\]\.rate'"):
        to_map({"optim": {"layers": [1, {"rate": value}]}})


@pytest.mark.parametrize("key", [(1, 2), b"a", Optimizer])
def test_keys_are_texts_or_numbers(key: Any):
    with pytest.raises(TypeError, match=r"keys of hparams .* in 'a'"):
        to_map({"a": {key: 1}})


@pytest.mark.parametrize(
    ("hparams", "problem"),
    [
        ({"a": {1: "x", "1": "y"}}, r"'a\.1'"),
        ({"a": {"b": "\ud800"}}, r"'a\.b'.*surrogate"),
        ({"a\ud800": 1}, "surrogate"),
        ({"a": {"b": 10**5000}}, r"'a\.b'.*too many digits"),
        ({"a": {10**5000: 1}}, r"key in 'a'.*too many digits"),
    ],
)
def test_what_the_wire_cannot_hold_is_refused_by_key(hparams: Any, problem: str):
    with pytest.raises(ValueError, match=problem):
        to_map(hparams)


def nested_maps(levels: int) -> dict[str, Any]:
    return {"k": nested_maps(levels - 1) if levels > 1 else 1}


def nested_lists(levels: int) -> list[Any]:
    return [nested_lists(levels - 1) if levels > 1 else 1]


@pytest.mark.parametrize(
    "deep", [nested_maps(MOST_LEVELS), {"k": nested_lists(MOST_LEVELS - 1)}], ids=["maps", "lists"]
)
def test_what_is_as_deep_as_allowed_can_be_parsed_in_a_stream(deep: dict[str, Any]):
    request = logging_service_pb2.LogStreamRequest()
    request.batch.records.add().hparams.hparams.CopyFrom(to_map(deep))
    parsed = logging_service_pb2.LogStreamRequest.FromString(request.SerializeToString())
    assert from_map(parsed.batch.records[0].hparams.hparams) == deep


@pytest.mark.parametrize(
    "deep", [nested_maps(MOST_LEVELS + 1), {"k": nested_lists(MOST_LEVELS)}], ids=["maps", "lists"]
)
def test_what_is_deeper_is_refused(deep: dict[str, Any]):
    with pytest.raises(ValueError, match="nested"):
        to_map(deep)


def test_what_contains_itself_is_refused_at_once():
    circle: dict[str, Any] = {}
    circle.update({f"a{index}": [circle] for index in range(10)})
    with pytest.raises(ValueError, match=r"'b\.a0\[0\]' contains itself"):
        to_map({"b": circle})
    with pytest.raises(ValueError, match=r"'the value\.a0\[0\]' contains itself"):
        to_value(circle)


@pytest.mark.parametrize("value", [np.ma.masked, np.ma.masked_array([1, 2], [True, False])], ids=["one", "array"])
def test_what_is_masked_has_no_form(value):
    with pytest.raises(TypeError, match=r"'a\.b' .*masked"):
        to_map({"a": {"b": value}})


def test_keys_come_back_in_order_since_the_wire_has_none():
    assert list(travelled({"b": 1, "a": 2, "c": 3})) == ["a", "b", "c"]


def test_a_value_that_says_nothing_is_refused():
    with pytest.raises(ValueError, match="without a kind"):
        from_value(values_pb2.Value())
