"""Tensors on devices: one copy and one wait for each, the values that they have on the CPU, and what is refused."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest
import torch
from tensordict import TensorDict, lazy_stack
from torchrl.record.loggers import common as torchrl_common

from logger_service.contract import device_copy
from tests.support.mixed_tensors import hundred, mixed
from tests.support.standin_device import StandinDevices
from tests.unit.contract.recorded import BufferLogger, scalars


@pytest.fixture
def logger() -> BufferLogger:
    return BufferLogger()


def on_devices(devices: StandinDevices, tensors: dict[str, torch.Tensor], *names: str) -> dict[str, torch.Tensor]:
    """The same tensors, on the devices in turn."""
    return {
        key: devices.tensor(tensor, names[index % len(names)]) for index, (key, tensor) in enumerate(tensors.items())
    }


def bits(logger: BufferLogger) -> dict[str, list[tuple[int | None, bytes]]]:
    """The points that were logged, with NaN and -0.0 told apart."""
    return {
        name: [(step, struct.pack("<d", value)) for step, value in points]
        for name, points in scalars(logger.sink.take()).items()
    }


def test_a_hundred_tensors_on_two_devices_are_one_copy_and_one_wait_each(devices, logger):
    metrics = hundred()
    returned = logger.log_metrics(on_devices(devices, metrics, "cuda:0", "cuda:1"), 3)
    assert devices.copies == devices.waits == {"cuda:0": 1, "cuda:1": 1}
    points = bits(logger)
    assert repr(returned) == repr(logger.log_metrics(metrics, 3))
    assert points == bits(logger)


def test_through_views_over_views_too(devices, logger):
    metrics = hundred()
    view = logger.with_prefix("a").with_prefix("b/c")
    returned = view.log_metrics(on_devices(devices, metrics, "cuda:0", "cuda:1"), 3)
    assert devices.copies == devices.waits == {"cuda:0": 1, "cuda:1": 1}
    points = bits(logger)
    assert repr(returned) == repr(view.log_metrics(metrics, 3))
    assert points == bits(logger)


def test_all_copies_are_on_their_way_before_one_is_waited_for(devices, logger):
    logger.log_metrics(on_devices(devices, hundred(), "cuda:1", "cuda:0", "cuda:2"))
    assert [deed.what for deed in devices.deeds] == ["copy"] * 3 + ["wait"] * 3


@pytest.mark.parametrize("device", ["cuda:0", "mps:0"])
@pytest.mark.parametrize("name", mixed())
def test_every_form_is_read_as_on_the_cpu(devices, logger, name, device):
    tensor = mixed()[name]
    returned = logger.log_metrics({"a": devices.tensor(tensor, device)}, 1)
    points = bits(logger)
    assert repr(returned) == repr(logger.log_metrics({"a": tensor}, 1))
    assert points == bits(logger)
    assert set(devices.copies.values()) <= {1}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
def test_the_returned_values_are_torchrls(devices, logger, dtype):
    metrics = {"scalar": torch.tensor(1, dtype=dtype), "rows": torch.tensor([[1, 0], [0, 1]]).to(dtype)}
    given = on_devices(devices, metrics, "cuda:0")
    assert logger.log_metrics(given) == torchrl_common._make_metrics_safe(given)
    nested = TensorDict({"scalar": metrics["scalar"], "deep": {"rows": metrics["rows"]}})
    assert logger.log_metrics(nested.apply(devices.tensor)) == torchrl_common._make_metrics_safe(nested)


def test_what_is_in_host_memory_goes_with_it(devices, logger):
    metrics: dict[str, Any] = {
        "float": 0.5,
        "host": torch.tensor([1.0, 2.0]),
        "text": "x",
        "none": None,
        "list": [1, devices.tensor([2, 3]), [devices.tensor(4.5, "cuda:1")], torch.tensor(5)],
        "deep": {"device": devices.tensor(True, "cuda:1")},
    }
    returned = logger.log_metrics(metrics, 0)
    assert returned == {
        "float": 0.5,
        "host": [1.0, 2.0],
        "text": "x",
        "none": None,
        "list": [1, [2, 3], [4.5], 5],
        "deep/device": True,
    }
    assert scalars(logger.sink.take()) == {
        "float": [(0, 0.5)],
        "host/0": [(0, 1.0)],
        "host/1": [(0, 2.0)],
        **{f"list/{index}": [(0, value)] for index, value in enumerate([1.0, 2.0, 3.0, 4.5, 5.0])},
        "deep/device": [(0, 1.0)],
    }
    assert devices.copies == devices.waits == {"cuda:0": 1, "cuda:1": 1}


TENSORDICTS: dict[str, Callable[[TensorDict], Any]] = {
    "plain": lambda metrics: metrics,
    "locked": lambda metrics: metrics.lock_(),
    "nested": lambda metrics: TensorDict({"deep": metrics, "empty": TensorDict()}),
    "batched": lambda metrics: TensorDict({"a": metrics["b"], "deep": {"b": metrics["b"]}}, batch_size=[2]),
    "lazily stacked": lambda metrics: lazy_stack([metrics, metrics.clone()]),
    "in a dict": lambda metrics: {"x": {"y": metrics}},
}


@pytest.mark.parametrize("shape", TENSORDICTS)
def test_tensordicts(devices, logger, shape):
    metrics = TensorDict({"a": torch.tensor(0.5), "b": torch.tensor([1, 2])})
    returned = logger.log_metrics(TENSORDICTS[shape](metrics.apply(devices.tensor, device="cuda:0")), 0)
    points = bits(logger)
    assert returned == logger.log_metrics(TENSORDICTS[shape](metrics), 0)
    assert points == bits(logger)
    assert devices.copies == devices.waits == {"cuda:0": 1}


def test_other_devices_than_cudas_are_read_too(devices, logger):
    metrics = hundred()
    returned = logger.log_metrics(on_devices(devices, metrics, "mps:0", "cuda:0"))
    assert repr(returned) == repr(logger.log_metrics(metrics))
    assert devices.copies == devices.waits == {"cuda:0": 1, "mps:0": 1}
    assert devices.deeds[0][:2] == ("copy", "cuda:0")  # The one that nobody waits for yet.


def test_blocks_are_used_again(devices, logger):
    given = on_devices(devices, hundred(), "cuda:0", "cuda:1")
    for _ in range(10):
        logger.log_metrics(given)
    assert len(devices.pinned) == 2
    deferred = [logger.log_metrics(given, defer=True) for _ in range(3)]
    assert len(devices.pinned) == 6  # What is on its way keeps its own.
    assert len({repr(metrics) for metrics in deferred}) == 1
    logger.sink.take()
    for _ in range(3):
        logger.log_metrics(given, defer=True)
    assert len(devices.pinned) == 6


def test_blocks_of_a_failed_device_are_not_used_again(devices, logger):
    """It may still write to them."""
    devices.failing.add("cuda:0")
    with pytest.raises(
        RuntimeError, match=r"did not arrive from their device: CUDA error: an illegal access on cuda:0$"
    ):
        logger.log_metrics({"a": devices.tensor(1.0)})
    devices.failing.clear()
    assert logger.log_metrics({"a": devices.tensor(2.0)}) == {"a": 2.0}
    assert len(devices.pinned) == 2
    assert scalars(logger.sink.take()) == {"a": [(None, 2.0)]}


@pytest.mark.parametrize("inferring_first", [True, False])
def test_blocks_are_shared_with_inference_mode(devices, logger, inferring_first):
    for inferring in (inferring_first, not inferring_first):
        with torch.inference_mode(inferring):
            assert logger.log_metrics({"a": devices.tensor([0.5, 1.5])}) == {"a": [0.5, 1.5]}
    assert len(devices.pinned) == 1


BAD: dict[str, tuple[Callable[[StandinDevices], Any], type[Exception]]] = {
    "complex": (lambda devices: devices.tensor([1j]), TypeError),
    "meta": (lambda devices: torch.empty(2, device="meta"), TypeError),
    "no number": (lambda devices: devices.tensor(torch.empty(1, dtype=torch.bits8)), TypeError),
    "too long": (lambda devices: devices.tensor(torch.zeros(1025)), ValueError),
    "too long a list": (
        lambda devices: [devices.tensor(torch.zeros(1000)), devices.tensor(torch.zeros(25))],
        ValueError,
    ),
    "object": (lambda devices: object(), TypeError),
    "too large": (lambda devices: 10**400, ValueError),
    "name": (lambda devices: {"..": 1.0}, ValueError),
}


@pytest.mark.parametrize("defer", [False, True])
@pytest.mark.parametrize("case", BAD)
def test_what_is_refused_is_so_before_anything_is_copied(devices, logger, case, defer):
    make, error = BAD[case]
    with pytest.raises(error, match="bad"):
        logger.log_metrics({"good": devices.tensor(1.0), "bad": make(devices), "other": devices.tensor(2)}, defer=defer)
    assert devices.deeds == []
    assert logger.sink.take() == []


@pytest.mark.parametrize("call", ["log_metrics", "defer", "log_scalar"])
def test_while_a_graph_is_captured_nothing_is_logged(devices, logger, call):
    calls = {
        "log_metrics": lambda: logger.log_metrics({"b": 1.0, "a": devices.tensor(0.5, "cuda:1")}),
        "defer": lambda: logger.log_metrics({"b": 1.0, "a": devices.tensor(0.5, "cuda:1")}, defer=True),
        "log_scalar": lambda: logger.log_scalar("a", devices.tensor(0.5, "cuda:1")),
    }
    devices.capturing.add("cuda:1")
    with pytest.raises(RuntimeError, match=r"nothing was logged: a CUDA graph is being captured on cuda:1"):
        calls[call]()
    assert devices.deeds == []
    assert logger.sink.take() == []
    logger.log_metrics({"a": devices.tensor(1.0, "cuda:0"), "b": torch.tensor(2.0)})  # They are not captured.
    devices.capturing.clear()
    calls[call]()
    assert scalars(logger.sink.take())["a"] == [(None, 1.0), (None, 0.5)]


def test_log_scalar_waits_for_its_device(devices, logger):
    logger.log_scalar("a", devices.tensor([[0.5]]), 0)
    logger.with_prefix("b").log_scalar("a", devices.tensor(torch.tensor(2.0, requires_grad=True)), 1)
    with pytest.raises(ValueError, match="2 elements"):
        logger.log_scalar("a", devices.tensor([1.0, 2.0]))
    assert devices.waits == {"cuda:0": 2}
    assert scalars(logger.sink.take()) == {"a": [(0, 0.5)], "b/a": [(1, 2.0)]}


def test_what_is_written_to_a_tensor_later_does_not_show(devices):
    tensor = torch.zeros(3)
    copies = device_copy.start([devices.tensor(tensor)])
    tensor.fill_(1.0)
    assert [elements for copy in copies for _, elements in copy.read()] == [[0.0, 0.0, 0.0]]


def test_tensors_that_are_distributed_are_read_one_by_one(devices, logger):
    """A DTensor has no bytes of its own; the norm of gradients is one."""
    distributed = pytest.importorskip("torch.distributed")
    from torch.distributed.tensor import DeviceMesh, DTensor, Replicate
    from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta

    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        local = devices.tensor(0.5)
        spec = DTensorSpec(
            DeviceMesh("cpu", [0]), (Replicate(),), tensor_meta=TensorMeta(local.shape, local.stride(), local.dtype)
        )
        norm = DTensor(local, spec, requires_grad=False)
        assert norm.is_cuda
        for defer in (False, True):
            metrics = logger.log_metrics({"norm": norm, "loss": devices.tensor(2.0)}, 0, defer=defer)
            assert dict(metrics) == {"norm": 0.5, "loss": 2.0}
    finally:
        distributed.destroy_process_group()
    assert scalars(logger.sink.take()) == {"norm": [(0, 0.5)] * 2, "loss": [(0, 2.0)] * 2}
