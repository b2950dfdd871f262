"""Loggers and views: what each call puts into the sink, their lifecycle, and what they are instances of."""

from __future__ import annotations

import copy
import threading
import time
from typing import Any

import numpy as np
import pytest
import torch

from logger_service.contract.dispatch import SERVICE_BACKENDS, service_class
from logger_service.contract.errors import LoggerClosedError
from logger_service.contract.logger import Logger
from logger_service.contract.prefix import PrefixLogger
from tests.unit.contract.recorded import BufferLogger, hparams, scalars, texts


@pytest.fixture
def logger() -> BufferLogger:
    return BufferLogger("run", "logs")


class WithoutBackend(Logger):
    """A logger class that no service has a backend for."""


def test_scalars(logger: BufferLogger):
    before = time.time_ns()
    for step, value in enumerate([0.5, 3, True, np.float32(0.25), torch.tensor([1.5])]):
        assert logger.log_scalar("loss", value, step) is None
    logger.log_scalar("loss", 9.0)
    logger.log_scalar(name="loss", value=8.0, step=np.int64(-(2**63)))
    records = logger.sink.take()
    assert scalars(records) == {
        "loss": [(0, 0.5), (1, 3.0), (2, 1.0), (3, 0.25), (4, 1.5), (None, 9.0), (-(2**63), 8.0)]
    }
    times = [moment for record in records for moment in record.metrics.time_unix_nano]
    assert before <= times[0]
    assert times == sorted(times)
    assert times[-1] <= time.time_ns()


def test_metrics_texts_and_hparams(logger: BufferLogger):
    returned = logger.log_metrics({"a": 1, "n": {"b": torch.tensor(2.5)}, "t": "x", "none": None}, step=4, keys_sep=".")
    assert returned == {"a": 1, "n.b": 2.5, "t": "x", "none": None}
    logger.log_str("notes", "text")
    logger.log_str("notes", "more", step=0)
    logger.log_hparams({"lr": 3e-4, "n": 3})
    records = logger.sink.take()
    assert scalars(records) == {"a": [(4, 1.0)], "n.b": [(4, 2.5)]}
    assert texts(records) == [("t", 4, "x"), ("notes", None, "text"), ("notes", 0, "more")]
    assert hparams(records) == [{"lr": 3e-4, "n": 3}]


@pytest.mark.parametrize("step", [1.0, "1", [1]])
def test_steps_are_integers(logger: BufferLogger, step: Any):
    for call in (logger, logger.with_prefix("p")):
        with pytest.raises(TypeError, match="step must be an integer"):
            call.log_scalar("a", 1.0, step)
        with pytest.raises(TypeError, match="step must be an integer"):
            call.log_metrics({"a": 1.0}, step)
        with pytest.raises(TypeError, match="step must be an integer"):
            call.log_str("a", "x", step)
    with pytest.raises(ValueError, match="int64"):
        logger.log_scalar("a", 1.0, 2**63)
    with pytest.raises(ValueError, match="int64"):
        logger.log_metrics({"a": 1.0}, -(2**63) - 1)
    assert logger.sink.take() == []


def test_bad_calls_leave_nothing(logger: BufferLogger):
    for metrics in (
        {"a": 1.0, "b": object()},
        {"a": 1.0, "b/": 1.0},
        {"a": 1.0, "t": "\ud800"},
        {"t": "x", "b": 10**400},
    ):
        with pytest.raises((TypeError, ValueError)):
            logger.log_metrics(metrics)
    with pytest.raises(TypeError, match="the text of 'a' must be a str"):
        logger.log_str("a", 3)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        logger.log_hparams({"a": object()})
    with pytest.raises(ValueError, match="name"):
        logger.log_scalar("", 1.0)
    with pytest.raises(TypeError, match="name"):
        logger.log_scalar(3, 1.0)  # type: ignore[arg-type]
    assert logger.sink.take() == []


def test_unknown_keywords_are_refused(logger: BufferLogger):
    for call in (logger, logger.with_prefix("p")):
        with pytest.raises(TypeError, match="unexpected keyword"):
            call.log_scalar("a", 1.0, commit=True)  # type: ignore[call-arg]
        with pytest.raises(TypeError, match="unexpected keyword"):
            call.log_metrics({"a": 1.0}, override=1)  # type: ignore[call-arg]


def test_kinds_that_are_not_served_are_refused_by_name(logger: BufferLogger):
    for call in (logger, logger.with_prefix("p")):
        with pytest.raises(NotImplementedError, match="videos"):
            call.log_video("a", torch.zeros(1, 1, 3, 4, 4), 1, fps=3)
        with pytest.raises(NotImplementedError, match="images"):
            call.log_image("a", np.zeros((3, 4, 4)), 1)


def test_a_view_prefixes_every_name_once(logger: BufferLogger):
    view = logger.with_prefix("/train/").with_prefix("actor//")
    assert view.prefix == "train/actor"
    view.log_scalar("/loss", 1.0, 0)
    view.log_scalar("loss", 2.0, 1)
    view.log_str("t", "x", 0)
    returned = view.log_metrics({"loss": 3.0, "list": [1, 2], "text": "y", "none": None, "n": {"a": np.float32(1)}}, 2)
    assert returned == {
        "train/actor/loss": 3.0,
        "train/actor/list": [1, 2],
        "train/actor/text": "y",
        "train/actor/none": None,
        "train/actor/n/a": 1.0,
    }
    view.log_hparams({"lr": 1.0})
    records = logger.sink.take()
    assert scalars(records) == {
        "train/actor/loss": [(0, 1.0), (1, 2.0), (2, 3.0)],
        "train/actor/list/0": [(2, 1.0)],
        "train/actor/list/1": [(2, 2.0)],
        "train/actor/n/a": [(2, 1.0)],
    }
    assert texts(records) == [("train/actor/t", 0, "x"), ("train/actor/text", 2, "y")]
    assert hparams(records) == [{"lr": 1.0}]


def test_prefixes_are_texts_with_something_in_them(logger: BufferLogger):
    view = logger.with_prefix("a")
    for call in (logger, view):
        assert call.with_prefix("") is call
        for prefix in ("/", "//"):
            with pytest.raises(ValueError, match="prefix"):
                call.with_prefix(prefix)
        for wrong in (None, 3):
            with pytest.raises(TypeError, match="prefix must be a str"):
                call.with_prefix(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="logger must be a logger"):
        PrefixLogger(object(), "a")  # type: ignore[type-var]
    with pytest.raises(ValueError, match=r"'\.\.'"):
        logger.with_prefix("..").log_scalar("a", 1.0)
    with pytest.raises(ValueError, match="empty segment"):
        view.log_scalar("/", 1.0)
    with pytest.raises(TypeError, match="must be str"):
        view.log_scalar(3, 1.0)  # type: ignore[arg-type]
    assert view.prefix == "a"


def test_a_view_leaves_the_rest_to_its_logger(logger: BufferLogger):
    view = logger.with_prefix("a")
    assert (view.exp_name, view.log_dir, view.service_backend, view.is_alive) == ("run", "logs", "direct", True)
    assert view.client() is view
    assert view.start() is view
    assert repr(view) == f"PrefixLogger(prefix='a', logger={logger!r})"
    assert repr(logger) == "BufferLogger(exp_name='run', log_dir='logs')"
    assert not hasattr(view, "experiment")
    view.flush(1.0, level="accepted")
    assert logger.flushes == [(1.0, "accepted")]
    view.shutdown()
    assert not logger.is_alive
    with pytest.raises(LoggerClosedError):
        view.log_scalar("b", 1.0)
    with pytest.raises(LoggerClosedError):
        view.log_metrics({})


def test_a_view_of_another_logger_than_before_is_a_view_too(logger: BufferLogger):
    other = BufferLogger("other")

    class Owner(BufferLogger):
        def client(self) -> BufferLogger:
            return other

    client = Owner().with_prefix("a/b").client()
    assert type(client) is PrefixLogger
    client.log_scalar("c", 1.0, 0)
    assert scalars(other.sink.take()) == {"a/b/c": [(0, 1.0)]}


def test_what_loggers_and_views_are_instances_of(logger: BufferLogger):
    class Other(BufferLogger):
        """Another class."""

    standing = BufferLogger()
    standing._service_cls = Other
    for one in (logger, logger.with_prefix("a"), logger.with_prefix("a").with_prefix("b")):
        assert isinstance(one, Logger)
        assert isinstance(one, BufferLogger)
        assert not isinstance(one, Other)
    for one in (standing, standing.with_prefix("a")):
        assert isinstance(one, Other)
        assert isinstance(one, Logger)
    for nothing in (object(), None, Logger, "text", torch.zeros(1), PrefixLogger):
        assert not isinstance(nothing, Logger)


def test_a_copied_view_is_a_view(logger: BufferLogger):
    view = copy.copy(logger.with_prefix("a"))
    view.log_scalar("b", 1.0, 0)
    assert scalars(logger.sink.take()) == {"a/b": [(0, 1.0)]}


def test_lifecycle(logger: BufferLogger):
    assert logger.is_alive
    assert logger.start() is logger
    assert logger.client() is logger
    assert logger.service_backend == "direct"
    assert logger.run_id == ""
    logger.flush()
    assert logger.flushes == [(None, "applied")]
    with pytest.raises(ValueError, match="level"):
        logger.flush(level="gone")  # type: ignore[arg-type]
    logger.close(3.0)
    logger.shutdown(4.0)
    assert logger.shutdowns == [3.0]
    assert not logger.is_alive


def test_after_shutdown_every_call_raises_the_same(logger: BufferLogger):
    view = logger.with_prefix("p")
    with logger as entered:
        assert entered is logger
    assert logger.shutdowns == [None]
    calls: list[Any] = [
        lambda one: one.log_scalar("a", 1.0),
        lambda one: one.log_metrics({"a": 1.0}),
        lambda one: one.log_metrics({}),
        lambda one: one.log_str("a", "x"),
        lambda one: one.log_hparams({}),
        lambda one: one.log_histogram("a", []),
        lambda one: one.log_video("a", None),
        lambda one: one.log_image("a", None),
        lambda one: one.flush(),
        lambda one: one.start(),
        lambda one: one.client(),
    ]
    for call in calls:
        for one in (logger, view):
            with pytest.raises(LoggerClosedError, match="shut down"):
                call(one)
    with pytest.raises(LoggerClosedError):
        logger.with_prefix("q")
    with pytest.raises(LoggerClosedError), logger:
        pass
    assert logger.sink.take() == []


def test_many_threads_shut_it_down_once(logger: BufferLogger):
    barrier = threading.Barrier(8)

    def end() -> None:
        barrier.wait()
        logger.shutdown()

    threads = [threading.Thread(target=end) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert logger.shutdowns == [None]


def test_direct_is_what_there_is_without_a_service():
    assert type(BufferLogger("run", service_backend="direct", service_backend_options={})) is BufferLogger
    with pytest.raises(ValueError, match="service_backend_options"):
        BufferLogger("run", service_backend_options={"target": "x"})


@pytest.mark.parametrize("service_backend", ["process", "ray", "Direct", "", None, 3])
def test_other_service_backends_are_refused_with_a_list(service_backend: Any):
    with pytest.raises(ValueError, match="there are 'direct', 'grpc'"):
        BufferLogger("run", service_backend=service_backend)


def test_a_class_that_no_backend_belongs_to_has_no_service():
    with pytest.raises(ValueError, match="WithoutBackend"):
        WithoutBackend("run", "logs", BufferLogger().sink, service_backend="grpc")


@pytest.mark.parametrize("name", SERVICE_BACKENDS)
def test_every_service_backend_can_be_loaded_and_stand_for_a_class(name: str):
    assert issubclass(service_class(name), Logger)
    assert callable(service_class(name).for_logger)
