"""Tensors and TensorDicts, recognised and read without importing torch: whoever has one has imported it already."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any


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


def on_host(values: Iterable[Any]) -> bool:
    """Whether all tensors among the values are in host memory, or no CUDA device is in use.

    Other kinds of device are not looked for here, since that takes a quarter of the time of reading: their tensors are
    read one by one, each with its wait, which is slower and right too.
    """
    torch: Any = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return True
    return all(value.is_cpu for value in values if isinstance(value, torch.Tensor))


def read(value: Any) -> tuple[Any, list[Any]]:
    """Returns the content of a tensor in host memory as TorchRL does, and its elements, row-major.

    Returns:
        A Python number if there is one element, else a nested list; and the flat list of elements.

    Raises:
        TypeError: It holds what is not a real number, or in a form that cannot be read.
    """
    try:
        if value.numel() == 1:
            number = value.item()
            content, elements = number, [number]
        else:
            dense = _dense(value)
            content, elements = dense.tolist(), dense.reshape(-1).tolist()
    except (RuntimeError, NotImplementedError) as error:
        raise TypeError(f"it is a tensor that cannot be read ({error})") from error
    if value.is_complex():
        raise TypeError(f"it is a tensor of {value.dtype}")
    return content, elements


def to_host(values: dict[str, Any], limit: int) -> None:
    """Replaces tensors on devices by copies in host memory: one copy, and one wait, per device.

    Those of more than `limit` elements stay where they are, and so do those that have no content (`meta`).
    """
    by_device: dict[Any, list[str]] = {}
    for key, value in values.items():
        if is_tensor(value) and not value.is_cpu and not value.is_meta and value.numel() <= limit:
            by_device.setdefault(value.device, []).append(key)
    for keys in by_device.values():
        values.update(zip(keys, copy_packed([values[key] for key in keys]), strict=True))


def copy_packed(values: Sequence[Any]) -> list[Any]:
    """Copies tensors of one device to host memory, packed into one piece of bytes there and taken apart here."""
    torch: Any = sys.modules["torch"]
    groups: dict[tuple[Any, bool], list[int]] = {}
    for index, value in enumerate(values):
        groups.setdefault((value.dtype, value.dim() == 0), []).append(index)
    # The widest elements come first, so that each piece begins where its dtype may be viewed.
    ordered = sorted(groups.items(), key=lambda group: -int(group[0][0].itemsize))
    copies: list[Any] = [None] * len(values)
    with torch.no_grad():
        pieces = []
        for (_, scalars), indices in ordered:
            # Scalars, which are most of what is logged, are stacked in one call rather than reshaped one by one.
            members = [values[index] for index in indices]
            piece = torch.stack(members) if scalars else torch.cat([_dense(member).reshape(-1) for member in members])
            pieces.append(piece.view(torch.uint8))
        packed = torch.cat(pieces).to("cpu")
        begin = 0
        for ((dtype, scalars), indices), piece in zip(ordered, pieces, strict=True):
            copy = packed[begin : begin + piece.numel()].view(dtype)
            begin += piece.numel()
            if scalars:
                parts = copy.unbind(0)
            else:
                split = copy.split([values[index].numel() for index in indices])
                parts = [part.reshape(values[index].shape) for part, index in zip(split, indices, strict=True)]
            for index, part in zip(indices, parts, strict=True):
                copies[index] = part
    return copies


def _dense(value: Any) -> Any:
    return value if value.layout is sys.modules["torch"].strided else value.to_dense()
