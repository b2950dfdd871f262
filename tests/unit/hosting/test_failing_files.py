"""Files that cannot be written for a while, and a journal that lost rows: nothing written is lost or doubled."""

from __future__ import annotations

import sqlite3

import pytest

from logger_service.backends.csv import CsvBackend
from logger_service.contract.errors import Reason, ServiceError
from logger_service.journal.base import BatchRow, Change
from logger_service.journal.sqlite import SqliteJournal
from logger_service.v1 import records_pb2, run_service_pb2
from tests.unit.hosting.conftest import Hosts, Writer, flush, lines, open_run, rows
from tests.unit.hosting.test_recovering import expected, send_steps, until


def no_space(*_: object) -> None:
    raise OSError(28, "no space left on device")


def damage(hosts: Hosts, statement: str) -> None:
    """Changes the journal of a host that has ended, behind its checksums."""
    with sqlite3.connect(hosts.journal_path) as journal:
        assert journal.execute(statement).rowcount > 0
    journal.close()


def test_a_damaged_length_cuts_nothing(hosts: Hosts) -> None:
    host = hosts.start()
    run_id = open_run(host).run_id
    send_steps(Writer(host, run_id), 0, 50)
    hosts.end(host)
    host = hosts.start(write_after_s=3600.0)
    send_steps(Writer(host, run_id), 50, 60)
    hosts.crash(host)
    damage(hosts, "UPDATE lengths SET length = length + 1 WHERE path = 'scalars/loss.csv'")
    host = hosts.start()
    flush(host, run_id)
    assert lines(hosts.data_dir, "loss") == expected(60)
    assert len(lines(hosts.data_dir, "acc")) == 60


def test_a_damaged_position_loses_nothing_that_comes_later(hosts: Hosts) -> None:
    host = hosts.start(checkpoint_after_bytes=1)
    run_id = open_run(host).run_id
    writer = Writer(host, run_id)
    send_steps(writer, 0, 50)
    hosts.end(host)
    damage(hosts, "UPDATE tails SET last_position = last_position + 1")
    host = hosts.start(write_after_s=3600.0)
    send_steps(Writer(host, run_id), 50, 60)
    hosts.crash(host)
    host = hosts.start()
    flush(host, run_id)
    assert lines(hosts.data_dir, "loss") == expected(60)


def test_a_damaged_writer_stops_no_server(hosts: Hosts) -> None:
    host = hosts.start()
    run_id = open_run(host).run_id
    writer = Writer(host, run_id)
    writer.send(rows("../bad", [1.0]))
    writer.wait_accepted()
    hosts.crash(host)
    damage(hosts, "UPDATE writers SET accepted = accepted + 1")
    host = hosts.start()
    send_steps(Writer(host, run_id), 0, 10)
    flush(host, run_id)
    assert lines(hosts.data_dir, "loss") == expected(10)


def test_a_recovery_that_fails_half_way_is_begun_again(hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    host = hosts.start()
    run_id = open_run(host).run_id
    writer = Writer(host, run_id)
    send_steps(writer, 0, 20)
    flush(host, run_id)
    faults = iter([True, False])

    def apply_once(backend: CsvBackend, batch: records_pb2.Batch) -> list[records_pb2.Rejection]:
        if next(faults, False):
            no_space()
        return apply(backend, batch)

    apply, end = CsvBackend.apply, CsvBackend.end_recovery
    ends = iter([True, True])

    def end_late(backend: CsvBackend) -> object:
        if next(ends, False):
            no_space()
        return end(backend)

    monkeypatch.setattr(CsvBackend, "apply", apply_once)
    monkeypatch.setattr(CsvBackend, "end_recovery", end_late)
    send_steps(writer, 20, 25)
    ledger = flush(host, run_id)
    assert lines(hosts.data_dir, "loss") == expected(25)
    assert (ledger.accepted, ledger.backends[0].applied) == (50, 50)


def test_closing_a_run_that_cannot_be_written_says_so_until_it_is(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = hosts.start(write_after_s=3600.0)
    run_id = open_run(host).run_id
    send_steps(Writer(host, run_id), 0, 10)
    with monkeypatch.context() as patch:
        patch.setattr(CsvBackend, "write", no_space)
        for _ in range(2):
            with pytest.raises(OSError, match="no space"):
                host.close_run(run_id)
        assert not host.drain()
    hosts.crash(host)
    host = hosts.start()  # a closed run that has something to apply goes on by itself
    until(lambda: host.close_run(run_id).backends[0].applied == 20)
    assert lines(hosts.data_dir, "loss") == expected(10)


def test_what_is_not_written_is_not_counted_as_applied(hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    host = hosts.start()
    run_id = open_run(host).run_id
    monkeypatch.setattr(CsvBackend, "write", no_space)
    send_steps(Writer(host, run_id), 0, 10)
    [run] = host._catalogue.all()
    run.wake_projectors(urgent=True)
    until(lambda: bool(run.projectors[0].problem))
    ledger = flush(host, run_id, level=run_service_pb2.FLUSH_LEVEL_ACCEPTED)
    assert (ledger.backends[0].applied, ledger.backends[0].lag) == (0, 20)
    assert "no space" not in ledger.backends[0].problem
    assert ledger.backends[0].problem


def test_what_was_refused_is_not_acknowledged_later(hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    host = hosts.start()
    run_id = open_run(host).run_id
    writer = Writer(host, run_id)
    commit = SqliteJournal.commit

    def faulty(journal: SqliteJournal, changes: list[Change], now_ns: int) -> None:
        if any(isinstance(change, BatchRow) for change in changes):
            raise OverflowError("a fault of the host")
        commit(journal, changes, now_ns)

    with monkeypatch.context() as patch:
        patch.setattr(SqliteJournal, "commit", faulty)
        writer.send(rows("loss", [0.0], [0]))
        writer.wait(lambda: writer.session.failed is not None)
        writer.session.vanish()  # as its stream does
    with pytest.raises(ServiceError) as refused:
        writer.send(rows("loss", [1.0], [1]))
    assert refused.value.reason is Reason.INTERNAL
    hosts.end(host)
    host = hosts.start()
    again = Writer(host, run_id, writer.writer_id)
    assert again.session.welcome.last_sequence == 0
    again.send(rows("loss", [0.0], [0]))
    again.wait_accepted()
    flush(host, run_id)
    assert lines(hosts.data_dir, "loss") == [(0, 0.0)]
