"""Tensors of every dtype, shape and form that a metric may have, with the values that are hard to keep."""

from __future__ import annotations

import itertools

import torch

FLOATS = (torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.float8_e5m2)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.uint16, torch.uint32, torch.uint64)
DTYPES = (*FLOATS, *INTEGERS, torch.bool)


def values_of(dtype: torch.dtype) -> torch.Tensor:
    """Six values of a dtype: the least, the greatest, and what is odd."""
    if dtype is torch.bool:
        return torch.tensor([True, False, False, True, True, False])
    if dtype.is_floating_point:
        least = torch.finfo(dtype).smallest_normal
        return torch.tensor([0.1, -0.0, float("nan"), float("inf"), least, -3.5], dtype=torch.float64).to(dtype)
    limits = torch.iinfo(dtype)
    return torch.tensor([limits.min, limits.max, 0, 1, 7, 100], dtype=dtype)


def forms_of(values: torch.Tensor) -> dict[str, torch.Tensor]:
    """Some tensors with these values, by what they are."""
    forms = {f"scalar{index}": value for index, value in enumerate(values)}
    forms |= {
        "vector": values,
        "one": values[:1],
        "deep one": values[1:2].reshape(1, 1, 1),
        "empty": values[:0],
        "empty rows": values[:0].reshape(2, 0),
        "matrix": values.reshape(2, 3),
        "transposed": values.reshape(2, 3).t(),
        "strided": values[1::2],
        "expanded": values[3].expand(2, 2),
    }
    return forms


def mixed() -> dict[str, torch.Tensor]:
    """All of them, and some of those that are not plain."""
    tensors = {
        f"{dtype}/{form}".replace("torch.", ""): tensor
        for dtype in DTYPES
        for form, tensor in forms_of(values_of(dtype)).items()
    }
    with torch.inference_mode():
        tensors["inference"] = torch.tensor([0.5, 1.5])
    return {
        **tensors,
        "parameter": torch.nn.Parameter(torch.tensor([0.5, 1.5])),
        "result": torch.tensor(0.5, requires_grad=True) * 3,
        "sparse": torch.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse(),
        "sparse one": torch.tensor([0.0, 2.0]).to_sparse()[1],
        "negated": torch.tensor([1 + 2j, 3 - 4j]).conj().imag,
    }


def hundred() -> dict[str, torch.Tensor]:
    """A hundred of them, of all dtypes."""
    return dict(itertools.islice(mixed().items(), 0, 200, 2))
