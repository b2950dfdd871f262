"""Every reason of the catalogue, brought about for real and read from the wire."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from logger_service.contract.errors import CATALOGUE, Reason, ServiceError
from logger_service.contract.values import to_map
from logger_service.v1 import logging_service_pb2, query_service_pb2, records_pb2, run_service_pb2
from tests.support.run_files import read_csv_run
from tests.support.served_host import ServedHost, WatchedHost
from tests.support.server import ServerProcess
from tests.support.wire import Wire, decode, refusal, rows

Driver = Callable[[Wire], ServiceError]
DRIVERS: dict[Reason, Driver] = {}
"""Those that any server brings about. The others have a test of their own, below."""

OWN_TESTS = {
    Reason.INVALID_SHAPE,
    Reason.DUPLICATE_NAME,
    Reason.JOURNAL_FULL,
    Reason.JOURNAL_UNAVAILABLE,
    Reason.SHUTTING_DOWN,
    Reason.NOT_YET_APPLIED,
    Reason.INTERNAL,
}


def drives(reason: Reason) -> Callable[[Driver], Driver]:
    """Registers what brings a reason about."""

    def register(driver: Driver) -> Driver:
        DRIVERS[reason] = driver
        return driver

    return register


def test_every_reason_has_a_test() -> None:
    assert DRIVERS.keys() | OWN_TESTS == set(Reason)
    assert not DRIVERS.keys() & OWN_TESTS


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    tmp_path = tmp_path_factory.mktemp("reasons")
    server = ServerProcess(tmp_path / "data", tmp_path / "stderr")
    yield server
    server.kill()


@pytest.fixture
def wire(shared_server: ServerProcess) -> Iterator[Wire]:
    with Wire(shared_server.address) as wire:
        yield wire


def check(refused: ServiceError, reason: Reason) -> None:
    """Compares a refusal with the catalogue."""
    assert refused.reason is reason
    assert refused.code is CATALOGUE[reason].code
    assert refused.message
    assert "/tmp" not in refused.message
    assert "Traceback" not in refused.message


@drives(Reason.INVALID_NAME)
def _(wire: Wire) -> ServiceError:
    run_id = wire.open_run()
    refused = refusal(lambda: wire.log_scalar(run_id, "a//b"))
    assert refused.field == "name"
    metrics = logging_service_pb2.LogMetricsRequest(run_id=run_id, metrics={"good": 1.0, "../bad": 2.0})
    assert refusal(lambda: wire.logging.LogMetrics(metrics)).field == "metrics"
    return refused


@drives(Reason.INVALID_FIELD)
def _(wire: Wire) -> ServiceError:
    refused = refusal(lambda: wire.log_scalar(""))
    assert refused.field == "run_id"
    return refused


@drives(Reason.TOO_LARGE)
def _(wire: Wire) -> ServiceError:
    run_id = wire.open_run()
    limits = wire.runs.GetServerInfo(run_service_pb2.GetServerInfoRequest()).limits
    record = logging_service_pb2.LogTextRequest(run_id=run_id, name="t", text="x" * (limits.max_record_bytes + 1))
    check(refusal(lambda: wire.logging.LogText(record)), Reason.TOO_LARGE)
    message = logging_service_pb2.LogTextRequest(run_id=run_id, name="t", text="x" * limits.max_message_bytes)
    return refusal(lambda: wire.logging.LogText(message))


@drives(Reason.UNKNOWN_BACKEND)
def _(wire: Wire) -> ServiceError:
    return refusal(lambda: wire.open_run(backends=[run_service_pb2.BackendSpec(type="punchcards")]))


@drives(Reason.INVALID_OPTION)
def _(wire: Wire) -> ServiceError:
    spec = run_service_pb2.BackendSpec(type="csv", options=to_map({"directory": "/etc"}))
    return refusal(lambda: wire.open_run(backends=[spec]))


@drives(Reason.NOT_SERVED)
def _(wire: Wire) -> ServiceError:
    return refusal(lambda: wire.logging.LogImage(logging_service_pb2.LogImageRequest()))


@drives(Reason.RUN_NOT_FOUND)
def _(wire: Wire) -> ServiceError:
    unknown = os.urandom(16).hex()
    for call in (
        lambda: wire.flush(unknown),
        lambda: wire.runs.CloseRun(run_service_pb2.CloseRunRequest(run_id=unknown)),
        lambda: wire.queries.GetRun(query_service_pb2.GetRunRequest(run_id=unknown)),
        lambda: wire.queries.GetRun(query_service_pb2.GetRunRequest(exp_name="nowhere")),
        lambda: wire.stream(unknown),
    ):
        check(refusal(call), Reason.RUN_NOT_FOUND)
    return refusal(lambda: wire.log_scalar(unknown))


@drives(Reason.RUN_MISSING)
def _(wire: Wire) -> ServiceError:
    return refusal(lambda: wire.open_run(resume=run_service_pb2.RESUME_MUST))


@drives(Reason.RUN_EXISTS)
def _(wire: Wire) -> ServiceError:
    wire.open_run("twice", resume=run_service_pb2.RESUME_NEVER)
    return refusal(lambda: wire.open_run("twice", resume=run_service_pb2.RESUME_NEVER))


@drives(Reason.RUN_MISMATCH)
def _(wire: Wire) -> ServiceError:
    wire.open_run("mine")
    return refusal(lambda: wire.open_run("mine", run_id=os.urandom(16).hex()))


@drives(Reason.RUN_CLOSED)
def _(wire: Wire) -> ServiceError:
    run_id = wire.open_run()
    stream = wire.stream(run_id)
    wire.runs.CloseRun(run_service_pb2.CloseRunRequest(run_id=run_id))
    stream.batch(1, rows("loss", 1.0))
    check(refusal(lambda: list(stream.rest())), Reason.RUN_CLOSED)
    return refusal(lambda: wire.log_scalar(run_id))


@drives(Reason.WRITER_FENCED)
def _(wire: Wire) -> ServiceError:
    run_id = wire.open_run("fenced")
    assert wire.open_run("fenced", epoch=2) == run_id
    check(refusal(lambda: wire.log_scalar(run_id, epoch=1)), Reason.WRITER_FENCED)
    return refusal(lambda: wire.stream(run_id, epoch=1))


@drives(Reason.JOURNAL_LOST)
def _(wire: Wire) -> ServiceError:
    refused = refusal(lambda: wire.stream(wire.open_run(), first_held=5))
    assert refused.metadata == {"first_sequence": "1", "last_sequence": "4"}
    return refused


@drives(Reason.SEQUENCE_GAP)
def _(wire: Wire) -> ServiceError:
    stream = wire.stream(wire.open_run())
    stream.batch(2, rows("loss", 1.0))
    return refusal(lambda: list(stream.rest()))


@pytest.mark.parametrize("reason", DRIVERS, ids=lambda reason: reason.name)
def test_reason(wire: Wire, reason: Reason) -> None:
    check(DRIVERS[reason](wire), reason)


@pytest.mark.parametrize(
    ("bad", "reason", "names"),
    [
        (records_pb2.MetricRows(names=["a", "b"], values=[1.0, 2.0, 3.0]), Reason.INVALID_SHAPE, []),
        (records_pb2.MetricRows(names=["a", "a"], values=[1.0, 2.0]), Reason.DUPLICATE_NAME, []),
        (records_pb2.MetricRows(names=["a", "../b"], values=[1.0, 2.0]), Reason.INVALID_NAME, ["../b"]),
    ],
    ids=lambda value: value.name if isinstance(value, Reason) else "",
)
def test_reason_of_a_rejection(wire: Wire, bad: records_pb2.MetricRows, reason: Reason, names: list[str]) -> None:
    stream = wire.stream(wire.open_run())
    stream.batch(1, rows("good", 1.0), records_pb2.Record(metrics=bad))
    (batch,) = stream.read_until_accepted(1).rejections
    (rejection,) = batch.rejections
    assert (batch.sequence, rejection.record, rejection.reason, list(rejection.names)) == (1, 1, reason.value, names)
    assert rejection.message
    stream.finish()
    assert list(stream.rest()) == []


def test_journal_full(tmp_path: Path) -> None:
    # Nothing is applied until somebody waits for it, so that what is accepted stays a backlog.
    with ServedHost(tmp_path, backlog_bytes=1, write_after_s=3_600) as served, Wire(served.address) as wire:
        run_id = wire.open_run()
        wire.log_scalar(run_id)
        check(refusal(lambda: wire.log_scalar(run_id)), Reason.JOURNAL_FULL)
        wire.flush(run_id)
        assert wire.log_scalar(run_id) == 1


def test_journal_unavailable(server: ServerProcess) -> None:
    with Wire(server.address) as wire:
        run_id = wire.open_run("full")
        assert wire.log_scalar(run_id) == 0
        # From here on no write to a file succeeds, as on a full disk.
        _, hard = resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        request = logging_service_pb2.LogScalarRequest(run_id=run_id, name="loss", value=2.0)
        # The first one to notice is queued, and waits.
        with pytest.raises(grpc.RpcError) as error:
            wire.logging.LogScalar(request, timeout=1)
        assert error.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        check(refusal(lambda: wire.logging.LogScalar(request, timeout=10)), Reason.JOURNAL_UNAVAILABLE)
        check(refusal(lambda: wire.stream(run_id)), Reason.JOURNAL_UNAVAILABLE)
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (hard, hard))
        # Everything that is durable by now includes what waited.
        wire.flush(run_id)
        assert wire.log_scalar(run_id, value=3.0) == 2
        wire.flush(run_id)
    assert read_csv_run(server.data_dir / "default" / "full").scalars == {"loss": [(0, 1.0), (1, 2.0), (2, 3.0)]}


def test_shutting_down(tmp_path: Path) -> None:
    with ServedHost(tmp_path) as served, Wire(served.address) as wire:
        run_id = wire.open_run()
        served.drain_streams()
        check(refusal(lambda: wire.stream(run_id)), Reason.SHUTTING_DOWN)
        served.host.drain()
        check(refusal(lambda: wire.log_scalar(run_id)), Reason.SHUTTING_DOWN)
        check(refusal(wire.open_run), Reason.SHUTTING_DOWN)


def test_not_yet_applied(server: ServerProcess) -> None:
    with Wire(server.address) as wire:
        run_id = wire.open_run("obstructed")
        in_the_way = server.data_dir / "default" / "obstructed" / "scalars" / "loss.csv"
        in_the_way.mkdir(parents=True)
        wire.log_scalar(run_id)
        check(refusal(lambda: wire.flush(run_id, timeout=2)), Reason.NOT_YET_APPLIED)
        wire.flush(run_id, level=run_service_pb2.FLUSH_LEVEL_ACCEPTED)
        in_the_way.rmdir()
        wire.flush(run_id)
    assert read_csv_run(server.data_dir / "default" / "obstructed").scalars == {"loss": [(0, 1.0)]}


class _BrokenHost(WatchedHost):
    def get_run(self, request: Any) -> Any:
        raise RuntimeError("secret of /srv")


def test_internal(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with ServedHost(tmp_path, _BrokenHost) as served, Wire(served.address) as wire:
        with pytest.raises(grpc.RpcError) as error:
            wire.queries.GetRun(query_service_pb2.GetRunRequest(run_id="r"))
        refused = decode(error.value)
        check(refused, Reason.INTERNAL)
        assert refused.message == CATALOGUE[Reason.INTERNAL].message
        assert "secret" not in repr(error.value)
    assert "secret of /srv" in caplog.text
