"""What a host accepts, refuses, repeats and numbers."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from logger_service.contract.errors import Reason, ServiceError
from logger_service.journal.sqlite import SqliteJournal
from logger_service.v1 import query_service_pb2, records_pb2, run_service_pb2, values_pb2
from tests.unit.hosting.conftest import DEADLINE_S, Hosts, Writer, flush, lines, open_run, rows


def test_a_batch_is_written_once_however_often_it_is_sent(hosts: Hosts) -> None:
    host = hosts.start()
    run_id = open_run(host).run_id
    writer = Writer(host, run_id)
    for _ in range(3):
        writer.send(rows("loss", [1.0, 2.0], [0, 1]), sequence=1)
    writer.send(rows("loss", [3.0], [2]))
    writer.wait_accepted()
    ledger = flush(host, run_id)
    assert lines(hosts.data_dir, "loss") == [(0, 1.0), (1, 2.0), (2, 3.0)]
    assert (ledger.sent, ledger.accepted, ledger.repeated, ledger.rejected) == (7, 3, 4, 0)
    assert (ledger.backends[0].applied, ledger.backends[0].lag) == (3, 0)


def test_a_gap_is_refused_and_takes_nothing(hosts: Hosts) -> None:
    host = hosts.start()
    run_id = open_run(host).run_id
    writer = Writer(host, run_id)
    with pytest.raises(ServiceError) as refused:
        writer.send(rows("loss", [1.0], [0]), sequence=2)
    assert refused.value.reason is Reason.SEQUENCE_GAP
    assert flush(host, run_id).accepted == 0


def test_automatic_steps_count_all_rows_of_a_name_and_agree_for_every_writer(hosts: Hosts) -> None:
    host = hosts.start()
    run_id = open_run(host).run_id
    first, second = Writer(host, run_id), Writer(host, run_id)
    first.send(rows("loss", [0.5], [100]), rows(("loss", "acc"), [0.1, 0.2, 0.3, 0.4]))
    first.wait_accepted()
    second.send(rows("loss", [0.6]))
    second.wait_accepted()
    flush(host, run_id)
    assert lines(hosts.data_dir, "loss") == [(100, 0.5), (1, 0.1), (2, 0.3), (3, 0.6)]
    assert lines(hosts.data_dir, "acc") == [(0, 0.2), (1, 0.4)]


def test_bad_names_take_their_own_columns_and_bad_records_themselves(hosts: Hosts) -> None:
    host = hosts.start()
    run_id = open_run(host).run_id
    writer = Writer(host, run_id)
    unknown = records_pb2.Record()
    twice = rows(("a", "a"), [1.0, 2.0], [0])
    misfit = records_pb2.Record(metrics=records_pb2.MetricRows(names=["a", "b"], steps=[0], values=[1.0]))
    writer.send(rows(("good", "../bad", "x//y"), [1.0, 2.0, 3.0]), unknown, twice, misfit, rows("good", [4.0]))
    writer.wait_accepted()
    ledger = flush(host, run_id)
    assert lines(hosts.data_dir, "good") == [(0, 1.0), (1, 4.0)]
    [told] = writer.rejections
    assert [(r.record, list(r.names), Reason(r.reason)) for r in told.rejections] == [
        (0, ["../bad"], Reason.INVALID_NAME),
        (0, ["x//y"], Reason.INVALID_NAME),
        (1, [], Reason.NOT_SERVED),
        (2, [], Reason.DUPLICATE_NAME),
        (3, [], Reason.INVALID_SHAPE),
    ]
    assert dict(ledger.rejected_by_reason) == {
        "INVALID_NAME": 2,
        "NOT_SERVED": 1,
        "DUPLICATE_NAME": 2,
        "INVALID_SHAPE": 1,
    }
    assert ledger.sent == ledger.accepted + ledger.repeated + ledger.rejected == 8


def test_rejections_are_told_again_until_the_writer_has_passed_them(hosts: Hosts) -> None:
    host = hosts.start()
    run_id = open_run(host).run_id
    writer = Writer(host, run_id)
    writer.send(rows("../bad", [1.0]))
    writer.wait_accepted()
    hosts.crash(host)

    host = hosts.start()
    again = Writer(host, run_id, writer.writer_id)
    again.wait(lambda: bool(again.rejections))
    assert [told.sequence for told in again.rejections] == [1]
    again.send(rows("good", [1.0]), first_held=2)
    again.wait_accepted()
    hosts.crash(host)

    host = hosts.start()
    last = Writer(host, run_id, writer.writer_id)
    last.send(rows("good", [2.0]), first_held=2)
    last.wait_accepted()
    assert last.rejections == []
    flush(host, run_id)
    assert lines(hosts.data_dir, "good") == [(0, 1.0), (1, 2.0)]


def test_one_commit_serves_many_runs(hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, waiting = threading.Event(), threading.Event()
    commit = SqliteJournal.commit

    def gated(self: SqliteJournal, changes: list[object], now_ns: int) -> None:
        if waiting.is_set() and not gate.is_set():
            gate.wait(DEADLINE_S)
        commit(self, changes, now_ns)  # type: ignore[arg-type]

    monkeypatch.setattr(SqliteJournal, "commit", gated)
    host = hosts.start()
    writers = [Writer(host, open_run(host, f"run{i}").run_id) for i in range(100)]
    before = host.commits
    waiting.set()
    for _ in range(5):
        for writer in writers:
            writer.send(rows("loss", [1.0]))
    gate.set()
    for writer in writers:
        writer.wait_accepted()
    assert host.commits - before <= 3, "500 batches of 100 runs were committed one by one"
    for i, writer in enumerate(writers):
        flush(host, writer.run_id)
        assert lines(hosts.data_dir, "loss", f"default/run{i}") == [(step, 1.0) for step in range(5)]


def test_a_sync_batch_is_told_when_it_is_in_the_file(hosts: Hosts) -> None:
    host = hosts.start(write_after_s=3600.0)
    writer = Writer(host, open_run(host).run_id)
    for step in range(3):
        sequence = writer.send(rows("loss", [float(step)], [step]), wait_applied=True)
        writer.wait(lambda sequence=sequence: writer.applied >= sequence)  # type: ignore[misc]
        assert lines(hosts.data_dir, "loss")[-1] == (step, float(step))


def test_unary_calls_are_answered_once_per_request_id_also_after_a_crash(hosts: Hosts) -> None:
    host = hosts.start()
    run_id = open_run(host).run_id

    def log(request_id: str) -> int:
        logged = host.log("LogScalar", run_id, rows("loss", [1.5]), epoch=None, request_id=request_id)
        return logged.result(DEADLINE_S)["loss"]

    assert [log(""), log("a"), log("b"), log("a"), log("")] == [0, 1, 2, 1, 3]
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(log, ["c"] * 32)) == {4}
    hosts.crash(host)
    host = hosts.start()
    assert [log("a"), log("c"), log("d")] == [1, 4, 5]
    flush(host, run_id)
    assert lines(hosts.data_dir, "loss") == [(step, 1.5) for step in range(6)]


def test_a_unary_call_is_refused_whole(hosts: Hosts) -> None:
    host = hosts.start()
    run_id = open_run(host).run_id
    deep = values_pb2.MapValue()
    level = deep
    for _ in range(31):
        level = level.values["k"].map_value
    level.values["k"].int_value = 1
    for record, reason in (
        (records_pb2.Record(hparams=records_pb2.HparamsRecord(hparams=deep)), Reason.INVALID_FIELD),
        (rows(("ok", "../x"), [1.0, 2.0]), Reason.INVALID_NAME),
        (records_pb2.Record(image=records_pb2.ImageRecord(name="i")), Reason.NOT_SERVED),
    ):
        with pytest.raises(ServiceError) as refused:
            host.log("LogMetrics", run_id, record, epoch=None, request_id="")
        assert refused.value.reason is reason
    assert flush(host, run_id).sent == 0


def test_writers_of_an_older_epoch_are_refused(hosts: Hosts) -> None:
    host = hosts.start()
    run_id = open_run(host).run_id
    old = Writer(host, run_id)
    old.send(rows("loss", [1.0]))
    old.wait_accepted()
    new = Writer(host, run_id, epoch=2)
    with pytest.raises(ServiceError) as refused:
        old.send(rows("loss", [2.0]))
    assert refused.value.reason is Reason.WRITER_FENCED
    new.send(rows("loss", [3.0]))
    new.wait_accepted()
    with pytest.raises(ServiceError) as refused:
        Writer(host, run_id)
    assert refused.value.reason is Reason.WRITER_FENCED
    hosts.crash(host)
    assert open_run(hosts.start()).epoch == 2


def test_a_closed_run_repeats_but_takes_nothing_new_until_it_is_opened_again(hosts: Hosts) -> None:
    host = hosts.start()
    run_id = open_run(host).run_id
    writer = Writer(host, run_id)
    writer.send(rows("loss", [1.0]))
    writer.wait_accepted()
    ledger = host.close_run(run_id)
    assert ledger.backends[0].applied == 1
    writer.send(rows("loss", [1.0]), sequence=1)
    for refused in (lambda: writer.send(rows("loss", [2.0]), sequence=2), lambda: log(host, run_id)):
        with pytest.raises(ServiceError) as error:
            refused()
        assert error.value.reason is Reason.RUN_CLOSED
    got = host.get_run(query_service_pb2.GetRunRequest(run_id=run_id))
    assert got.run.status == query_service_pb2.RUN_STATUS_CLOSED
    assert open_run(host).points == 1
    log(host, run_id)
    flush(host, run_id)
    assert lines(hosts.data_dir, "loss") == [(0, 1.0), (1, 9.0)]


def log(host, run_id: str) -> None:  # type: ignore[no-untyped-def]
    host.log("LogScalar", run_id, rows("loss", [9.0]), epoch=None, request_id="").result(DEADLINE_S)


def test_opening_is_idempotent_and_says_what_does_not_fit(hosts: Hosts) -> None:
    host = hosts.start()
    never = run_service_pb2.RESUME_NEVER
    first = open_run(host, resume=never, request_id="one")
    assert open_run(host, resume=never, request_id="one") == first
    assert open_run(host).run_id == first.run_id
    cases = [
        ({"resume": never, "request_id": "two"}, Reason.RUN_EXISTS),
        ({"exp_name": "other", "resume": run_service_pb2.RESUME_MUST}, Reason.RUN_MISSING),
        ({"run_id": "0" * 32}, Reason.RUN_MISMATCH),
        ({"exp_name": "a/../b"}, Reason.INVALID_NAME),
        ({"exp_name": "scalars"}, Reason.INVALID_NAME),
        ({"namespace": "a/b"}, Reason.INVALID_NAME),
        ({"backends": [run_service_pb2.BackendSpec(type="nope")]}, Reason.UNKNOWN_BACKEND),
        ({"run_id": "XYZ"}, Reason.INVALID_FIELD),
    ]
    for fields, reason in cases:
        with pytest.raises(ServiceError) as refused:
            open_run(host, **{"exp_name": "run", **fields})  # type: ignore[arg-type]
        assert refused.value.reason is reason, fields
    listed = host.list_runs(query_service_pb2.ListRunsRequest()).runs
    assert [run.exp_name for run in listed] == ["run"]


def test_how_the_last_writer_left_is_the_status_of_the_run(hosts: Hosts) -> None:
    host = hosts.start()
    run_id = open_run(host).run_id

    def status() -> int:
        return host.get_run(query_service_pb2.GetRunRequest(exp_name="run")).run.status

    writer = Writer(host, run_id)
    assert status() == query_service_pb2.RUN_STATUS_RUNNING
    writer.send(rows("loss", [1.0]))
    writer.session.vanish()
    assert status() == query_service_pb2.RUN_STATUS_INTERRUPTED
    back = Writer(host, run_id, writer.writer_id)
    back.wait(lambda: back.accepted == 1)
    back.finish()
    back.session.vanish()
    assert status() == query_service_pb2.RUN_STATUS_FINISHED
    [told] = host.get_run(query_service_pb2.GetRunRequest(run_id=run_id)).writers
    assert (told.status, told.last_sequence, told.client) == (query_service_pb2.WRITER_STATUS_FINISHED, 1, "test")
