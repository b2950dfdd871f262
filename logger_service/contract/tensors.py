"""Tensors and TensorDicts, recognised and read without importing torch: whoever has one has imported it already."""

from __future__ import annotations

import functools
import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from logger_service.contract import cuda


def is_tensor(value: Any) -> bool:
    """Whether the value is a `torch.Tensor`."""
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    return tensor is not None and isinstance(value, tensor)


def is_wrapped(value: Any) -> bool:
    """Whether the value is a TensorDict's wrapper for what is no tensor; `tolist()` returns what it holds."""
    is_non_tensor = getattr(sys.modules.get("tensordict"), "is_non_tensor", None)
    return is_non_tensor is not None and bool(is_non_tensor(value))


def is_collection(value: Any) -> bool:
    """Whether the value is a TensorDict or a tensorclass, with entries."""
    is_tensor_collection = getattr(sys.modules.get("tensordict"), "is_tensor_collection", None)
    return is_tensor_collection is not None and bool(is_tensor_collection(value)) and not is_wrapped(value)


def is_distributed(value: Any) -> bool:
    """Whether a tensor is a DTensor, whose parts lie on several devices: it has no bytes of its own to copy."""
    distributed = getattr(sys.modules.get("torch.distributed.tensor"), "DTensor", None)
    return distributed is not None and isinstance(value, distributed)


def plain_entries(metrics: Any) -> dict[str, Any] | None:
    """Returns the entries of a plain TensorDict as they are, or None if it is another collection.

    `items()` of a TensorDict takes several times as long as reading the dict that it keeps them in; where a version
    keeps them elsewhere, or it is of another class, the answer is None and `items()` is used.
    """
    tensordict = sys.modules.get("tensordict")
    if tensordict is None or type(metrics) is not getattr(tensordict, "TensorDict", None):
        return None
    entries = getattr(metrics, "_tensordict", None)
    return entries if type(entries) is dict else None


def check(value: Any) -> None:
    """Checks that a tensor has content, and of a kind that can be read as real numbers.

    Raises:
        TypeError: It does not.
    """
    if value.is_meta:
        raise TypeError("it is a tensor without content (on the device 'meta')")
    if value.is_nested:
        raise TypeError("it is a nested tensor")
    if not _is_real(value.dtype):
        raise _no_numbers(value)


def read(value: Any) -> tuple[Any, list[Any]]:
    """Returns the content of one tensor as TorchRL does, and its elements, row-major. Waits for its device.

    Returns:
        A Python number if there is one element, else a nested list; and the flat list of elements.

    Raises:
        TypeError: It holds what is not a real number, or in a form that cannot be read.
        RuntimeError: It is a CUDA tensor, and a CUDA graph is being captured, or the device failed.
    """
    if value.is_quantized and value.is_cpu:
        value = value.dequantize()
    if not value.is_cpu:
        check(value)
        if value.is_cuda:
            cuda.refuse_capture([value.device])
    elif not _is_real(value.dtype):
        raise _no_numbers(value)
    try:
        if value.numel() == 1:
            number = value.item()
            return number, [number]
        check(value)
        strided = dense(value.detach())
        return strided.tolist(), strided.reshape(-1).tolist()
    except RuntimeError as error:
        if not value.is_cpu:  # It may well be the device's.
            raise
        reason = str(error).partition("\n")[0]
        raise TypeError(f"it is a tensor that cannot be read ({reason})") from error


def as_array(value: Any) -> npt.NDArray[Any]:
    """Returns the content of a tensor as an array, in place where it can be. Waits for its device.

    Raises:
        TypeError: It holds what is not a real number, or in a form that cannot be read.
        RuntimeError: It is a CUDA tensor, and a CUDA graph is being captured, or the device failed.
    """
    check(value)
    if value.is_cuda:
        cuda.refuse_capture([value.device])
    strided = dense(value.detach()).to("cpu").resolve_neg()
    try:
        array = strided.numpy()
    except TypeError:  # NumPy has no such dtype; doubles hold what it holds.
        array = strided.to(sys.modules["torch"].float64).numpy()
    return np.asarray(array)


def _no_numbers(value: Any) -> TypeError:
    return TypeError(f"it is a tensor of {value.dtype}")


def dense(value: Any) -> Any:
    """Returns a tensor with a place for each element, also where it is zero."""
    return value if value.layout is sys.modules["torch"].strided else value.to_dense()


def plain_dtype(dtype: Any) -> Any:
    """Returns the integers as which tensors of a rare dtype are joined; None: the dtype is joined by every torch."""
    torch: Any = sys.modules["torch"]
    if dtype in _common_dtypes(torch):
        return None
    return {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize]


@functools.cache
def _common_dtypes(torch: Any) -> frozenset[Any]:
    floats = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
    return frozenset((*floats, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool))


@functools.cache
def _is_real(dtype: Any) -> bool:
    """Whether the elements are real numbers that Python can read: not of quantized or packed kinds."""
    torch: Any = sys.modules["torch"]
    if dtype in _common_dtypes(torch):
        return True
    if dtype.is_complex:
        return False
    try:
        torch.empty(1, dtype=dtype, device="cpu").tolist()
    except RuntimeError:
        return False
    return True
