"""The methods of the contract: which are served, and what the unary ones do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.protobuf import message_factory
from google.protobuf.descriptor import MethodDescriptor

from logger_service.contract.errors import Reason, ServiceError
from logger_service.contract.values import to_map
from logger_service.v1 import (
    logging_service_pb2,
    query_service_pb2,
    run_service_pb2,
    state_service_pb2,
)
from tests.support.run_files import read_csv_run
from tests.support.server import ServerProcess
from tests.support.wire import DEADLINE_S, Wire, decode, refusal

FILES = (logging_service_pb2, run_service_pb2, state_service_pb2, query_service_pb2)
METHODS: list[MethodDescriptor] = [
    method for file in FILES for service in file.DESCRIPTOR.services_by_name.values() for method in service.methods
]
NOT_SERVED = {
    "LogImage", "LogVideo",
    "UpdateRun", "DeleteRun",
    "GetState", "LoadState",
    "ListMetrics", "ReadScalars", "WatchScalars", "ReadHparams", "ReadHistograms", "ReadTexts",
    "ListVideos", "ReadVideo",
}  # fmt: skip


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    tmp_path = tmp_path_factory.mktemp("methods")
    server = ServerProcess(tmp_path / "data", tmp_path / "stderr")
    yield server
    server.kill()


@pytest.fixture
def wire(shared_server: ServerProcess) -> Iterator[Wire]:
    with Wire(shared_server.address) as wire:
        yield wire


def call_empty(wire: Wire, method: MethodDescriptor) -> ServiceError | None:
    """Calls a method with an empty request; returns how it was refused, None: it was not."""
    response = message_factory.GetMessageClass(method.output_type)
    path = f"/{method.containing_service.full_name}/{method.name}"
    kind = f"{'stream' if method.client_streaming else 'unary'}_{'stream' if method.server_streaming else 'unary'}"
    call = getattr(wire.channel, kind)(path, response_deserializer=response.FromString)
    try:
        answer: Any = call(iter([b""]) if method.client_streaming else b"", timeout=DEADLINE_S)
        if method.server_streaming:
            list(answer)
    except grpc.RpcError as error:
        return decode(error)
    return None


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_every_method_is_served_or_refused_by_reason(wire: Wire, method: MethodDescriptor) -> None:
    refused = call_empty(wire, method)
    if method.name in NOT_SERVED:
        assert refused is not None
        assert refused.reason is Reason.NOT_SERVED
        assert refused.message == f"{method.name} is part of the contract, and not served by this version"
    elif refused is not None:
        assert refused.reason in (Reason.INVALID_FIELD, Reason.INVALID_NAME)
        assert refused.field


def test_what_is_not_served_is_part_of_the_contract() -> None:
    assert {method.name for method in METHODS} >= NOT_SERVED


def test_scalars(wire: Wire, shared_server: ServerProcess) -> None:
    run_id = wire.open_run("scalars-run")
    assert [wire.log_scalar(run_id, "a", 0.5), wire.log_scalar(run_id, "a", 0.25)] == [0, 1]
    assert wire.log_scalar(run_id, "a", 1.0, step=-7) == -7
    assert wire.log_scalar(run_id, "a", 2.0) == 3
    assert wire.log_scalar(run_id, "a", 3.0, step=0) == 0
    wire.flush(run_id)
    written = read_csv_run(shared_server.data_dir / "default" / "scalars-run").scalars
    assert written == {"a": [(0, 0.5), (1, 0.25), (-7, 1.0), (3, 2.0), (0, 3.0)]}


def test_metrics_are_all_or_nothing(wire: Wire, shared_server: ServerProcess) -> None:
    run_id = wire.open_run("metrics-run")

    def log(**metrics: float) -> dict[str, int]:
        request = logging_service_pb2.LogMetricsRequest(run_id=run_id, metrics=metrics)
        return dict(wire.logging.LogMetrics(request, timeout=DEADLINE_S).steps)

    assert log(a=1.0) == {"a": 0}
    assert log(a=2.0, b=3.0) == {"a": 1, "b": 0}
    refused = refusal(lambda: log(a=9.0, **{"/": 9.0}))
    assert (refused.reason, refused.field) == (Reason.INVALID_NAME, "metrics")
    assert (refusal(log).reason, refusal(log).field) == (Reason.INVALID_FIELD, "metrics")
    assert log(a=4.0) == {"a": 2}
    wire.flush(run_id)
    written = read_csv_run(shared_server.data_dir / "default" / "metrics-run").scalars
    assert written == {"a": [(0, 1.0), (1, 2.0), (2, 4.0)], "b": [(0, 3.0)]}


def test_texts_and_hparams(wire: Wire, shared_server: ServerProcess) -> None:
    run_id = wire.open_run("texts-run")
    text = logging_service_pb2.LogTextRequest(run_id=run_id, name="note", text="héllo\n")
    assert wire.logging.LogText(text, timeout=DEADLINE_S).step == 0
    assert wire.logging.LogText(text, timeout=DEADLINE_S).step == 1
    hparams = logging_service_pb2.LogHparamsRequest(run_id=run_id, hparams=to_map({"lr": 0.5, "layers": [1, 2]}))
    wire.logging.LogHparams(hparams, timeout=DEADLINE_S)
    wire.flush(run_id)
    directory = shared_server.data_dir / "default" / "texts-run"
    assert len((directory / "texts" / "note.jsonl").read_text().splitlines()) == 2
    assert (directory / "hparams.json").exists()
    absent = logging_service_pb2.LogHparamsRequest(run_id=run_id)
    assert refusal(lambda: wire.logging.LogHparams(absent, timeout=DEADLINE_S)).field == "hparams"


def test_a_repeated_request_is_answered_as_the_first_was(wire: Wire) -> None:
    run_id = wire.open_run()
    assert [wire.log_scalar(run_id, request_id="once") for _ in range(3)] == [0, 0, 0]
    assert wire.log_scalar(run_id) == 1
    too_long = refusal(lambda: wire.log_scalar(run_id, request_id="é" * 65))
    assert (too_long.reason, too_long.field) == (Reason.INVALID_FIELD, "request_id")


def test_a_call_that_was_given_up_is_logged_all_the_same_and_once(wire: Wire) -> None:
    run_id = wire.open_run()
    request = logging_service_pb2.LogScalarRequest(run_id=run_id, name="loss", value=1.0, request_id="mine")
    for _ in range(20):
        wire.logging.LogScalar.future(request, timeout=DEADLINE_S).cancel()
    assert wire.logging.LogScalar(request, timeout=DEADLINE_S).step == 0
    assert wire.flush(run_id).accepted == 1


def test_runs_are_listed_in_pages(wire: Wire) -> None:
    opened = {wire.open_run(namespace="pages") for _ in range(5)}
    listed: list[str] = []
    token = ""
    while True:
        request = query_service_pb2.ListRunsRequest(namespace="pages", page_size=2, page_token=token)
        answer = wire.queries.ListRuns(request, timeout=DEADLINE_S)
        listed += [run.run_id for run in answer.runs]
        token = answer.next_page_token
        if not token:
            break
    assert len(listed) == 5
    assert set(listed) == opened
    refused = refusal(lambda: wire.queries.ListRuns(query_service_pb2.ListRunsRequest(page_size=1_001)))
    assert (refused.reason, refused.field) == (Reason.INVALID_FIELD, "page_size")


def test_a_run_is_found_by_id_and_by_name(wire: Wire) -> None:
    run_id = wire.open_run("found/it", tags={"a": "b"}, notes="n")
    for request in (
        query_service_pb2.GetRunRequest(run_id=run_id),
        query_service_pb2.GetRunRequest(exp_name="found/it"),
    ):
        run = wire.queries.GetRun(request, timeout=DEADLINE_S).run
        assert (run.run_id, run.exp_name, dict(run.tags), run.notes) == (run_id, "found/it", {"a": "b"}, "n")


def test_an_attempt_id_is_short(wire: Wire) -> None:
    refused = refusal(lambda: wire.open_run(attempt_id="x" * 129))
    assert (refused.reason, refused.field) == (Reason.INVALID_FIELD, "attempt_id")


def test_a_closed_run_is_opened_again(wire: Wire) -> None:
    run_id = wire.open_run("closed")
    wire.log_scalar(run_id)
    for _ in range(2):
        ledger = wire.runs.CloseRun(run_service_pb2.CloseRunRequest(run_id=run_id), timeout=DEADLINE_S).ledger
        assert (ledger.accepted, ledger.backends[0].applied) == (1, 1)
    assert refusal(lambda: wire.log_scalar(run_id)).reason is Reason.RUN_CLOSED
    assert wire.open_run("closed") == run_id
    assert wire.log_scalar(run_id) == 1
