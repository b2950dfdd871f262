"""Devices that stand in for CUDA's where there is none, and note what crosses to host memory.

A `StandinTensor` says that it is on `cuda:0` or `cuda:1` and computes on an inner CPU tensor, at once. A copy into host
memory that does not block is made only when an event that was recorded after it is waited for, so that whoever reads
too early, or waits for an event of another device, reads rubbish.
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
import torch
from torch.utils._pytree import tree_leaves, tree_map_only

from logger_service.contract import pinned

_RUBBISH = 0xAB
_empty = torch.empty


class Deed(NamedTuple):
    """Something that was done to a device."""

    what: str
    """`copy` to host memory, or `wait`."""
    device: str
    thread: threading.Thread


class StandinDevices:
    """What happens on the devices.

    Attributes:
        deeds: What was done, in order.
        pinned: Sizes of the pinned blocks that were allocated.
        capturing: Devices whose current stream is captured.
        failing: Devices for which nothing can be waited.
    """

    def __init__(self) -> None:
        self.deeds: list[Deed] = []
        self.pinned: list[int] = []
        self.capturing: set[str] = set()
        self.failing: set[str] = set()
        self.current = "cuda:0"
        self._lock = threading.Lock()
        self._queues: defaultdict[str, list[Callable[[], object]]] = defaultdict(list)

    @property
    def copies(self) -> Counter[str]:
        """How many copies into host memory were begun, by device."""
        return Counter(deed.device for deed in self.deeds if deed.what == "copy")

    @property
    def waits(self) -> Counter[str]:
        """How often something waited, by device."""
        return Counter(deed.device for deed in self.deeds if deed.what == "wait")

    @property
    def waits_here(self) -> Counter[str]:
        """How often this very thread waited, by device."""
        here = threading.current_thread()
        return Counter(deed.device for deed in self.deeds if deed.what == "wait" and deed.thread is here)

    def tensor(self, content: Any, device: str = "cuda:0", dtype: torch.dtype | None = None) -> StandinTensor:
        """Makes a tensor on a device."""
        inner = content if isinstance(content, torch.Tensor) else torch.tensor(content, dtype=dtype)
        return StandinTensor(inner, device, self)

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Has `torch.cuda` know of them, and forgets the pinned blocks that are left from before."""
        devices = self

        class Event:
            def record(self, stream: str | None = None) -> None:
                device = stream or devices.current
                self.at = device, len(devices._queues[device])

            def synchronize(self) -> None:
                devices._wait(*self.at)

        monkeypatch.setattr(torch.cuda, "Event", Event)
        monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
        monkeypatch.setattr(torch.cuda, "device", self._switch)
        monkeypatch.setattr(torch.cuda, "current_stream", str)
        monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: self.current in self.capturing)
        monkeypatch.setattr(torch, "empty", self._empty)
        monkeypatch.setattr(pinned, "_free", defaultdict(list))

    def copy(self, device: str, target: torch.Tensor, source: torch.Tensor, non_blocking: bool) -> torch.Tensor:
        """Copies into host memory."""
        self._note("copy", device)
        target.fill_(_RUBBISH % 2 if target.dtype is torch.bool else _RUBBISH % 128)
        self._queues[device].append(lambda: target.copy_(source))
        if not non_blocking:
            self._wait(device, len(self._queues[device]))
        return target

    def read(self, device: str) -> None:
        """Copies a number to host memory."""
        self._note("copy", device)
        self._wait(device, len(self._queues[device]))

    def _note(self, what: str, device: str) -> None:
        self.deeds.append(Deed(what, device, threading.current_thread()))

    def _wait(self, device: str, position: int) -> None:
        self._note("wait", device)
        if device in self.failing:
            raise RuntimeError(f"CUDA error: an illegal access on {device}\nadvice on debugging")
        with self._lock:
            queue = self._queues[device]
            for index in range(position):
                queue[index]()
                queue[index] = lambda: None

    @contextlib.contextmanager
    def _switch(self, device: object) -> Iterator[None]:
        before, self.current = self.current, str(device)
        try:
            yield
        finally:
            self.current = before

    def _empty(self, size: Any, *, pin_memory: bool = False, **kwargs: Any) -> torch.Tensor:
        if not pin_memory:
            return _empty(size, **kwargs)
        self.pinned.append(size)
        return torch.full((size,), _RUBBISH, **kwargs)


class StandinTensor(torch.Tensor):
    """A tensor on such a device."""

    @staticmethod
    def __new__(cls, inner: torch.Tensor, device: str, devices: StandinDevices):
        if inner.layout is torch.strided:
            form = {"strides": inner.stride(), "storage_offset": inner.storage_offset()}
        else:
            form = {"layout": inner.layout}
        made = torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, dtype=inner.dtype, device=device, requires_grad=inner.requires_grad, **form
        )
        made.inner = inner.detach()
        made.devices = devices
        return made

    def __repr__(self) -> str:  # type: ignore[override]
        return f"StandinTensor({self.inner}, {self.device})"

    def new_empty(self, size: Any) -> StandinTensor:  # type: ignore[override]
        """Makes one on the same device, where torch itself would look for the device first."""
        return StandinTensor(self.inner.new_empty(size), str(self.device), self.devices)

    def new_zeros(self, size: Any) -> StandinTensor:  # type: ignore[override]
        """Makes one on the same device, likewise."""
        return StandinTensor(self.inner.new_zeros(size), str(self.device), self.devices)

    def copy_(self, source: torch.Tensor) -> StandinTensor:  # type: ignore[override]
        """Copies from host memory to the device, likewise."""
        self.inner.copy_(source)
        return self

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None):
        kwargs = kwargs or {}
        given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, StandinTensor)]
        if len({tensor.device for tensor in given}) > 1:
            raise RuntimeError("Expected all tensors to be on the same device")
        device, devices = str(given[0].device), given[0].devices
        if func is torch.ops.aten.copy_.default and not isinstance(args[0], StandinTensor):
            target, source, *non_blocking = args
            return devices.copy(device, target, source.inner.clone(), bool(non_blocking and non_blocking[0]))
        inner_args, inner_kwargs = tree_map_only(StandinTensor, lambda tensor: tensor.inner, (args, kwargs))
        result = func(*inner_args, **inner_kwargs)
        if func is torch.ops.aten._local_scalar_dense.default:
            devices.read(device)
            return result
        if func is torch.ops.aten._to_copy.default and torch.device(kwargs.get("device", device)).type == "cpu":
            return devices.copy(device, torch.zeros_like(result), result, kwargs.get("non_blocking", False))
        if result is inner_args[0]:  # It works in place.
            return args[0]
        return tree_map_only(torch.Tensor, lambda tensor: StandinTensor(tensor, device, devices), result)
