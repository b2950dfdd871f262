"""Tensors and TensorDicts, recognised and read without importing torch: whoever has one has imported it already."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def is_tensor(value: Any) -> bool:
    """Whether the value is a `torch.Tensor`."""
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    return tensor is not None and isinstance(value, tensor)


def is_collection(value: Any) -> bool:
    """Whether the value is a TensorDict or a tensorclass with fields, but not a wrapped value that is no tensor."""
    tensordict = sys.modules.get("tensordict")
    if tensordict is None or not hasattr(tensordict, "is_non_tensor"):  # Still being imported, or not at all.
        return False
    return bool(tensordict.is_tensor_collection(value)) and not tensordict.is_non_tensor(value)


def unwrapped(value: Any) -> Any:
    """Returns what a TensorDict's wrapper for values that are no tensors holds; any other value as it is."""
    tensordict = sys.modules.get("tensordict")
    if tensordict is not None and hasattr(tensordict, "is_non_tensor") and tensordict.is_non_tensor(value):
        return value.tolist()
    return value


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


def read_scalars(values: Iterable[Any]) -> list[Any] | None:
    """Returns the numbers in plain tensors of one element each; None unless all are that, and quick to read.

    One `item()` each is the fastest way on a CPU (0.24 us; stacking them first takes twice as long in all).
    """
    torch: Any = sys.modules["torch"]
    if torch.cuda.is_initialized() and not all(value.is_cpu for value in values):
        return None
    try:
        return [value.item() for value in values]
    except RuntimeError:  # More than one element, or none: `read` takes those.
        return None


def read(value: Any) -> tuple[Any, list[Any]]:
    """Returns the content of a tensor in host memory as TorchRL does, and its elements, row-major.

    Returns:
        A Python number if there is one element, else a nested list; and the flat list of elements.

    Raises:
        TypeError: It holds what is not a real number, or in a form that cannot be read.
    """
    if value.is_complex():
        raise TypeError(f"a tensor of {value.dtype}")
    try:
        value = value.detach()
        if value.layout is not sys.modules["torch"].strided:
            value = value.to_dense()
        if value.numel() == 1:
            number = value.item()
            return number, [number]
        return value.tolist(), value.reshape(-1).tolist()
    except (RuntimeError, NotImplementedError) as error:
        raise TypeError(f"a tensor that cannot be read ({error})") from error


def to_host(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the tensors with those on devices copied to host memory: one copy, and one wait, per device."""
    host = dict(values)
    by_device: dict[Any, list[str]] = {}
    for key, value in values.items():
        if not value.is_cpu and not value.is_complex():
            by_device.setdefault(value.device, []).append(key)
    for keys in by_device.values():
        host.update(zip(keys, copy_packed([values[key] for key in keys]), strict=True))
    return host


def copy_packed(values: Sequence[Any]) -> list[Any]:
    """Copies tensors of one device to host memory, packed into one piece of bytes there and taken apart here."""
    torch: Any = sys.modules["torch"]
    dense = [value.detach() if value.layout is torch.strided else value.detach().to_dense() for value in values]
    by_dtype: dict[Any, list[int]] = {}
    for index, value in enumerate(dense):
        by_dtype.setdefault(value.dtype, []).append(index)
    # The widest elements come first, so that each piece begins where its dtype may be viewed.
    groups = sorted(by_dtype.items(), key=lambda group: -int(group[0].itemsize))
    pieces = [torch.cat([dense[index].reshape(-1) for index in indices]).view(torch.uint8) for _, indices in groups]
    packed = torch.cat(pieces).to("cpu")
    copies: list[Any] = [None] * len(dense)
    begin = 0
    for dtype, indices in groups:
        for index in indices:
            end = begin + dense[index].numel() * dtype.itemsize
            copies[index] = packed[begin:end].view(dtype).reshape(dense[index].shape)
            begin = end
    return copies
