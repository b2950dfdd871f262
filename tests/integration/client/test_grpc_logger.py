"""`GrpcLogger` and a real server: opening runs, refusals, synchronous calls, the class-level dispatch."""

from __future__ import annotations

import logging
import pickle
import re
import threading

import grpc
import pytest

from logger_client import GrpcLogger, generate_exp_name, get_logger
from logger_service.backends import CSVLogger
from logger_service.v1 import run_service_pb2, run_service_pb2_grpc
from tests.support.run_files import read_csv_run


def run_files(server, exp_name="run", namespace="default"):
    return read_csv_run(server.data_dir / namespace / exp_name)


def test_a_run_has_a_namespace_an_id_and_a_directory(server, connect):
    logger = connect(server, "group/run", namespace="team")
    logger.log_scalar("x", 1.0)
    logger.flush()
    assert logger.log_dir == "team/group/run"
    assert logger.run_id
    assert run_files(server, "group/run", "team").scalars == {"x": [(0, 1.0)]}
    assert repr(logger) == f"GrpcLogger(exp_name='group/run', target='{server.address}')"


def test_attaching_to_a_run_goes_on_with_it_and_warns_once(server, connect, caplog):
    with caplog.at_level(logging.WARNING, "logger_client"):
        with connect(server) as first:
            first.log_metrics({"x": 1.0, "y": 2.0})
        assert caplog.records == []
        second = connect(server)
        second.log_scalar("x", 3.0)
        pickle.loads(pickle.dumps(second)).shutdown()  # noqa: S301
        ledger = second.flush()
    assert second.run_id == first.run_id
    assert len(caplog.records) == 1
    assert "default/run" in caplog.text
    assert "2 points" in caplog.text
    assert ledger.accepted == 3
    assert run_files(server).scalars == {"x": [(0, 1.0), (1, 3.0)], "y": [(0, 2.0)]}


def test_resume_says_what_must_be_there(server, connect):
    with pytest.raises(FileNotFoundError, match="must"):
        connect(server, resume="must")
    connect(server, resume="never")
    connect(server, resume="must")
    with pytest.raises(FileExistsError, match="never"):
        connect(server, resume="never")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"exp_name": ""}, "exp_name is empty"),
        ({"exp_name": "../x"}, "exp_name"),
        ({"namespace": "a/b"}, "namespace"),
        ({"target": ""}, "target must be HOST:PORT"),
        ({"target": "local host:1"}, "target must be HOST:PORT"),
        ({"backends": []}, "backends is empty"),
        ({"backends": [""]}, "backends has an empty type"),
        ({"backends": ["csv", ("csv", {})]}, "backends names a type twice"),
        ({"resume": "maybe"}, "resume must be one of 'allow', 'never', 'must'"),
        ({"delivery": "later"}, "delivery must be one of 'async', 'sync'"),
        ({"on_full": "explode"}, "on_full must be one of 'wait', 'drop'"),
        ({"sync_timeout": 0}, "sync_timeout must be a positive number"),
        ({"connect_timeout": float("nan")}, "connect_timeout must be a positive number"),
        ({"max_buffer_bytes": 10}, "max_buffer_bytes must be at least 65,536"),
    ],
)
def test_a_bad_argument_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        GrpcLogger(**{"exp_name": "run", "target": "127.0.0.1:1", **arguments})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"exp_name": 3}, "exp_name must be a str"),
        ({"target": None}, "target must be a str"),
        ({"backends": "csv"}, "backends must be a list"),
        ({"backends": [3]}, "an entry of backends"),
        ({"backends": [("csv",)]}, "an entry of backends"),
        ({"backends": [("csv", None)]}, "an entry of backends"),
        ({"sync_timeout": "30"}, "sync_timeout must be a number"),
        ({"max_buffer_bytes": 1e9}, "max_buffer_bytes must be an int"),
        ({"token": "secret"}, "token"),
    ],
)
def test_an_argument_of_the_wrong_type_is_named(arguments, message):
    with pytest.raises(TypeError, match=message):
        GrpcLogger(**{"exp_name": "run", "target": "127.0.0.1:1", **arguments})


def test_an_unreachable_target_is_named(server):
    server.kill()
    with pytest.raises(ConnectionError, match=server.address):
        GrpcLogger("run", server.address, connect_timeout=0.3)


def test_the_constructor_waits_for_a_server_that_is_starting(server):
    address = server.address
    server.kill()
    starting = threading.Thread(target=server.start)
    starting.start()
    logger = GrpcLogger("run", address, connect_timeout=60)
    starting.join()
    logger.shutdown()


def test_what_the_server_refuses_is_a_value_error_with_its_words(server, connect):
    with pytest.raises(ValueError, match="nosuch"):
        connect(server, backends=["nosuch"])
    with pytest.raises(ValueError, match="where"):
        connect(server, backends=[("csv", {"where": "/tmp"})])
    assert not (server.data_dir / "default").exists()


def test_a_synchronous_call_returns_when_it_can_be_read(server, connect):
    logger = connect(server, delivery="sync")
    for step in range(20):
        logger.log_scalar("x", step, step)
        assert run_files(server).scalars["x"][-1] == (step, float(step))
    logger.log_str("t", "text", 0)
    assert run_files(server).texts == {"t": [(0, "text")]}


def test_a_synchronous_logger_waits_through_a_restart_of_the_server(server, connect):
    logger = connect(server, delivery="sync", sync_timeout=60)
    logger.log_scalar("x", 1.0)
    server.restart()
    logger.log_scalar("x", 2.0)
    assert run_files(server).scalars["x"] == [(0, 1.0), (1, 2.0)]


def test_a_closed_run_is_reported_and_can_be_opened_again(server, connect):
    logger = connect(server)
    logger.log_scalar("x", 1.0)
    logger.flush()
    with grpc.insecure_channel(server.address) as channel:
        runs = run_service_pb2_grpc.RunServiceStub(channel)
        runs.CloseRun(run_service_pb2.CloseRunRequest(run_id=logger.run_id), timeout=60)
    logger.log_scalar("x", 2.0)
    with pytest.raises(RuntimeError, match=r"1 point: .*RUN_CLOSED") as raised:
        logger.flush()
    assert raised.value.ledger.accepted == 1
    again = connect(server)
    again.log_scalar("x", 3.0)
    again.flush()
    assert run_files(server).scalars["x"] == [(0, 1.0), (1, 3.0)]


# The class-level dispatch, and get_logger.


def test_a_logger_class_over_grpc(server, monkeypatch):
    monkeypatch.setenv("LOGGER_CLIENT_TARGET", server.address)
    with CSVLogger("run", service_backend="grpc", service_backend_options={"connect_timeout": 60}) as logger:
        assert isinstance(logger, CSVLogger)
        assert isinstance(logger, GrpcLogger)
        assert isinstance(logger.with_prefix("a"), CSVLogger)
        copy = pickle.loads(pickle.dumps(logger))  # noqa: S301
        assert isinstance(copy, CSVLogger)
        copy.shutdown()
        logger.log_scalar("x", 1.0)
    assert run_files(server).scalars == {"x": [(0, 1.0)]}


def test_what_the_dispatch_refuses(server, monkeypatch):
    options = {"target": server.address}
    with pytest.raises(ValueError, match="log_dir cannot be given"):
        CSVLogger("run", log_dir="here", service_backend="grpc", service_backend_options=options)
    with pytest.raises(ValueError, match="log_dir cannot be given"):
        CSVLogger("run", "here", service_backend="grpc", service_backend_options=options)
    with pytest.raises(TypeError, match="exp_name"):
        CSVLogger(service_backend="grpc", service_backend_options=options)
    with pytest.raises(TypeError, match="service_backend_options has spool, token"):
        CSVLogger("run", service_backend="grpc", service_backend_options={**options, "token": "x", "spool": "y"})
    monkeypatch.delenv("LOGGER_CLIENT_TARGET", raising=False)
    with pytest.raises(ValueError, match="LOGGER_CLIENT_TARGET"):
        CSVLogger("run", service_backend="grpc")


def test_get_logger_over_grpc_and_direct(server, tmp_path):
    options = {"target": server.address}
    every = {"wandb_kwargs": {}, "mlflow_kwargs": {}, "trackio_kwargs": {}}
    remote = get_logger("csv", "unused", "run", service_backend="grpc", service_backend_options=options, **every)
    direct = get_logger("csv", str(tmp_path / "direct"), "run", **every)
    for logger in (remote, direct):
        assert isinstance(logger, CSVLogger)
        logger.log_scalar("x", 1.0)
        logger.shutdown()
    assert run_files(server).scalars == read_csv_run(tmp_path / "direct" / "run").scalars == {"x": [(0, 1.0)]}


def test_get_logger_without_a_logger():
    assert get_logger("", "logs", "run") is None
    assert get_logger(None, "logs", "run") is None


@pytest.mark.parametrize(
    "arguments",
    [
        {"logger_type": "wandb"},
        {"logger_type": "tensorboard"},
        {"logger_type": "paper"},
        {"state_dict": {}},
        {"use_ray_service": True},
        {"ray_actor_options": {}},
    ],
)
def test_get_logger_says_what_is_not_served(arguments):
    with pytest.raises(NotImplementedError):
        get_logger(**{"logger_type": "csv", "logger_name": "logs", "experiment_name": "run", **arguments})


def test_get_logger_refuses_what_it_does_not_know():
    with pytest.raises(TypeError, match="tensorboard_kwargs"):
        get_logger("csv", "logs", "run", tensorboard_kwargs={})
    with pytest.raises(ValueError, match="process"):
        get_logger("csv", "logs", "run", service_backend="process")


def test_generated_names_are_names_and_new():
    names = {generate_exp_name("ppo", "cartpole") for _ in range(100)}
    assert len(names) == 100
    for name in names:
        assert re.fullmatch(r"ppo_cartpole_[0-9a-f]{8}_\d\d_\d\d_\d\d-\d\d_\d\d_\d\d", name)
