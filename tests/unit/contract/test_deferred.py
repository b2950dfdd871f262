"""`log_metrics(defer=True)`: nothing waits but who reads what is on its way, and it comes once for all of them."""

from __future__ import annotations

import copy
import json
import os
import pickle
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from tensordict import TensorDict

from tests.support.mixed_tensors import hundred
from tests.unit.contract.recorded import BufferLogger, scalars


@pytest.fixture
def logger() -> BufferLogger:
    return BufferLogger()


def test_keys_never_wait_and_the_first_value_waits_for_all(devices, logger):
    given = {"host": 0.5, "a": devices.tensor(1.5), "b": devices.tensor([1, 2], "cuda:1"), "text": "x", "none": None}
    metrics = logger.log_metrics(given, defer=True)
    assert isinstance(metrics, Mapping)
    assert list(metrics) == list(metrics.keys()) == list(given)
    assert len(metrics) == 5
    assert "a" in metrics
    assert "c" not in metrics
    assert metrics.get("c") is None
    with pytest.raises(KeyError, match="c"):
        metrics["c"]
    assert [metrics[name] for name in ("host", "text", "none")] == [0.5, "x", None]
    assert not devices.waits
    assert metrics["a"] == 1.5
    assert metrics["b"] == [1, 2]
    assert devices.waits == {"cuda:0": 1, "cuda:1": 1}


@pytest.mark.parametrize("order", ["read first", "taken first"])
def test_who_reads_and_who_takes_wait_once_together(devices, logger, order):
    metrics = logger.log_metrics({"a": devices.tensor(1.5), "b": [0.5, devices.tensor(2)]}, 7, defer=True)
    assert devices.copies == {"cuda:0": 1}
    assert not devices.waits
    if order == "read first":
        assert metrics == {"a": 1.5, "b": [0.5, 2]}
    assert scalars(logger.sink.take()) == {"a": [(7, 1.5)], "b/0": [(7, 0.5)], "b/1": [(7, 2.0)]}
    assert metrics == {"a": 1.5, "b": [0.5, 2]}
    assert devices.waits == {"cuda:0": 1}


WAYS: dict[str, Callable[[BufferLogger], Any]] = {
    "logger": lambda logger: logger,
    "view": lambda logger: logger.with_prefix("a"),
    "view over a view": lambda logger: logger.with_prefix("a").with_prefix("b"),
}


@pytest.mark.parametrize("way", WAYS)
def test_it_is_what_the_call_would_return(devices, logger, way):
    call = WAYS[way](logger)
    tensors = {name: devices.tensor(tensor, f"cuda:{len(name) % 2}") for name, tensor in hundred().items()}
    for given in ({**tensors, "host": 1}, TensorDict(tensors), {"deep": {"dict": tensors}}, {"a": 1.0}, {}):
        deferred = call.log_metrics(given, 3, defer=True)
        there = scalars(logger.sink.take())
        returned = call.log_metrics(given, 3)
        assert type(returned) is dict
        assert repr(dict(deferred)) == repr(returned)
        assert repr(there) == repr(scalars(logger.sink.take()))


def test_copies_are_dicts_of_values(devices, logger):
    metrics = logger.log_metrics({"a": devices.tensor(1.5), "b": "x"}, defer=True)
    values = {"a": 1.5, "b": "x"}
    pickled = pickle.loads(pickle.dumps(metrics))  # noqa: S301
    for made in (dict(metrics), {**metrics}, copy.copy(metrics), copy.deepcopy(metrics), pickled):
        assert type(made) is dict
        assert made == values
    assert metrics == values
    assert metrics != {"a": 1.5}
    assert repr(metrics) == "DeferredMetrics({'a': 1.5, 'b': 'x'})"
    assert json.dumps(dict(metrics)) == '{"a": 1.5, "b": "x"}'
    with pytest.raises(TypeError, match="assignment"):
        metrics["a"] = 2.0  # type: ignore[index]


def test_threads_that_read_wait_once_together(devices, logger):
    for _ in range(50):
        devices.deeds.clear()
        metrics = logger.log_metrics({str(index): devices.tensor(index) for index in range(20)}, defer=True)
        barrier = threading.Barrier(4)
        read: list[Any] = []

        def use(what: Callable[[], Any], barrier=barrier, read=read) -> None:
            barrier.wait()
            read.append(what())

        uses = [lambda metrics=metrics: dict(metrics)] * 3 + [lambda: scalars(logger.sink.take())]
        threads = [threading.Thread(target=use, args=(what,)) for what in uses]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        values = {str(index): index for index in range(20)}
        assert sorted(read, key=str) == sorted(
            [values, values, values, {name: [(None, float(value))] for name, value in values.items()}], key=str
        )
        assert devices.waits == {"cuda:0": 1}


def test_the_tensors_may_go_at_once(devices, logger):
    """Their memory is needed for the next step, long before the values are."""
    tensor = devices.tensor(1.5)
    gone = weakref.ref(tensor)
    metrics = logger.log_metrics({"a": tensor}, defer=True)
    del tensor
    assert gone() is None
    assert metrics["a"] == 1.5


def test_rows_keep_their_order(devices, logger):
    for step in range(3):
        logger.log_metrics({"a": devices.tensor(step), "b": 0.5}, step, defer=True)
        logger.log_scalar("a", step + 0.5, step)
        logger.log_metrics({"a": step + 0.75, "b": 0.5}, step)
    assert scalars(logger.sink.take())["a"] == [(step, step + part) for step in range(3) for part in (0.0, 0.5, 0.75)]


@pytest.mark.parametrize("step", [None, 5])
def test_a_device_that_fails_takes_no_other_row_along(devices, logger, step):
    devices.failing.add("cuda:1")
    kept = logger.log_metrics({"a": devices.tensor(0.5), "b": 1}, step, defer=True)
    lost = logger.log_metrics({"a": devices.tensor(1.5), "b": devices.tensor(2, "cuda:1")}, step, defer=True)
    logger.log_metrics({"a": 2.5, "b": 3}, step)
    also_lost = logger.log_metrics({"c": devices.tensor(2, "cuda:1"), "d": 1.0}, step, defer=True)
    logger.log_metrics({"a": 3.5, "b": 4}, step)
    logger.log_metrics({"a": devices.tensor(4.5, "cuda:1"), "b": 5}, step, defer=True)
    assert scalars(logger.sink.take()) == {
        "a": [(step, 0.5), (step, 2.5), (step, 3.5)],
        "b": [(step, 1.0), (step, 3.0), (step, 4.0)],
    }
    assert logger.sink.lost == {"values did not arrive from their device: CUDA error: an illegal access on cuda:1": 6}
    assert dict(kept) == {"a": 0.5, "b": 1}
    for _ in range(2):
        for metrics, name in ((lost, "a"), (lost, "b"), (also_lost, "c")):
            with pytest.raises(RuntimeError, match=r"did not arrive .* on cuda:1$"):
                metrics[name]
    assert also_lost["d"] == 1.0
    assert list(lost) == ["a", "b"]
    assert devices.waits["cuda:1"] == 3


def test_a_row_of_many_parts_comes_or_goes_whole(devices, logger):
    given = {f"n{index}": devices.tensor(index, "cuda:1") for index in range(5_000)}
    devices.failing.add("cuda:1")
    logger.log_metrics(given, 0, defer=True)
    assert scalars(logger.sink.take()) == {}
    assert logger.sink.lost.total() == 5_000
    devices.failing.clear()
    logger.log_metrics(given, 1, defer=True)
    assert scalars(logger.sink.take()) == {f"n{index}": [(1, float(index))] for index in range(5_000)}


def test_a_forked_child_is_told_what_it_cannot_read(devices, logger):
    early, late = (logger.log_metrics({"a": devices.tensor(1.5)}, defer=True) for _ in range(2))
    assert early["a"] == 1.5
    child = os.fork()
    if child == 0:
        status = 1
        try:
            assert early["a"] == 1.5
            with pytest.raises(RuntimeError, match="parent"):
                late["a"]
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert late["a"] == 1.5


@pytest.mark.parametrize("values", [{"a": 0.5, "b": 2}, {"a": torch.tensor(0.5), "b": [1, 2]}, {"a": "x"}, {}])
def test_what_is_on_no_device_is_there_at_once(logger, values):
    metrics = logger.log_metrics(values, defer=True)
    assert dict(metrics) == values
