"""Bad names on the bare wire, where no client checks them: refused by reason, and nothing of them reaches the disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message

from logger_service.contract.errors import Code, Reason
from logger_service.v1 import logging_service_pb2, records_pb2, run_service_pb2
from tests.support.run_files import read_csv_run
from tests.support.server import ServerProcess
from tests.support.wire import DEADLINE_S, Wire, refusal, rows

BAD = [
    *("", "/", "/x", "x/", "x//y", ".", "..", "../x", "../../x", "a/../b", "a/../../../../x", "a/./b"),
    *("nul\0", "line\nend", "tab\t", "\x1b[0m", "\x7f", "\x85", "a" * 1025, "é" * 512 + "a"),
]
BAD_NAMESPACES = [*BAD[1:], "a/b", ".a", ".logger-service"]  # An empty one is the default.
BAD_EXP_NAMES = [*BAD[1:], ".a", "a/.b", "scalars", "a/texts", "run.json", "a/hparams.json", ".logger-service/x"]
NOT_UTF8 = {"surrogate": b"\xed\xa0\x80", "byte": b"a\xffb", "overlong /": b"\xc0\xafb", "cut": b"ab\xc3"}


def bad_names(tmp_path: Path) -> list[str]:
    """The names, and some that would lead to known places."""
    return [*BAD, f"{tmp_path}/outside", "../" * 12 + f"{tmp_path}/outside", "../../../outside"]


def check(call: Callable[..., Any], request: Message, field: str, reason: Reason = Reason.INVALID_NAME) -> None:
    """The request is refused for this field of it."""
    refused = refusal(lambda: call(request, timeout=DEADLINE_S))
    assert (refused.reason, refused.code, refused.field) == (reason, Code.INVALID_ARGUMENT, field)


def check_tree(tmp_path: Path, server: ServerProcess, *exp_names: str) -> None:
    """Nothing is there but the files of these runs, each with the scalar `good` and, maybe, the text `note`."""
    found = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    runs = [f"data/default/{exp_name}" for exp_name in exp_names]
    own = {f"{run}/{file}" for run in runs for file in ("run.json", ".times", "scalars/good.csv", "texts/note.jsonl")}
    journal = {path for path in found if path.startswith("data/.logger-service/")}
    assert found - journal == own | {"server-0.stderr"}
    directories = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_dir()}
    layout = {f"{run}/{directory}" for run in runs for directory in ("scalars", "texts", "videos")}
    assert directories == {"data", "data/.logger-service", "data/default", *runs, *layout}


def log_good(wire: Wire, run_id: str) -> None:
    """Logs what `check_tree` expects."""
    wire.log_scalar(run_id, "good", 1.0)
    note = logging_service_pb2.LogTextRequest(run_id=run_id, name="note", text="here")
    wire.logging.LogText(note, timeout=DEADLINE_S)
    wire.flush(run_id)


def test_unary_calls(tmp_path: Path, wire: Wire, server: ServerProcess) -> None:
    run_id = wire.open_run("run")
    log_good(wire, run_id)
    for name in bad_names(tmp_path):
        scalar = logging_service_pb2.LogScalarRequest(run_id=run_id, name=name, value=1.0)
        check(wire.logging.LogScalar, scalar, "name")
        metrics = logging_service_pb2.LogMetricsRequest(run_id=run_id, metrics={"good": 2.0, name: 3.0})
        check(wire.logging.LogMetrics, metrics, "metrics")
        text = logging_service_pb2.LogTextRequest(run_id=run_id, name=name, text="t")
        check(wire.logging.LogText, text, "name")
    ledger = wire.flush(run_id)
    assert ledger.accepted == 2
    files = read_csv_run(server.data_dir / "default" / "run")
    assert (files.scalars, files.texts) == ({"good": [(0, 1.0)]}, {"note": [(0, "here")]})
    check_tree(tmp_path, server, "run")


def test_streams_keep_the_rest_of_the_batch(tmp_path: Path, wire: Wire, server: ServerProcess) -> None:
    run_id = wire.open_run("run")
    stream = wire.stream(run_id)
    names = bad_names(tmp_path)
    for sequence, name in enumerate(names, start=1):
        mixed = records_pb2.MetricRows(names=["good", name], values=[sequence, -1.0, sequence + 0.5, -1.0])
        note = records_pb2.TextRecord(name="note", text=f"text {sequence}")
        bad = records_pb2.TextRecord(name=name, text="bad")
        records = [records_pb2.Record(text=bad), records_pb2.Record(metrics=mixed), rows(name, 1.0)]
        stream.batch(sequence, *records, records_pb2.Record(text=note))
    told = stream.read_until_accepted(len(names)).rejections
    stream.finish()
    assert [answer.acknowledgement.accepted for answer in stream.rest()] in ([], [len(names)])
    assert [batch.sequence for batch in told] == list(range(1, len(names) + 1))
    for batch, name in zip(told, names, strict=True):
        got = [(each.record, each.reason, list(each.names), each.points) for each in batch.rejections]
        reason = Reason.INVALID_NAME.value
        assert got == [(0, reason, [], 1), (1, reason, [name], 2), (2, reason, [name], 1)]
        assert all("name" in each.message and "Traceback" not in each.message for each in batch.rejections)
    ledger = wire.flush(run_id)
    assert (ledger.accepted, ledger.rejected) == (3 * len(names), 4 * len(names))
    files = read_csv_run(server.data_dir / "default" / "run")
    values = [value for sequence in range(1, len(names) + 1) for value in (sequence, sequence + 0.5)]
    assert files.scalars == {"good": list(enumerate(values))}
    assert files.texts == {"note": [(step, f"text {step + 1}") for step in range(len(names))]}
    check_tree(tmp_path, server, "run")


def test_names_of_runs(tmp_path: Path, wire: Wire, server: ServerProcess) -> None:
    log_good(wire, wire.open_run("run"))
    for exp_name in [*BAD_EXP_NAMES, f"{tmp_path}/outside"]:
        check(wire.runs.OpenRun, run_service_pb2.OpenRunRequest(exp_name=exp_name), "exp_name")
    check(wire.runs.OpenRun, run_service_pb2.OpenRunRequest(), "exp_name", Reason.INVALID_FIELD)
    for namespace in [*BAD_NAMESPACES, f"{tmp_path}/outside"]:
        request = run_service_pb2.OpenRunRequest(exp_name="other", namespace=namespace)
        check(wire.runs.OpenRun, request, "namespace")
    check_tree(tmp_path, server, "run")


def requests(run_id: str, name: str) -> dict[str, Message]:
    """Requests with a name, by the method's path."""
    return {
        "LoggingService/LogScalar": logging_service_pb2.LogScalarRequest(run_id=run_id, name=name, value=1.0),
        "LoggingService/LogMetrics": logging_service_pb2.LogMetricsRequest(run_id=run_id, metrics={name: 1.0}),
        "LoggingService/LogText": logging_service_pb2.LogTextRequest(run_id=run_id, name=name, text="t"),
        "RunService/OpenRun": run_service_pb2.OpenRunRequest(exp_name=name),
        "LoggingService/LogStream": logging_service_pb2.LogStreamRequest(
            batch=records_pb2.Batch(sequence=1, first_held=1, records=[rows(name, 1.0)])
        ),
    }


@pytest.mark.parametrize("broken", NOT_UTF8.values(), ids=NOT_UTF8)
def test_names_that_are_not_utf8(tmp_path: Path, wire: Wire, server: ServerProcess, broken: bytes) -> None:
    run_id = wire.open_run("run")
    log_good(wire, run_id)
    hello = logging_service_pb2.Hello(run_id=run_id, writer_id="0" * 32, epoch=1, first_held=1, client="test")
    for path, request in requests(run_id, "@@@").items():
        message = request.SerializeToString().replace(b"@@@", broken)
        assert broken in message

        def call(path: str = f"/logger_service.v1.{path}", message: bytes = message) -> Any:
            if path.endswith("LogStream"):
                first = logging_service_pb2.LogStreamRequest(hello=hello).SerializeToString()
                return list(wire.channel.stream_stream(path)(iter([first, message]), timeout=DEADLINE_S))
            return wire.channel.unary_unary(path)(message, timeout=DEADLINE_S)

        refused = refusal(call)
        assert (refused.reason, refused.code) == (Reason.INVALID_FIELD, Code.INVALID_ARGUMENT), path
    assert wire.flush(run_id).accepted == 2
    check_tree(tmp_path, server, "run")
