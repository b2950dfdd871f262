"""`log_metrics`: what it flattens, what it returns, and that it takes a call whole or not at all."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tensordict import TensorDict


def test_dict_of_numbers(logger, read):
    assert logger.log_metrics({"loss": 0.5, "count": 3, "done": True}, 7) == {"loss": 0.5, "count": 3, "done": True}
    assert read().scalars == {"loss": [(7, 0.5)], "count": [(7, 3.0)], "done": [(7, 1.0)]}


def test_tensors_and_arrays_of_one_element_are_scalars(logger, read):
    metrics = {"tensor": torch.tensor([0.5], requires_grad=True), "array": np.array([[2]]), "number": np.float32(0.25)}
    assert logger.log_metrics(metrics, 0) == {"tensor": 0.5, "array": 2, "number": 0.25}
    assert read().scalars == {"tensor": [(0, 0.5)], "array": [(0, 2.0)], "number": [(0, 0.25)]}


@pytest.mark.parametrize("metrics", [{"a": {"b": 1.0, "c": {"d": 2.0}}, "e": 3.0}], ids=["nested"])
def test_nested_mappings_are_flattened(logger, read, metrics):
    assert logger.log_metrics(metrics, 1) == {"a/b": 1.0, "a/c/d": 2.0, "e": 3.0}
    assert logger.log_metrics(metrics, 2, keys_sep=".") == {"a.b": 1.0, "a.c.d": 2.0, "e": 3.0}
    assert read().scalars == {
        "a/b": [(1, 1.0)],
        "a/c/d": [(1, 2.0)],
        "a.b": [(2, 1.0)],
        "a.c.d": [(2, 2.0)],
        "e": [(1, 3.0), (2, 3.0)],
    }


def test_tensordict_is_flattened(logger, read):
    metrics = TensorDict({"loss": torch.tensor(0.5), "actor": TensorDict({"entropy": torch.tensor([0.25])})})
    assert logger.log_metrics(metrics, 3) == {"loss": 0.5, "actor/entropy": 0.25}
    assert logger.log_metrics(metrics, 4, keys_sep="-") == {"loss": 0.5, "actor-entropy": 0.25}
    assert read().scalars == {"loss": [(3, 0.5), (4, 0.5)], "actor/entropy": [(3, 0.25)], "actor-entropy": [(4, 0.25)]}


def test_tensordict_of_mixed_types(logger, read):
    metrics = TensorDict(
        {
            "float": torch.tensor(0.1),
            "half": torch.tensor(0.1, dtype=torch.bfloat16),
            "integer": torch.tensor(2**53 - 1),
            "flag": torch.tensor(True),
            "vector": torch.tensor([1.0, 2.0]),
        }
    )
    logger.log_metrics(metrics, 0)
    assert read().scalars == {
        "float": [(0, float(torch.tensor(0.1)))],
        "half": [(0, float(torch.tensor(0.1, dtype=torch.bfloat16)))],
        "integer": [(0, float(2**53 - 1))],
        "flag": [(0, 1.0)],
        "vector/0": [(0, 1.0)],
        "vector/1": [(0, 2.0)],
    }


@pytest.mark.parametrize(
    "values", [[1.0, 2.0, 3.0], (1, 2, 3), np.array([1, 2, 3]), torch.tensor([1.0, 2.0, 3.0])], ids=repr
)
def test_several_elements_are_logged_one_by_one_and_returned_as_a_list(logger, read, values):
    assert logger.log_metrics({"weights": values}, 2) == {"weights": [1, 2, 3]}
    assert read().scalars == {f"weights/{index}": [(2, index + 1.0)] for index in range(3)}


def test_matrix_is_logged_row_major(logger, read):
    assert logger.log_metrics({"m": torch.tensor([[1.0, 2.0], [3.0, 4.0]])}, 0) == {"m": [[1.0, 2.0], [3.0, 4.0]]}
    assert read().scalars == {f"m/{index}": [(0, index + 1.0)] for index in range(4)}


def test_up_to_1024_elements(logger, read):
    logger.log_metrics({"weights": torch.arange(1024)}, 0)
    assert len(read().scalars) == 1024
    with pytest.raises(ValueError, match="log_histogram"):
        logger.log_metrics({"weights": torch.arange(1025)}, 1)


def test_empty_values_log_nothing(logger, read):
    logger.log_metrics({"empty": [], "tensor": torch.empty(0), "loss": 1.0}, 0)
    logger.log_metrics({}, 1)
    assert read().scalars == {"loss": [(0, 1.0)]}


def test_none_is_kept_and_not_logged(logger, read):
    assert logger.log_metrics({"loss": 1.0, "missing": None}, 0) == {"loss": 1.0, "missing": None}
    assert read().scalars == {"loss": [(0, 1.0)]}


def test_str_is_text(logger, read):
    assert logger.log_metrics({"loss": 1.0, "phase": "warm-up"}, 4) == {"loss": 1.0, "phase": "warm-up"}
    files = read()
    assert files.scalars == {"loss": [(4, 1.0)]}
    assert files.texts == {"phase": [(4, "warm-up")]}


class Wordy:
    """Is a number by its own account, and no number."""

    def __float__(self) -> float:
        return 1.0


NO_VALUES = {
    "object": (object(), TypeError),
    "float()": (Wordy(), TypeError),
    "complex": (1j, TypeError),
    "bytes": (b"bytes", TypeError),
    "set": ({1, 2}, TypeError),
    "class": (float, TypeError),
    "list of texts": ([1.0, "x"], TypeError),
    "list of None": ([1.0, None], TypeError),
    "tensor": (torch.tensor(1j), TypeError),
    "tensors": (torch.tensor([1j, 2j]), TypeError),
    "meta": (torch.empty(1, device="meta"), TypeError),
    "array of objects": (np.array([object()]), TypeError),
    "array of texts": (np.array(["x"]), TypeError),
    "time": (np.datetime64("2026-01-31"), TypeError),
    "inside": ({"x": {"y": object()}}, TypeError),
    "key": ({3: 1.0}, TypeError),
    "too large": (10**400, ValueError),
    "too many": (torch.arange(1025), ValueError),
    "too many in a list": ([0.5] * 1025, ValueError),
    "surrogate": ("\ud800", ValueError),
    "segment": ({"": 1.0}, ValueError),
}


@pytest.mark.parametrize("position", [0, 1, 3], ids=["first", "middle", "last"])
@pytest.mark.parametrize("case", NO_VALUES)
def test_a_bad_value_takes_nothing_of_its_call_along(logger, read, case, position):
    bad, error = NO_VALUES[case]
    metrics = [("number", 1.0), ("text", "text"), ("tensor", torch.tensor([1.0, 2.0]))]
    metrics.insert(position, ("bad", bad))
    with pytest.raises(error, match="bad"):
        logger.log_metrics(dict(metrics), 0)
    with pytest.raises(error, match="view/bad"):
        logger.with_prefix("view").log_metrics(dict(metrics))
    with pytest.raises(error, match="bad"):
        logger.log_metrics({"deep": dict(metrics)})
    logger.log_metrics({"number": 2.0})
    files = read()
    assert files.scalars == {"number": [(0, 2.0)]}
    assert files.texts == {}


@pytest.mark.parametrize("position", [0, 1, 2], ids=["first", "middle", "last"])
def test_a_bad_value_of_a_tensordict_takes_nothing_along(logger, read, position):
    metrics = [("a", torch.tensor(1.0)), ("b", TensorDict({"c": torch.tensor([1.0])}))]
    metrics.insert(position, ("bad", torch.tensor([1j])))
    with pytest.raises(TypeError, match="bad"):
        logger.log_metrics(TensorDict(dict(metrics)), 0)
    assert read().scalars == {}


def test_a_bad_name_takes_nothing_of_its_call_along(logger, read):
    with pytest.raises(ValueError, match="name"):
        logger.log_metrics({"first": 1.0, "../bad": 2.0}, 0)
    assert read().scalars == {}


def test_names_may_change_from_call_to_call(logger, read):
    for step in range(100):
        logger.log_metrics({"always": step, f"sometimes/{step % 3}": step}, step)
    scalars = read().scalars
    assert scalars["always"] == [(step, float(step)) for step in range(100)]
    for remainder in range(3):
        assert scalars[f"sometimes/{remainder}"] == [(step, float(step)) for step in range(remainder, 100, 3)]


def test_in_place_writes_after_the_call_do_not_show(logger, read):
    tensor, array, values = torch.tensor([1.0]), np.array([1.0]), [1.0, 1.0]
    logger.log_metrics({"tensor": tensor, "array": array, "list": values}, 0)
    tensor.fill_(2.0)
    array.fill(2.0)
    values[0] = 2.0
    assert read().scalars == {name: [(0, 1.0)] for name in ("tensor", "array", "list/0", "list/1")}
