"""The streaming door on the bare wire: how streams begin, go on, and end."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest

from logger_service.contract.errors import Reason
from logger_service.journal.base import BatchRow, Change
from logger_service.journal.sqlite import SqliteJournal
from logger_service.v1 import logging_service_pb2, query_service_pb2, records_pb2, run_service_pb2
from tests.support.run_files import read_csv_run
from tests.support.served_host import ServedHost
from tests.support.server import ServerProcess
from tests.support.wire import DEADLINE_S, RawStream, Wire, refusal, rows


def status_of(wire: Wire, run_id: str) -> int:
    """How the run's only writer stands."""
    (writer,) = wire.queries.GetRun(query_service_pb2.GetRunRequest(run_id=run_id)).writers
    return writer.status


def wait_for_status(wire: Wire, run_id: str, status: int) -> None:
    """Asks until the run's only writer stands so."""
    deadline = time.monotonic() + DEADLINE_S
    while status_of(wire, run_id) != status:
        assert time.monotonic() < deadline


def test_from_hello_to_finish(wire: Wire, server: ServerProcess) -> None:
    run_id = wire.open_run("whole")
    stream = wire.stream(run_id)
    assert stream.welcome is not None
    assert (stream.welcome.last_sequence, stream.welcome.epoch) == (0, 1)
    assert stream.welcome.limits == wire.runs.GetServerInfo(run_service_pb2.GetServerInfoRequest()).limits
    for sequence in range(1, 101):
        stream.batch(sequence, rows("loss", float(sequence)))
    stream.finish()
    answers = [answer.acknowledgement for answer in stream.rest()]
    accepted = [answer.accepted for answer in answers]
    assert accepted == sorted(accepted)
    assert accepted[-1] == 100
    assert status_of(wire, run_id) == query_service_pb2.WRITER_STATUS_FINISHED
    wire.flush(run_id)
    points = read_csv_run(server.data_dir / "default" / "whole").scalars["loss"]
    assert points == [(step, step + 1.0) for step in range(100)]


def test_nothing_but_hello_and_finish(wire: Wire) -> None:
    stream = wire.stream(wire.open_run())
    stream.finish()
    assert list(stream.rest()) == []


def test_applied_is_told_to_who_waits(wire: Wire) -> None:
    stream = wire.stream(wire.open_run())
    stream.batch(1, rows("loss", 1.0), wait_applied=True)
    while stream.read("acknowledgement").applied < 1:
        pass


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{}],
        [{"batch": records_pb2.Batch(sequence=1)}],
        [{"finish": logging_service_pb2.Finish()}],
    ],
    ids=["nothing", "empty", "batch", "finish"],
)
def test_the_first_message_must_be_a_hello(wire: Wire, messages: list[dict[str, Any]]) -> None:
    stream = RawStream(wire)
    for message in messages:
        stream.send(**message)
    stream.half_close()
    refused = refusal(lambda: list(stream.rest()))
    assert (refused.reason, refused.field) == (Reason.INVALID_FIELD, "hello")


@pytest.mark.parametrize("field", [{"writer_id": "me"}, {"first_held": 0}, {"client": "x" * 257}])
def test_a_bad_hello_names_its_field(wire: Wire, field: dict[str, Any]) -> None:
    refused = refusal(lambda: wire.stream(wire.open_run(), **field))
    assert (refused.reason, refused.field) == (Reason.INVALID_FIELD, *field)


def test_only_one_hello(wire: Wire) -> None:
    run_id = wire.open_run()
    stream = wire.stream(run_id)
    stream.hello(run_id)
    refused = refusal(lambda: list(stream.rest()))
    assert (refused.reason, refused.field) == (Reason.INVALID_FIELD, "hello")


def test_a_message_must_say_something(wire: Wire) -> None:
    stream = wire.stream(wire.open_run())
    stream.send()
    refused = refusal(lambda: list(stream.rest()))
    assert (refused.reason, refused.field) == (Reason.INVALID_FIELD, "message")


def test_a_message_that_does_not_parse_is_refused(wire: Wire) -> None:
    call = wire.channel.stream_stream("/logger_service.v1.LoggingService/LogStream")(
        iter([b"\xff"]), timeout=DEADLINE_S
    )
    assert refusal(lambda: list(call)).reason == Reason.INVALID_FIELD


def test_what_comes_again_is_acknowledged_again_and_written_once(wire: Wire, server: ServerProcess) -> None:
    run_id = wire.open_run("again")
    first = wire.stream(run_id)
    first.batch(1, rows("loss", 1.0))
    first.batch(2, rows("loss", 2.0))
    first.read_until_accepted(2)
    first.call.cancel()
    second = wire.stream(run_id, welcomed=False, writer_id=first.writer_id)
    assert second.read("welcome").last_sequence == 2
    for sequence in (1, 2, 3):
        second.batch(sequence, rows("loss", float(sequence)))
    second.finish()
    assert [answer.acknowledgement.accepted for answer in second.rest()][-1] == 3
    ledger = wire.flush(run_id)
    assert (ledger.accepted, ledger.repeated) == (3, 2)
    assert read_csv_run(server.data_dir / "default" / "again").scalars == {"loss": [(0, 1.0), (1, 2.0), (2, 3.0)]}


def test_without_finish_everything_is_acknowledged_and_the_writer_has_vanished(wire: Wire) -> None:
    run_id = wire.open_run()
    stream = wire.stream(run_id)
    for sequence in range(1, 11):
        stream.batch(sequence, rows("loss", 1.0))
    stream.half_close()
    assert [answer.acknowledgement.accepted for answer in stream.rest()][-1] == 10
    wait_for_status(wire, run_id, query_service_pb2.WRITER_STATUS_VANISHED)


def test_a_cancelled_stream_leaves_a_vanished_writer(wire: Wire, server: ServerProcess) -> None:
    run_id = wire.open_run()
    stream = wire.stream(run_id)
    assert status_of(wire, run_id) == query_service_pb2.WRITER_STATUS_WRITING
    stream.call.cancel()
    wait_for_status(wire, run_id, query_service_pb2.WRITER_STATUS_VANISHED)
    assert '"level": "error"' not in server.stderr


def test_a_second_stream_of_a_writer_ends_the_first(wire: Wire) -> None:
    run_id = wire.open_run()
    first = wire.stream(run_id)
    second = wire.stream(run_id, writer_id=first.writer_id)
    assert refusal(lambda: list(first.rest())).reason == Reason.SEQUENCE_GAP
    second.batch(1, rows("loss", 1.0))
    second.read_until_accepted(1)


class _StoppableJournal(SqliteJournal):
    """A journal on a disk that can be made to hang."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.going = threading.Event()
        self.going.set()

    def commit(self, changes: Sequence[Change], now_ns: int) -> None:
        if any(isinstance(change, BatchRow) for change in changes):
            self.going.wait()
        super().commit(changes, now_ns)


def test_a_stream_is_not_read_beyond_its_bound(tmp_path: Path) -> None:
    text = records_pb2.Record(text=records_pb2.TextRecord(name="t", text="x" * 100_000))
    journal = _StoppableJournal(tmp_path / "journal.sqlite")
    with (
        ServedHost(tmp_path, journal=journal, max_stream_bytes=1_000_000) as served,
        Wire(served.address) as wire,
    ):
        stream = wire.stream(wire.open_run())
        (session,) = served.host.sessions
        journal.going.clear()
        try:
            for sequence in range(1, 101):
                stream.batch(sequence, text)
            while session.pending_bytes <= 1_000_000:
                wire.runs.GetServerInfo(run_service_pb2.GetServerInfoRequest())
            # Time for the server to read on, if it would.
            for _ in range(200):
                wire.runs.GetServerInfo(run_service_pb2.GetServerInfoRequest())
            assert 1_000_000 < session.pending_bytes < 1_000_000 + 110_000
        finally:
            journal.going.set()
        stream.read_until_accepted(100)


def test_sigterm_acknowledges_what_was_read_and_hints_to_reconnect(wire: Wire, server: ServerProcess) -> None:
    run_id = wire.open_run("drained")
    stream = wire.stream(run_id)
    for sequence in range(1, 51):
        stream.batch(sequence, rows("loss", float(sequence)))
    stream.read_until_accepted(1)
    assert server.terminate() == 0
    answers = list(stream.rest())
    assert stream.call.code() is grpc.StatusCode.OK
    kinds = [answer.WhichOneof("message") for answer in answers]
    assert kinds.count("reconnect") == 1
    accepted = max((answer.acknowledgement.accepted for answer in answers), default=0)
    server.start()
    again = wire.stream(run_id, welcomed=False, writer_id=stream.writer_id)
    assert again.read("welcome").last_sequence == max(accepted, 1)
    for sequence in range(accepted + 1, 51):
        again.batch(sequence, rows("loss", float(sequence)))
    again.finish()
    list(again.rest())
    wire.flush(run_id)
    points = read_csv_run(server.data_dir / "default" / "drained").scalars["loss"]
    assert points == [(step, step + 1.0) for step in range(50)]


def test_sigterm_ends_streams_that_have_not_said_hello(wire: Wire, server: ServerProcess) -> None:
    stream = RawStream(wire)
    # A whole stream after it shows that the server has seen it: calls of one connection begin in order.
    other = wire.stream(wire.open_run())
    other.finish()
    list(other.rest())
    assert server.terminate() == 0
    assert refusal(lambda: list(stream.rest())).reason == Reason.SHUTTING_DOWN


def test_a_stream_opened_while_the_host_is_busy_and_given_up_leaves_no_writer(tmp_path: Path) -> None:
    entered, go_on = threading.Event(), threading.Event()

    with ServedHost(tmp_path) as served, Wire(served.address) as wire:
        run_id = wire.open_run()
        served.host.before_opening = lambda: (entered.set(), go_on.wait())
        stream = wire.stream(run_id, welcomed=False)
        assert entered.wait(DEADLINE_S)
        stream.call.cancel()
        with pytest.raises(grpc.RpcError):
            list(stream.rest())
        go_on.set()
        wait_for_status(wire, run_id, query_service_pb2.WRITER_STATUS_VANISHED)


def test_many_streams_on_one_connection(wire: Wire) -> None:
    run_id = wire.open_run()
    streams = [wire.stream(run_id) for _ in range(50)]
    for sequence, stream in itertools.product(range(1, 6), streams):
        stream.batch(sequence, rows("loss", 1.0))
    for stream in streams:
        stream.finish()
        assert [answer.acknowledgement.accepted for answer in stream.rest()][-1] == 5
    assert wire.flush(run_id).accepted == 250
