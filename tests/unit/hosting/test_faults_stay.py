"""What one client, one run or one directory can do to the others: nothing."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from logger_service.contract.errors import Reason, ServiceError
from logger_service.journal.base import BatchRow, Change
from logger_service.journal.sqlite import SqliteJournal
from logger_service.v1 import logging_service_pb2, query_service_pb2, records_pb2, run_service_pb2
from tests.unit.hosting.conftest import Hosts, Writer, flush, lines, open_run, rows

HUGE = 2**63


def refused(call, *args: object, **kwargs: object) -> ServiceError:  # type: ignore[no-untyped-def]
    with pytest.raises(ServiceError) as error:
        call(*args, **kwargs)
    return error.value


def test_numbers_that_no_journal_holds_are_refused_and_the_host_goes_on(hosts: Hosts) -> None:
    host = hosts.start()
    run_id = open_run(host).run_id
    assert refused(open_run, host, "other", epoch=HUGE).field == "epoch"
    assert refused(Writer, host, run_id, epoch=HUGE).field == "epoch"
    assert refused(Writer, host, run_id, first_held=HUGE).field == "first_held"
    for field, fields in {
        "sequence": {"sequence": 0},
        "first_held": {"sequence": 1, "first_held": HUGE},
        "dropped": {"sequence": 1, "first_held": 1, "dropped": HUGE},
    }.items():
        session = Writer(host, run_id).session
        error = refused(session.accept, records_pb2.Batch(records=[rows("loss", [1.0])], **fields), 10)
        assert (error.reason, error.field) == (Reason.INVALID_FIELD, field)
    assert refused(host.list_runs, query_service_pb2.ListRunsRequest(page_token="9" * 5000)).field == "page_token"
    writer = Writer(host, run_id)
    writer.send(rows("loss", [1.0]))
    writer.wait_accepted()
    flush(host, run_id)
    assert lines(hosts.data_dir, "loss") == [(0, 1.0)]


@pytest.mark.parametrize(
    "content",
    [
        "[1]",
        "{",
        {"created_unix_nano": 2**70},
        {"created_unix_nano": 1.5},
        {"created_unix_nano": "1"},
        {"epoch": 2**64},
        {"epoch": True},
        {"epoch": 0},
        {"run_id": "zz/../x"},
        {"run_id": 7},
        {"exp_name": "../old"},
        None,
    ],
    ids=str,
)
def test_a_run_json_that_is_none_is_written_anew(hosts: Hosts, content: object) -> None:
    directory = hosts.data_dir / "default" / "old"
    (directory / "scalars").mkdir(parents=True)
    (directory / "scalars" / "loss.csv").write_text("0,1.0\n")
    path = directory / "run.json"
    good = {"run_id": "a" * 32, "epoch": 1, "namespace": "default", "exp_name": "old", "created_unix_nano": 1}
    if content is None:
        os.mkfifo(path)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(good | content))  # type: ignore[operator]
    host = hosts.start()
    other = open_run(host).run_id
    opened = open_run(host, "old")
    assert (opened.points, opened.resumed, len(opened.run_id)) == (1, True, 32)
    assert json.loads(path.read_text())["run_id"] == opened.run_id != "a" * 32
    for run_id in (opened.run_id, other):
        writer = Writer(host, run_id)
        writer.send(rows("loss", [2.0]))
        writer.wait_accepted()
        flush(host, run_id)
    assert lines(hosts.data_dir, "loss", "default/old") == [(0, 1.0), (1, 2.0)]


def test_planted_links_lead_nowhere(hosts: Hosts, tmp_path) -> None:  # type: ignore[no-untyped-def]
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("precious")
    default = hosts.data_dir / "default"
    (default / "temporary").mkdir(parents=True)
    (default / "evil").symlink_to(outside)
    (default / "temporary" / ".run.json.tmp").symlink_to(outside / "precious")
    (default / "identity").mkdir()
    (default / "identity" / "run.json").symlink_to(outside / "precious")
    host = hosts.start()
    assert refused(open_run, host, "evil").reason is Reason.JOURNAL_UNAVAILABLE
    assert refused(open_run, host, "evil/x/y").reason is Reason.JOURNAL_UNAVAILABLE
    assert refused(open_run, host, "temporary").reason is Reason.JOURNAL_UNAVAILABLE
    open_run(host, "identity")
    assert not (default / "identity" / "run.json").is_symlink()
    assert os.listdir(outside) == ["precious"]
    assert (outside / "precious").read_text() == "precious"
    names = [run.exp_name for run in host.list_runs(query_service_pb2.ListRunsRequest()).runs]
    assert names == ["identity"], "a run that was refused is listed"


def test_opening_with_never_is_answered_alike_however_often_it_is_repeated(hosts: Hosts) -> None:
    host = hosts.start()
    never = run_service_pb2.RESUME_NEVER
    for index in range(10):
        name = f"run{index}"
        with ThreadPoolExecutor(8) as pool:
            answers = list(
                pool.map(lambda _, name=name: open_run(host, name, resume=never, request_id="one"), range(8))
            )
        assert all(answer == answers[0] for answer in answers)
        assert refused(open_run, host, name, resume=never, request_id="two").reason is Reason.RUN_EXISTS


def test_an_opening_that_failed_half_way_goes_on_when_it_is_repeated(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = hosts.start()
    never = {"resume": run_service_pb2.RESUME_NEVER, "request_id": "one"}
    with monkeypatch.context() as patch:
        patch.setattr("logger_service.backends.csv.CsvBackend.end_recovery", _no_space)
        assert refused(open_run, host, **never).reason is Reason.JOURNAL_UNAVAILABLE
    hosts.crash(host)
    host = hosts.start()
    assert not open_run(host, **never).resumed


def _no_space(*_: object) -> None:
    raise OSError(28, "no space left on device")


def test_what_the_journal_refuses_breaks_its_own_run_alone(hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    host = hosts.start()
    ill, well = open_run(host, "ill").run_id, open_run(host, "well").run_id
    patient, healthy = Writer(host, ill), Writer(host, well)
    commit = SqliteJournal.commit

    def faulty(journal: SqliteJournal, changes: list[Change], now_ns: int) -> None:
        if any(isinstance(change, BatchRow) and change.run_id == ill for change in changes):
            raise OverflowError("a fault of the host")
        commit(journal, changes, now_ns)

    with monkeypatch.context() as patch:
        patch.setattr(SqliteJournal, "commit", faulty)
        patient.send(rows("loss", [1.0]))
        healthy.send(rows("loss", [1.0]))
        healthy.wait_accepted()
        patient.wait(lambda: patient.session.failed is not None)
    assert patient.accepted == 0
    assert refused(Writer, host, ill).reason is Reason.INTERNAL
    unary = refused(host.log, "LogScalar", ill, rows("x", [1.0]), epoch=None, request_id="")
    assert unary.reason is Reason.INTERNAL
    healthy.send(rows("loss", [2.0]))
    healthy.wait_accepted()
    flush(host, well)
    assert lines(hosts.data_dir, "loss", "default/well") == [(0, 1.0), (1, 2.0)]
    hosts.end(host)
    host = hosts.start()
    again = Writer(host, ill, patient.writer_id)
    again.send(rows("loss", [1.0]))
    again.wait_accepted()
    flush(host, ill)
    assert lines(hosts.data_dir, "loss", "default/ill") == [(0, 1.0)]


def test_hparams_without_a_value_are_refused_at_the_door(hosts: Hosts) -> None:
    host = hosts.start()
    run_id = open_run(host).run_id
    request = logging_service_pb2.LogHparamsRequest()
    request.hparams.values["outer"].map_value.values["inner"].SetInParent()
    record = records_pb2.Record(hparams=records_pb2.HparamsRecord(hparams=request.hparams))
    error = refused(host.log, "LogHparams", run_id, record, epoch=None, request_id="")
    assert error.reason is Reason.INVALID_FIELD
    assert flush(host, run_id).sent == 0
