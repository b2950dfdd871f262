"""Tensors on devices: their values, what waits for them, and what becomes of the rows of a device that fails."""

from __future__ import annotations

import pytest
import torch
from tensordict import TensorDict

from logger_service.contract.errors import DeliveryError
from tests.support.mixed_tensors import hundred
from tests.support.run_files import content


@pytest.fixture
def on_devices(devices):
    """A hundred tensors of all dtypes on two devices."""
    return {name: devices.tensor(tensor, f"cuda:{index % 2}") for index, (name, tensor) in enumerate(hundred().items())}


@pytest.mark.parametrize("defer", [False, True])
@pytest.mark.parametrize("make", [dict, TensorDict], ids=["dict", "tensordict"])
def test_a_hundred_tensors_are_one_copy_and_one_wait_for_each_device(
    deployment, logger, exp_name, devices, on_devices, make, defer
):
    with deployment.open(f"{exp_name}-host") as host:
        returned = [call.log_metrics(hundred(), 2) for call in (host, host.with_prefix("a").with_prefix("b"))]
    metrics = [
        call.log_metrics(make(on_devices), 2, defer=defer)
        for call in (logger, logger.with_prefix("a").with_prefix("b"))
    ]
    logger.flush()
    assert [repr(dict(each)) for each in metrics] == [repr(each) for each in returned]
    assert devices.copies == devices.waits == {"cuda:0": 2, "cuda:1": 2}
    files = content(deployment.run_dir(exp_name))
    assert len(files) > 200
    assert files == content(deployment.run_dir(f"{exp_name}-host"))


def test_a_deferred_call_waits_for_nothing(logger, read, devices):
    metrics = logger.log_metrics({"a": devices.tensor(0.5), "b": devices.tensor([1, 2], "cuda:1")}, 0, defer=True)
    assert list(metrics) == ["a", "b"]
    assert not devices.waits_here
    assert dict(metrics) == {"a": 0.5, "b": [1, 2]}
    assert read().scalars == {"a": [(0, 0.5)], "b/0": [(0, 1.0)], "b/1": [(0, 2.0)]}
    assert devices.waits == {"cuda:0": 1, "cuda:1": 1}


@pytest.mark.parametrize("steps", [[0, 1, 2], [None, None, None]], ids=["given", "automatic"])
def test_rows_keep_their_order(logger, read, devices, steps):
    for step in steps:
        logger.log_metrics({"a": devices.tensor(1.0)}, step, defer=True)
        logger.log_scalar("a", 2.0, step)
        logger.log_metrics({"a": devices.tensor(3.0), "b": devices.tensor(4.0, "cuda:1")}, step, defer=True)
        logger.log_metrics({"a": 5.0, "b": 6.0}, step)
    a, b = (read().scalars[name] for name in "ab")
    assert [value for _, value in a] == [1.0, 2.0, 3.0, 5.0] * 3
    assert [value for _, value in b] == [4.0, 6.0] * 3
    assert [step for step, _ in b] == ([0, 0, 1, 1, 2, 2] if steps[0] == 0 else list(range(6)))


def test_what_is_written_to_a_tensor_later_does_not_show(logger, read, devices):
    on_device = torch.tensor([1.0])
    logger.log_metrics({"a": devices.tensor(on_device)}, 0, defer=True)
    on_device.fill_(2.0)
    assert read().scalars == {"a": [(0, 1.0)]}


def test_a_device_that_fails_later_takes_no_other_row_along(logger, read, devices):
    devices.failing.add("cuda:1")
    logger.log_metrics({"a": devices.tensor(0.5), "b": 1.0}, defer=True)
    lost = logger.log_metrics({"a": 1.5, "b": devices.tensor(2.0, "cuda:1")}, defer=True)
    logger.log_metrics({"a": 2.5, "b": 3.0})
    logger.log_scalar("c", 4.0)
    with pytest.raises(
        DeliveryError, match="did not arrive from their device: CUDA error: an illegal access on cuda:1"
    ):
        logger.flush()
    with pytest.raises(RuntimeError, match="did not arrive"):
        lost["b"]
    logger.log_metrics({"a": devices.tensor(3.5)}, defer=True)
    assert read().scalars == {"a": [(0, 0.5), (1, 2.5), (2, 3.5)], "b": [(0, 1.0), (1, 3.0)], "c": [(0, 4.0)]}


def test_a_device_that_fails_at_the_call_takes_no_other_row_along(logger, read, devices):
    devices.failing.add("cuda:1")
    with pytest.raises(RuntimeError, match="did not arrive"):
        logger.log_metrics({"a": 1.5, "b": devices.tensor(2.0, "cuda:1"), "text": "x"})
    logger.log_metrics({"a": devices.tensor(2.5)})
    files = read()
    assert files.scalars == {"a": [(0, 2.5)]}
    assert files.texts == {}


def test_while_a_graph_is_captured_nothing_is_logged(logger, read, devices):
    devices.capturing.add("cuda:0")
    tensor = devices.tensor(0.5)
    for call in (
        lambda: logger.log_metrics({"a": tensor, "b": 1.0}),
        lambda: logger.log_metrics({"a": tensor, "b": 1.0}, defer=True),
        lambda: logger.log_scalar("a", tensor),
        lambda: logger.with_prefix("view").log_scalar("a", tensor),
    ):
        with pytest.raises(RuntimeError, match="a CUDA graph is being captured on cuda:0"):
            call()
    devices.capturing.clear()
    logger.log_scalar("a", tensor)
    assert read().scalars == {"a": [(0, 0.5)]}


def test_a_client_defers_too(logger, read, devices):
    worker = logger.client()
    metrics = worker.with_prefix("worker").log_metrics({"a": devices.tensor(0.5)}, 1, defer=True)
    assert list(metrics) == ["worker/a"]
    assert not devices.waits_here
    worker.flush()
    assert read().scalars == {"worker/a": [(1, 0.5)]}


@pytest.mark.parametrize("end", ["shutdown", "flush"])
def test_what_is_on_its_way_at_the_end_arrives(deployment, logger, exp_name, devices, end):
    for step in range(300):
        logger.log_metrics({"a": devices.tensor(step), "b": devices.tensor(-step, "cuda:1")}, step, defer=True)
    getattr(logger, end)()
    scalars = deployment.read(exp_name).scalars
    assert scalars["a"] == [(step, float(step)) for step in range(300)]
    assert scalars["b"] == [(step, -float(step)) for step in range(300)]
    assert devices.waits == {"cuda:0": 300, "cuda:1": 300}
