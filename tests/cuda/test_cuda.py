"""What stand-ins for devices cannot show: streams, pinned memory and graphs of a GPU."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator

import pytest
import torch
from tensordict import TensorDict

from logger_client import GrpcLogger
from logger_service.backends import CSVLogger
from logger_service.contract import cuda, pinned
from tests.support.mixed_tensors import hundred, mixed
from tests.support.run_files import content, read_csv_run

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU that torch can use")

_SLOWLY = 500_000_000
"""Cycles of a GPU: some tenths of a second."""


@pytest.fixture
def logger(tmp_path):
    with CSVLogger("run", log_dir=str(tmp_path)) as logger:
        yield logger


@pytest.fixture
def read(logger, tmp_path):
    """Flushes `logger` and returns the rows of its run."""

    def flush_and_read():
        logger.flush()
        return read_csv_run(tmp_path / "run").scalars

    return flush_and_read


@pytest.fixture
def events(monkeypatch):
    """Counts the events that are recorded, one for each copy."""
    recorded: Counter[str] = Counter()
    record_event = cuda.record_event

    def count(device):
        recorded[str(device)] += 1
        return record_event(device)

    monkeypatch.setattr(cuda, "record_event", count)
    return recorded


@contextlib.contextmanager
def no_hidden_waits() -> Iterator[None]:
    """Has torch refuse whatever makes this process wait for a device, but for events."""
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def devices() -> list[str]:
    return [f"cuda:{index}" for index in range(torch.cuda.device_count())][:2]


def on_devices(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The same, on the devices in turn."""
    names = devices()
    return {key: tensor.to(names[index % len(names)]) for index, (key, tensor) in enumerate(tensors.items())}


@pytest.mark.parametrize("defer", [False, True])
@pytest.mark.parametrize("make", [dict, TensorDict], ids=["dict", "tensordict"])
def test_a_hundred_tensors_are_one_copy_for_each_device(tmp_path, logger, events, make, defer):
    with CSVLogger("host", log_dir=str(tmp_path)) as host:
        returned = host.log_metrics(hundred(), 1)
    metrics = make(on_devices(hundred()))
    with no_hidden_waits():
        logged = logger.log_metrics(metrics, 1, defer=defer)
    logger.flush()
    assert repr(dict(logged)) == repr(returned)
    assert events == dict.fromkeys(devices(), 1)
    assert content(tmp_path / "run") == content(tmp_path / "host")


def test_over_grpc_too(server, events):
    files = []
    for name, metrics in (("device", on_devices(hundred())), ("host", hundred())):
        with GrpcLogger(name, server.address) as logger:
            logger.with_prefix("a").with_prefix("b").log_metrics(metrics, 1, defer=True)
            logger.flush()
        files.append(content(server.data_dir / "default" / name))
    assert files[0] == files[1]
    assert events == dict.fromkeys(devices(), 1)


def test_every_form_is_read_as_on_the_cpu(logger):
    for name, tensor in mixed().items():
        assert repr(logger.log_metrics({name: tensor.to("cuda")})) == repr(logger.log_metrics({name: tensor}))


def test_a_deferred_call_does_not_wait_for_what_runs(logger, read):
    value = torch.zeros(3, device="cuda")
    for step in range(2):  # The first time loads kernels, and pins memory, which may wait.
        value.zero_()
        torch.cuda._sleep(_SLOWLY)
        value += 1
        with no_hidden_waits():
            metrics = logger.log_metrics({"a": value}, step, defer=True)
            assert list(metrics) == ["a"]
        waited = torch.cuda.current_stream().query()
        value.fill_(7.0)
        assert metrics["a"] == [1.0, 1.0, 1.0]
    assert not waited
    assert read() == {f"a/{index}": [(0, 1.0), (1, 1.0)] for index in range(3)}


def test_memory_that_is_used_again_at_once_does_not_show(logger, read):
    torch.cuda._sleep(_SLOWLY)
    for step in range(100):
        value = torch.full((1000,), float(step), device="cuda")
        logger.log_metrics({"a": value[:2]}, step, defer=True)
        del value
    assert read()["a/1"] == [(step, float(step)) for step in range(100)]


def test_a_stream_of_the_callers(logger, read):
    value = torch.zeros((), device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(_SLOWLY)
        value += 1
        logger.log_metrics({"inside": value}, 0, defer=True)
    torch.cuda.current_stream().wait_stream(stream)
    logger.log_metrics({"outside": value}, 0, defer=True)
    assert read() == {"inside": [(0, 1.0)], "outside": [(0, 1.0)]}


def test_blocks_are_pinned_and_used_again(logger, monkeypatch):
    allocated = []
    pin = cuda.pin
    monkeypatch.setattr(cuda, "pin", lambda size: allocated.append(pin(size)) or allocated[-1])
    pinned._free.clear()
    for inferring in (True, False, True):
        with torch.inference_mode(inferring):
            assert logger.log_metrics({"a": torch.tensor(1.5, device="cuda")}) == {"a": 1.5}
    assert [block.is_pinned() for block in allocated] == [True]


@pytest.mark.parametrize("call", ["log_metrics", "defer", "log_scalar"])
def test_a_capture_refuses_and_goes_on(logger, read, call):
    value = torch.zeros((), device="cuda")
    calls = {
        "log_metrics": lambda: logger.log_metrics({"a": value}, 0),
        "defer": lambda: logger.log_metrics({"a": value}, 0, defer=True),
        "log_scalar": lambda: logger.log_scalar("a", value, 0),
    }
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        value += 1
        with pytest.raises(RuntimeError, match="a CUDA graph is being captured"):
            calls[call]()
    graph.replay()
    calls[call]()
    assert read() == {"a": [(0, 1.0)]}
