"""What `log_metrics` and `log_scalar` take: which values, how exactly, and what is refused."""

from __future__ import annotations

import enum
import math
import numbers
import struct
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from tensordict import NonTensorStack, TensorDict, lazy_stack, tensorclass

from logger_service.contract import tensors
from logger_service.contract.sanitize import Sanitizer, scalar


class Level(enum.IntEnum):
    LOW = 3


class Lazy(Mapping[str, Any]):
    """A mapping that is no dict."""

    def __getitem__(self, key: str) -> Any:
        return {"x": 1.0, "y": torch.tensor(2)}[key]

    def __iter__(self) -> Iterator[str]:
        return iter(("x", "y"))

    def __len__(self) -> int:
        return 2


def sanitized(metrics: Any, keys_sep: str = "/") -> tuple[dict[str, Any], dict[str, float], list[tuple[str, str]]]:
    returned, names, values, texts, late = Sanitizer()(metrics, keys_sep)
    assert late is None
    assert all(type(value) is float for value in values)
    return returned, dict(zip(names, values, strict=True)), texts


ONE_NUMBER = [
    (0.1, 0.1, 0.1),
    (3, 3, 3.0),
    (True, True, 1.0),
    (-(2**53), -(2**53), -(2.0**53)),
    (Level.LOW, 3, 3.0),
    (np.float64(0.1), 0.1, 0.1),
    (np.float32(0.1), float(np.float32(0.1)), float(np.float32(0.1))),
    (np.float16(0.1), float(np.float16(0.1)), float(np.float16(0.1))),
    (np.longdouble(0.5), 0.5, 0.5),
    (np.int64(2**53), 2**53, 2.0**53),
    (np.uint8(255), 255, 255.0),
    (np.bool_(True), True, 1.0),
    (np.array(2.5), 2.5, 2.5),
    (np.array([[2.5]], dtype=np.float32), 2.5, 2.5),
    (Fraction(1, 4), Fraction(1, 4), 0.25),
    (Decimal("0.25"), Decimal("0.25"), 0.25),
    (torch.tensor(0.1), float(np.float32(0.1)), float(np.float32(0.1))),
    (torch.tensor(0.1, dtype=torch.float64), 0.1, 0.1),
    (torch.tensor(0.1, dtype=torch.bfloat16), 0.10009765625, 0.10009765625),
    (torch.tensor(0.1, dtype=torch.float16), 0.0999755859375, 0.0999755859375),
    (torch.tensor(2**53), 2**53, 2.0**53),
    (torch.tensor(2**53 + 1), 2**53 + 1, 2.0**53),
    (torch.tensor(2**63 - 1), 2**63 - 1, 2.0**63),
    (torch.tensor(False), False, 0.0),
    (torch.tensor([[0.5]], requires_grad=True), 0.5, 0.5),
    (torch.nn.Parameter(torch.tensor(0.5)), 0.5, 0.5),
    (torch.tensor([0.0, 0.5]).to_sparse()[1], 0.5, 0.5),
]


@pytest.mark.parametrize(("value", "content", "double"), ONE_NUMBER, ids=[repr(row[0]) for row in ONE_NUMBER])
@pytest.mark.parametrize("company", [{}, {"other": 1.0}, {"other": None}])
def test_one_number(value: Any, content: Any, double: float, company: dict[str, Any]):
    returned, values, texts = sanitized({"a": value, **company})
    assert returned == {"a": content, **company}
    assert type(returned["a"]) is (type(content) if not isinstance(value, Level) else Level)
    assert values["a"] == double
    assert not texts
    assert scalar("a", value) == double


@pytest.mark.parametrize("make", [float, np.float64, torch.tensor, lambda value: np.array([value])])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.7976931348623157e308])
def test_every_double_is_kept_to_the_bit(value: float, make: Any):
    torch.set_default_dtype(torch.float64)
    try:
        made = make(value)
    finally:
        torch.set_default_dtype(torch.float32)
    for metrics in ({"a": made}, {"a": made, "b": "text"}):
        assert struct.pack("<d", sanitized(metrics)[1]["a"]) == struct.pack("<d", value)
    assert struct.pack("<d", scalar("a", made)) == struct.pack("<d", value)


SEVERAL = [
    (torch.tensor([[1.0, 2.0], [3.0, 4.0]]), [[1.0, 2.0], [3.0, 4.0]], [1.0, 2.0, 3.0, 4.0]),
    (torch.tensor([[1.0, 2.0], [3.0, 4.0]]).t(), [[1.0, 3.0], [2.0, 4.0]], [1.0, 3.0, 2.0, 4.0]),
    (torch.tensor([True, False]), [True, False], [1.0, 0.0]),
    (torch.tensor([2**53 + 1, 1]), [2**53 + 1, 1], [2.0**53, 1.0]),
    (torch.tensor([1.5, 2.5], dtype=torch.bfloat16, requires_grad=True), [1.5, 2.5], [1.5, 2.5]),
    (torch.tensor([0.0, 2.0]).to_sparse(), [0.0, 2.0], [0.0, 2.0]),
    (np.array([[1, 2], [3, 4]]).T, [[1, 3], [2, 4]], [1.0, 3.0, 2.0, 4.0]),
    (np.array([0.5, 1.5], dtype=np.longdouble), [0.5, 1.5], [0.5, 1.5]),
    ([1, 2.5, True], [1, 2.5, True], [1.0, 2.5, 1.0]),
    ((1, (2, 3)), [1, [2, 3]], [1.0, 2.0, 3.0]),
    ([0.5], [0.5], [0.5]),
    ([np.float32(0.5), np.array([1, 2]), torch.tensor(3)], [0.5, [1, 2], 3], [0.5, 1.0, 2.0, 3.0]),
]


@pytest.mark.parametrize(("value", "content", "elements"), SEVERAL, ids=[repr(row[0]) for row in SEVERAL])
def test_several_numbers(value: Any, content: list[Any], elements: list[float]):
    returned, values, _ = sanitized({"a": value, "b": 7.0})
    assert returned == {"a": content, "b": 7.0}
    assert values == {**{f"a/{index}": element for index, element in enumerate(elements)}, "b": 7.0}
    if not isinstance(value, list | tuple):
        with pytest.raises(ValueError, match=r"'a' has .* elements"):
            scalar("a", value)


@pytest.mark.parametrize("value", [[], (), np.zeros((0, 3)), torch.zeros(0), torch.zeros(2, 0)])
def test_empty_values_are_returned_and_not_logged(value: Any):
    returned, values, _ = sanitized({"a": value})
    assert returned == {"a": list(value) if isinstance(value, list | tuple) else value.tolist()}
    assert values == {}


@pytest.mark.parametrize("make", [list, np.array, torch.tensor, lambda numbers: [list(numbers)]])
def test_the_limit_of_elements(make: Any):
    assert len(sanitized({"a": make(range(1024))})[1]) == 1024
    with pytest.raises(ValueError, match=r"'a' .*log_histogram"):
        sanitized({"a": make(range(1025))})


class NoNumber(numbers.Number):
    """Says that it is a number, and has none."""

    __hash__ = None  # type: ignore[assignment]


BAD = [
    object(),
    1j,
    b"x",
    {1, 2},
    [1, "x"],
    [1, None],
    [[1], [1j]],
    np.complex64(1),
    np.array([1j, 2]),
    np.array(["x", "y"]),
    np.array([object()]),
    np.datetime64("2024-01-01"),
    torch.tensor(1j),
    torch.tensor([1j, 2j]),
    torch.empty(2, device="meta"),
    torch.empty((), device="meta"),
    np.ma.masked,
    np.ma.masked_array([1.0], [True]),
    np.ma.masked_array([1.0, 2.0], [True, False]),
    [[np.ma.masked]],
    np.timedelta64(1, "ns"),
    np.timedelta64("NaT"),
    np.array([1], "m8[ns]"),
    NoNumber(),
    float,
]


@pytest.mark.parametrize("value", BAD, ids=repr)
@pytest.mark.parametrize("company", [{}, {"first": 1.0}])
def test_anything_else_is_refused_by_name(value: Any, company: dict[str, Any]):
    with pytest.raises(TypeError, match="'the/key'"):
        sanitized({**company, "the/key": value})
    with pytest.raises(TypeError, match="'the/key'"):
        scalar("the/key", value)


def test_arrays_and_tensors_of_rare_kinds():
    assert sanitized({"a": np.matrix([[1, 2], [3, 4]])})[0] == {"a": [[1, 2], [3, 4]]}
    quantized = torch.quantize_per_tensor(torch.tensor([0.5, 1.0]), 0.5, 0, torch.qint8)
    assert sanitized({"a": quantized, "b": quantized[:1], "c": None})[0] == {"a": [0.5, 1.0], "b": 0.5, "c": None}
    assert scalar("a", quantized[1]) == 1.0


class Key(str, enum.Enum):
    LOSS = "loss"


def test_a_key_of_another_class_is_the_text_that_it_is():
    for metrics in ({Key.LOSS: 1.0}, {"n": {Key.LOSS: 1.0}}, {"n": {Key.LOSS: 1.0, "other": None}}):
        returned = sanitized(metrics)[0]
        assert returned in ({"loss": 1.0}, {"n/loss": 1.0}, {"n/loss": 1.0, "n/other": None})


def test_a_masked_array_of_which_nothing_is_masked_is_an_array():
    assert sanitized({"a": np.ma.masked_array([1.0, 2.0])})[0] == {"a": [1.0, 2.0]}
    assert scalar("a", np.ma.masked_array([1.0], [False])) == 1.0


@pytest.mark.parametrize("value", [None, "1.0", [], [1.0], (1.0,), {}, {"a": 1.0}, TensorDict()])
def test_log_scalar_takes_nothing_but_a_number(value: Any):
    with pytest.raises(TypeError, match="'a' must be one number"):
        scalar("a", value)


@pytest.mark.parametrize("value", [10**400, [1, -(10**400)], Fraction(10**400), Decimal("sNaN")])
def test_what_no_double_holds_is_refused_by_name(value: Any):
    with pytest.raises(ValueError, match="'a"):
        sanitized({"b": 1, "a": value})


def test_nested_metrics_are_flattened():
    nested = {
        "a": {"b": 1.0, "c": OrderedDict(d=2)},
        "e": TensorDict({"f": {"g": torch.tensor(3.0)}}),
        "h": Lazy(),
        "i": {},
    }
    returned, values, _ = sanitized(nested)
    assert returned == {"a/b": 1.0, "a/c/d": 2, "e/f/g": 3.0, "h/x": 1.0, "h/y": 2}
    assert values == returned
    assert sanitized(nested, ".")[0] == {"a.b": 1.0, "a.c.d": 2, "e.f.g": 3.0, "h.x": 1.0, "h.y": 2}
    assert sanitized(Lazy())[0] == {"x": 1.0, "y": 2}
    assert sanitized({}) == ({}, {}, [])


def test_all_kinds_of_tensordicts():
    @tensorclass
    class Metrics:
        loss: torch.Tensor
        phase: str

    batch = TensorDict({"a": torch.zeros(2), "t": NonTensorStack("x", "y")}, batch_size=[2])
    assert sanitized(TensorDict({"a": torch.tensor(1), "t": "text", "n": {"u": None}}))[0] == {
        "a": 1,
        "t": "text",
        "n/u": None,
    }
    assert sanitized(batch.select("a"))[1] == {"a/0": 0.0, "a/1": 0.0}
    with pytest.raises(TypeError, match="'t'"):
        sanitized(batch)
    assert sanitized(Metrics(loss=torch.tensor(0.5), phase="p", batch_size=[])) == (
        {"loss": 0.5, "phase": "p"},
        {"loss": 0.5},
        [("phase", "p")],
    )
    lazy = lazy_stack([TensorDict({"a": torch.tensor(1.0)}), TensorDict({"a": torch.tensor(2.0)})])
    assert sanitized(lazy)[1] == {"a/0": 1.0, "a/1": 2.0}
    assert sanitized(TensorDict({"a": torch.tensor(1.0)}).lock_())[1] == {"a": 1.0}
    assert sanitized({"list": [1], "td": batch.select("a")[0]})[1] == {"list/0": 1.0, "td/a": 0.0}


def test_texts_and_none():
    assert sanitized({"t": "text", "u": np.str_("μ"), "n": None, "a": 1}) == (
        {"t": "text", "u": "μ", "n": None, "a": 1},
        {"a": 1.0},
        [("t", "text"), ("u", "μ")],
    )


@pytest.mark.parametrize("key", [3, None, ("a", "b"), b"a"])
def test_keys_are_texts(key: Any):
    for metrics in ({key: 1.0}, {"a": {key: 1.0}}, {key: None}):
        with pytest.raises(TypeError, match="must be str"):
            sanitized(metrics)


@pytest.mark.parametrize(
    "metrics",
    [
        {"a": {"b": 1.0}, "a/b": 2.0},
        {"a": [1.0], "a/0": 2.0},
        {"a": [1.0], "a/0": 2.0, "n": None, "m": None},
        {"a": {"b": None}, "a/b": 2.0},
        {"a": {"b": "text"}, "a/b": 2.0},
    ],
)
def test_a_name_that_stands_twice_is_refused(metrics: dict[str, Any]):
    with pytest.raises(ValueError, match="twice"):
        sanitized(metrics)


@pytest.mark.parametrize("name", ["", "/a", "a/", "a//b", "../a", "a\n", "a" * 1025])
@pytest.mark.parametrize("value", [1.0, 1, torch.tensor(1.0), "text", [1.0], np.float32(1)])
def test_names_are_checked(name: str, value: Any):
    sanitizer = Sanitizer()
    for _ in range(2):  # Nothing of a refused row is remembered.
        with pytest.raises(ValueError, match="name"):
            sanitizer({"fine": 1.0, name: value})


@pytest.mark.parametrize("metrics", [None, 1.0, [1.0], "a", torch.tensor(1.0), {"a"}])
def test_metrics_are_a_mapping(metrics: Any):
    with pytest.raises(TypeError, match="metrics must be a mapping"):
        sanitized(metrics)


def test_what_nests_without_end_is_refused():
    endless: dict[str, Any] = {}
    endless["a"] = endless
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(ValueError, match="nested"):
        sanitized(endless)
    with pytest.raises(ValueError, match="nested"):
        sanitized({"a": circle})


def test_the_caller_gets_a_dict_and_lists_of_his_own():
    metrics = {"a": 1.0, "b": 2.0}
    returned, _, values, *_ = Sanitizer()(metrics)
    returned["a"] = 5.0
    values[1] = 7.0
    assert metrics == {"a": 1.0, "b": 2.0}
    given_list = {"a": [1.0, 2.0]}
    Sanitizer()(given_list)[0]["a"].append(3.0)
    assert given_list == {"a": [1.0, 2.0]}


def test_the_same_names_come_as_the_same_tuple():
    sanitizer = Sanitizer()
    ways = [{"a": 1.0, "b": 2.0}, {"a": 1, "b": 2.0}, {"a": torch.tensor(1), "b": 2.0}, {"a": 1.0, "b": 2.0, "n": None}]
    assert len({id(sanitizer(metrics)[1]) for metrics in ways}) == 1


@pytest.mark.parametrize(
    "metrics", [{"/a": 1.0, "b": 2.0}, {"/a": 1, "b": 2.0, "t": "x"}, {"//a": {"c": torch.tensor(1.0)}}]
)
def test_a_prefix_goes_before_every_name_once(metrics: dict[str, Any]):
    sanitizer = Sanitizer("p/q")
    returned, names, _, texts, _ = sanitizer(metrics)
    assert all(name.startswith("p/q/") and not name.startswith("p/q//") for name in returned)
    assert set(returned) == {*names, *(name for name, _ in texts)}
    with pytest.raises(ValueError, match="twice"):
        sanitizer({"a": 1.0, "/a": 2.0})
    with pytest.raises(ValueError, match="twice"):
        sanitizer({"a": 1.0, "/a": None})
    assert sanitizer({"a": [1.0]})[:3] == ({"p/q/a": [1.0]}, ("p/q/a/0",), [1.0])


def test_a_tensordict_is_read_through_its_dict_where_there_is_one():
    metrics = TensorDict({"a": torch.tensor(1.0)})
    assert tensors.plain_entries(metrics) == {"a": torch.tensor(1.0)}
    assert tensors.plain_entries(lazy_stack([metrics, metrics])) is None
    assert tensors.plain_entries({"a": 1.0}) is None
