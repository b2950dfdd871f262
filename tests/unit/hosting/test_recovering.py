"""What a host does about crashes, lost and older journals, and files that are not as it left them."""

from __future__ import annotations

import errno
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from logger_service.contract.errors import Reason, ServiceError
from logger_service.hosting.host import RunHost
from logger_service.journal.sqlite import SqliteJournal
from logger_service.v1 import query_service_pb2, records_pb2
from tests.unit.hosting.conftest import DEADLINE_S, Hosts, Writer, flush, lines, open_run, rows


def send_steps(writer: Writer, first: int, last: int, per_batch: int = 10) -> None:
    """Sends steps `first` to `last - 1` of two names, in batches."""
    for begin in range(first, last, per_batch):
        steps = list(range(begin, min(begin + per_batch, last)))
        values = [value for step in steps for value in (step / 8, step + 0.5)]
        writer.send(rows(("loss", "acc"), values, steps, times=steps))
    writer.wait_accepted()


def expected(last: int, first: int = 0) -> list[tuple[int, float]]:
    return [(step, step / 8) for step in range(first, last)]


def until(ready: Callable[[], bool]) -> None:
    """Waits for what no event tells from outside."""
    deadline = time.monotonic() + DEADLINE_S
    while not ready():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_what_was_accepted_and_not_written_is_written_after_a_crash(hosts: Hosts) -> None:
    host = hosts.start(write_after_s=3600.0)
    run_id = open_run(host).run_id
    send_steps(Writer(host, run_id), 0, 100)
    hosts.crash(host)
    host = hosts.start()
    ledger = flush(host, run_id)  # the run goes on by itself: nobody opened it
    assert lines(hosts.data_dir, "loss") == expected(100)
    assert (ledger.accepted, ledger.backends[0].applied, ledger.backends[0].lag) == (200, 200, 0)
    assert not ledger.notices


def test_what_was_written_and_not_checkpointed_is_kept_and_not_doubled(hosts: Hosts) -> None:
    host = hosts.start()
    run_id = open_run(host).run_id
    for round in range(4):
        writer = Writer(host, run_id)
        send_steps(writer, 100 * round, 100 * round + 100)
        if round % 2 == 0:
            flush(host, run_id)
        hosts.crash(host)
        host = hosts.start()
    ledger = flush(host, run_id)
    assert lines(hosts.data_dir, "loss") == expected(400)
    assert (ledger.accepted, ledger.backends[0].applied) == (800, 800)
    assert not ledger.notices


@pytest.mark.parametrize("damage", ["torn", "zeros", "torn line and zeros", "whole lines lost", "garbage"])
def test_a_damaged_end_of_a_file_is_mended_from_the_journal(hosts: Hosts, damage: str) -> None:
    host = hosts.start()
    run_id = open_run(host).run_id
    send_steps(Writer(host, run_id), 0, 100)
    flush(host, run_id)
    hosts.crash(host)
    path = hosts.data_dir / "default" / "run" / "scalars" / "loss.csv"
    content = path.read_bytes()
    path.write_bytes(
        {
            "torn": content[:-3],
            "zeros": content + bytes(4096),
            "torn line and zeros": content[:-3] + bytes(100),
            "whole lines lost": content[: len(content) // 2],
            "garbage": content[:-40] + b"\xff" * 40,
        }[damage]
    )
    host = hosts.start()
    send_steps(Writer(host, run_id), 100, 110)
    flush(host, run_id)
    assert lines(hosts.data_dir, "loss") == expected(110)
    assert len(lines(hosts.data_dir, "acc")) == 110


def test_automatic_steps_go_on_after_a_crash_and_after_a_clean_end(hosts: Hosts) -> None:
    host = hosts.start(write_after_s=3600.0)
    run_id = open_run(host).run_id
    for round in range(4):
        writer = Writer(host, run_id)
        writer.send(rows("loss", [float(round)] * 5))
        writer.send(records_pb2.Record(text=records_pb2.TextRecord(name="note", text="x")))
        writer.wait_accepted()
        if round % 2:
            hosts.end(host)
        else:
            hosts.crash(host)
        host = hosts.start(write_after_s=3600.0)
    flush(host, run_id)
    assert [step for step, _ in lines(hosts.data_dir, "loss")] == list(range(20))


def test_a_deleted_journal_costs_nothing_that_was_written(hosts: Hosts) -> None:
    host = hosts.start()
    opened = open_run(host)
    writer = Writer(host, opened.run_id)
    send_steps(writer, 0, 100)
    flush(host, opened.run_id)
    hosts.crash(host)
    shutil.rmtree(hosts.journal_path.parent)

    host = hosts.start()
    until(lambda: bool(host.list_runs(query_service_pb2.ListRunsRequest()).runs))  # found by itself
    again = open_run(host, run_id=opened.run_id, epoch=opened.epoch)
    assert (again.run_id, again.epoch, again.points) == (opened.run_id, opened.epoch, 200)
    with pytest.raises(ServiceError) as lost:
        Writer(host, opened.run_id, writer.writer_id, first_held=writer.sequence + 1)
    assert lost.value.reason is Reason.JOURNAL_LOST
    assert lost.value.metadata == {"first_sequence": "1", "last_sequence": str(writer.sequence)}
    new = Writer(host, opened.run_id)
    new.send(rows("loss", [7.0]))  # an automatic step goes on from the file's rows
    new.wait_accepted()
    ledger = flush(host, opened.run_id)
    assert lines(hosts.data_dir, "loss") == [*expected(100), (100, 7.0)]
    assert {notice.kind for notice in ledger.notices} == {"RUN_ADOPTED", "JOURNAL_LOST"}
    assert (ledger.accepted, ledger.backends[0].applied, ledger.backends[0].lag) == (201, 201, 0)


@pytest.mark.parametrize("checkpoints", [True, False], ids=["an hour old", "of the same checkpoint interval"])
def test_an_older_journal_cuts_nothing_and_doubles_nothing(hosts: Hosts, tmp_path: Path, checkpoints: bool) -> None:
    settings = {"checkpoint_after_bytes": 1 if checkpoints else 1 << 40}
    host = hosts.start(**settings)
    run_id = open_run(host).run_id
    writer = Writer(host, run_id)
    send_steps(writer, 0, 50)
    flush(host, run_id)
    host._committer.commit([])
    copy = tmp_path / "older.sqlite"
    with sqlite3.connect(hosts.journal_path) as source, sqlite3.connect(copy) as target:
        source.backup(target)
    source.close(), target.close()
    send_steps(writer, 50, 120)
    flush(host, run_id)
    hosts.crash(host)
    for stale in hosts.journal_path.parent.glob("journal.sqlite*"):
        stale.unlink()
    shutil.copy(copy, hosts.journal_path)

    host = hosts.start(**settings)
    with pytest.raises(ServiceError) as lost:
        Writer(host, run_id, writer.writer_id, first_held=writer.sequence + 1)
    assert lost.value.metadata == {"first_sequence": "6", "last_sequence": "12"}
    new = Writer(host, run_id)
    new.send(rows("loss", [7.0]))
    new.wait_accepted()
    ledger = flush(host, run_id)
    assert lines(hosts.data_dir, "loss") == [*expected(120), (120, 7.0)]
    assert {notice.kind for notice in ledger.notices} == {"FILES_NEWER", "JOURNAL_LOST"}
    hosts.crash(host)
    host = hosts.start(**settings)
    assert flush(host, run_id).accepted == 241
    assert lines(hosts.data_dir, "loss") == [*expected(120), (120, 7.0)]


def test_files_that_went_away_are_begun_again_and_said(hosts: Hosts) -> None:
    host = hosts.start()
    run_id = open_run(host).run_id
    send_steps(Writer(host, run_id), 0, 50)
    hosts.end(host)
    shutil.rmtree(hosts.data_dir / "default" / "run")
    host = hosts.start()
    send_steps(Writer(host, run_id), 50, 60)
    ledger = flush(host, run_id)
    assert lines(hosts.data_dir, "loss") == expected(60, 50)
    assert {notice.kind for notice in ledger.notices} == {"FILES_SHORTER"}


def test_a_directory_that_holds_another_run_is_that_run(hosts: Hosts, tmp_path: Path) -> None:
    other = Hosts(tmp_path / "other")
    elsewhere = other.start()
    theirs = open_run(elsewhere).run_id
    send_steps(Writer(elsewhere, theirs), 0, 20)
    other.end(elsewhere)
    host = hosts.start()
    ours = open_run(host).run_id
    send_steps(Writer(host, ours), 0, 5)
    hosts.end(host)
    shutil.rmtree(hosts.data_dir / "default")
    shutil.copytree(other.data_dir / "default", hosts.data_dir / "default")
    host = hosts.start()
    assert open_run(host).run_id == theirs
    with pytest.raises(ServiceError) as unknown:
        Writer(host, ours)
    assert unknown.value.reason is Reason.RUN_NOT_FOUND
    send_steps(Writer(host, theirs), 20, 30)
    flush(host, theirs)
    assert lines(hosts.data_dir, "loss") == expected(30)


def test_a_failing_backend_loses_nothing_and_stops_nobody_else(hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    host = hosts.start(backlog_bytes=20_000)
    well, ill = open_run(host, "well").run_id, open_run(host, "ill").run_id
    doctors = {run.run_id: run for run in host._catalogue.all()}
    monkeypatch.setattr(
        doctors[ill].projectors[0]._backend, "apply", lambda batch: (_ for _ in ()).throw(OSError("full"))
    )
    patient = Writer(host, ill)
    send_steps(patient, 0, 100)
    send_steps(Writer(host, well), 0, 100)
    flush(host, well)
    assert lines(hosts.data_dir, "loss", "default/well") == expected(100)
    flush(host, ill)  # it was opened again as of its checkpoint, without the fault
    send_steps(patient, 100, 110)
    flush(host, ill)
    assert lines(hosts.data_dir, "loss", "default/ill") == expected(110)


def test_a_backlog_beyond_its_limit_is_refused_until_it_is_gone(hosts: Hosts) -> None:
    host = hosts.start(backlog_bytes=2000, write_after_s=3600.0)
    run_id = open_run(host).run_id
    writer = Writer(host, run_id)
    with pytest.raises(ServiceError) as full:
        send_steps(writer, 0, 1000)
    assert full.value.reason is Reason.JOURNAL_FULL
    assert full.value.retry_after_s is not None
    flush(host, run_id)
    taken = lines(hosts.data_dir, "loss")
    assert taken == expected(len(taken))
    send_steps(Writer(host, run_id, writer.writer_id), len(taken), len(taken) + 10)


def until_closed(host: RunHost, run_id: str) -> None:
    run = host._catalogue.get(run_id)
    until(lambda: not run.is_open)
    with run.open_lock:  # held until its files are written and closed
        pass


def test_a_run_that_is_left_alone_is_closed_and_opens_again(hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("logger_service.hosting.host._IDLE_CHECK_S", 0.05)
    host = hosts.start(idle_after_s=0.0)
    run_id = open_run(host).run_id
    for round in range(3):
        writer = Writer(host, run_id)
        send_steps(writer, 10 * round, 10 * round + 10)
        writer.finish()
        until_closed(host, run_id)
        logged = host.log("LogScalar", run_id, rows("single", [1.0]), epoch=None, request_id="")
        assert logged.result(DEADLINE_S) == {"single": round}
        until_closed(host, run_id)
    assert lines(hosts.data_dir, "loss") == expected(30)
    assert len(lines(hosts.data_dir, "single")) == 3
    hosts.crash(host)
    host = hosts.start()
    assert not flush(host, run_id).notices


def test_accepted_batches_beyond_the_memory_budget_are_read_back(hosts: Hosts) -> None:
    host = hosts.start(tail_bytes=1000, write_after_s=3600.0)
    run_id = open_run(host).run_id
    send_steps(Writer(host, run_id), 0, 500)
    flush(host, run_id)
    assert lines(hosts.data_dir, "loss") == expected(500)


def test_a_host_whose_journal_cannot_be_written_ends_and_goes_on_later(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = hosts.start()
    run_id = open_run(host).run_id
    writer = Writer(host, run_id)
    send_steps(writer, 0, 10)
    commit = SqliteJournal.commit
    full = threading.Event()

    def fail(journal: SqliteJournal, changes: object, now_ns: int) -> None:
        full.set()
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(SqliteJournal, "commit", fail)
    writer.send(rows("loss", [1.25], [10]))
    assert full.wait(DEADLINE_S)
    until(lambda: host._committer.failing)
    with pytest.raises(ServiceError) as refused:
        open_run(host, "other")
    assert refused.value.reason is Reason.JOURNAL_UNAVAILABLE
    hosts.end(host)
    assert writer.accepted == 1, "what could not be journaled was acknowledged"
    monkeypatch.setattr(SqliteJournal, "commit", commit)

    host = hosts.start()
    again = Writer(host, run_id, writer.writer_id)
    send_steps(again, 10, 20)
    flush(host, run_id)
    assert lines(hosts.data_dir, "loss") == expected(20)


def damage_batches(hosts: Hosts, first: int, last: int) -> None:
    """Makes accepted batches unreadable in the journal of a host that has crashed."""
    with sqlite3.connect(hosts.journal_path) as journal:
        keys = [key for (key,) in journal.execute("SELECT key FROM batches ORDER BY key")]
        for key in keys[first - 1 : last]:
            journal.execute("UPDATE batches SET payload = zeroblob(10) WHERE key = ?", (key,))
    journal.close()


@pytest.mark.parametrize("written", [True, False], ids=["written before", "not written before"])
@pytest.mark.parametrize("last", [4, 10], ids=["in the middle", "to the end"])
def test_damaged_batches_cut_nothing_that_was_written(hosts: Hosts, written: bool, last: int) -> None:
    host = hosts.start(write_after_s=3600.0)
    run_id = open_run(host).run_id
    send_steps(Writer(host, run_id), 0, 100)
    if written:
        flush(host, run_id)
    hosts.crash(host)
    damage_batches(hosts, 3, last)
    if written:  # and the last line was torn
        path = hosts.data_dir / "default" / "run" / "scalars" / "loss.csv"
        path.write_bytes(path.read_bytes()[:-3])

    host = hosts.start()
    send_steps(Writer(host, run_id), 100, 110)
    ledger = flush(host, run_id)
    lost = range(20, 10 * last)
    known = [point for point in expected(110) if written or point[0] not in lost]
    if written and last == 10:
        known.remove((99, 99 / 8))  # torn, and no batch is left to write it again
    assert lines(hosts.data_dir, "loss") == known
    assert "JOURNAL_DAMAGED" in {notice.kind for notice in ledger.notices}
    hosts.crash(host)
    host = hosts.start()
    flush(host, run_id)
    assert lines(hosts.data_dir, "loss") == known
