"""Tensors on devices, brought to host memory: packed where they are, then one copy for each device.

Views of the tensors' bytes are joined, so that the dtype does not matter: 100 scalars of five dtypes are one copy.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from logger_service.contract import cuda, pinned, tensors


class DeviceCopy:
    """The tensors of one device, on their way from the moment it is made.

    What is enqueued on the caller's current stream of the device comes after what made the tensors, and before what
    overwrites them in place later.

    Args:
        device: Where they are.
        members: The tensors by their index among all tensors of the call. They are not held any longer.

    Attributes:
        size_bytes: How much host memory it holds until it is closed.
    """

    def __init__(self, device: Any, members: dict[int, Any]) -> None:
        torch: Any = sys.modules["torch"]
        self._pieces: list[tuple[Any, list[int], int, int]] = []  # dtype, indices, first and last byte.
        with torch.no_grad():
            packed = self._pack(members)
            size = packed.numel()
            if device.type == "cuda":
                self._block = pinned.take(size)
                self._block[:size].copy_(packed, non_blocking=True)
                self._event = cuda.record_event(device)
            else:
                self._block = packed.to("cpu")
                self._event = None
        self.size_bytes = self._block.numel()

    def _pack(self, members: dict[int, Any]) -> Any:
        torch: Any = sys.modules["torch"]
        by_dtype: dict[Any, list[int]] = {}
        for index, member in members.items():
            by_dtype.setdefault(member.dtype, []).append(index)
        packed = []
        end = 0
        # The widest elements come first, so that each piece begins where its dtype may be viewed.
        for dtype in sorted(by_dtype, key=lambda dtype: -int(dtype.itemsize)):
            indices = by_dtype[dtype]
            joined = _join([members[index] for index in indices], tensors.plain_dtype(dtype)).view(torch.uint8)
            packed.append(joined)
            begin, end = end, end + joined.numel()
            self._pieces.append((dtype, indices, begin, end))
        return packed[0] if len(packed) == 1 else torch.cat(packed)

    def read(self) -> Iterator[tuple[list[int], list[Any]]]:
        """Waits until all is there.

        Yields:
            For each dtype, the indices of its tensors, and the elements of one after the other.
        """
        if self._event is not None:
            self._event.synchronize()
        for dtype, indices, begin, end in self._pieces:
            yield indices, self._block[begin:end].view(dtype).tolist()

    def close(self) -> None:
        """Gives the host memory back. To be called once, after the content was read."""
        if self._event is not None:
            pinned.give_back(self._block)


def start(values: Sequence[Any]) -> list[DeviceCopy]:
    """Starts a copy for each device, before any of them is waited for.

    Args:
        values: Tensors with elements, none of them in host memory, which `tensors.check` has passed.

    Raises:
        RuntimeError: One of them is a CUDA tensor, and a CUDA graph is being captured.
    """
    by_device: dict[Any, dict[int, Any]] = {}
    for index, value in enumerate(values):
        by_device.setdefault(value.device, {})[index] = value
    # Those of other kinds of devices last: their copies are waited for as they are made.
    devices = sorted(by_device, key=lambda device: device.type != "cuda")
    cuda.refuse_capture(device for device in devices if device.type == "cuda")
    return [DeviceCopy(device, by_device[device]) for device in devices]


def _join(members: list[Any], plain_dtype: Any) -> Any:
    """Joins the elements of tensors of one dtype into one dimension."""
    torch: Any = sys.modules["torch"]
    members = [tensors.dense(member) for member in members]
    if plain_dtype is not None:
        members = [member.view(plain_dtype) for member in members]
    if any(member.dim() for member in members):
        return torch.cat([member.reshape(-1) for member in members])
    return torch.stack(members)
