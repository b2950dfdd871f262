"""What a client does about everything that a stream may end with. Each script stands for a server."""

from __future__ import annotations

import threading

import grpc
import pytest

from logger_client import DeliveryError, DeliveryPending
from logger_client.delivery import stream as stream_module
from logger_client.delivery.window import MIN_IN_FLIGHT
from logger_service.contract.errors import Reason
from logger_service.v1 import records_pb2, run_service_pb2
from tests.integration.client.scripted_server import accept_all, acknowledge, reconnect, refuse, welcome

LARGE = "x" * 300_000
"""A text of this size is a batch of its own."""


def rejected(sequence: int, message: str, backend: str = "") -> records_pb2.BatchRejections:
    rejection = records_pb2.Rejection(record=0, reason=Reason.INVALID_FIELD.value, message=message, points=1)
    return records_pb2.BatchRejections(sequence=sequence, rejections=[rejection], backend=backend)


def test_batches_are_sent_without_waiting_for_acknowledgements(scripted, connect):
    def acknowledges_late(hello, requests, context):
        yield welcome()
        for _ in range(MIN_IN_FLIGHT):
            last = next(requests).batch.sequence
        yield acknowledge(last)
        for request in requests:
            yield acknowledge(request.batch.sequence)

    server = scripted(acknowledges_late)
    logger = connect(server)
    for step in range(MIN_IN_FLIGHT):
        logger.log_str("t", LARGE, step)
    logger.flush()
    assert server.sequences == list(range(1, MIN_IN_FLIGHT + 1))


def test_what_the_host_lacks_is_sent_again_after_a_broken_stream(scripted, connect):
    def breaks(hello, requests, context):
        yield welcome()
        for _ in range(3):
            next(requests)
        yield acknowledge(1)
        context.abort(grpc.StatusCode.UNAVAILABLE, "gone")

    def has_two(hello, requests, context):
        assert hello.first_held == 2
        yield welcome(2)
        for request in requests:
            yield acknowledge(request.batch.sequence)

    server = scripted(breaks, has_two)
    logger = connect(server)
    for step in range(5):
        logger.log_str("t", LARGE, step)
    logger.flush()
    assert server.hellos[0].writer_id == server.hellos[1].writer_id
    assert server.sequences[:3] == [1, 2, 3]
    again = server.sequences[server.sequences.index(3, 3) :]
    assert again == [3, 4, 5], "two was there already"
    sent_twice = [batch for batch in server.batches if batch.sequence == 3]
    assert sent_twice[0].records == sent_twice[1].records


@pytest.mark.parametrize(
    "code",
    [
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.UNKNOWN,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.DEADLINE_EXCEEDED,
    ],
)
def test_whatever_says_that_the_connection_broke_is_retried(scripted, connect, code):
    server = scripted(lambda hello, requests, context: context.abort(code, "broken"), accept_all)
    logger = connect(server)
    logger.log_scalar("x", 1.0, 0)
    logger.flush()
    assert server.values == [1.0]


@pytest.mark.parametrize(
    "reason", [Reason.JOURNAL_FULL, Reason.JOURNAL_UNAVAILABLE, Reason.SHUTTING_DOWN, Reason.SEQUENCE_GAP]
)
def test_refusals_that_pass_are_retried(scripted, connect, reason):
    server = scripted(lambda hello, requests, context: refuse(context, reason), accept_all)
    logger = connect(server)
    logger.log_scalar("x", 1.0, 0)
    logger.flush()
    assert server.values == [1.0]
    assert len(server.hellos) == 2


def test_a_stream_that_ends_without_a_word_is_opened_again(scripted, connect):
    def ends(hello, requests, context):
        yield welcome()
        next(requests)

    server = scripted(ends, accept_all)
    logger = connect(server)
    logger.log_scalar("x", 1.0, 0)
    logger.flush()
    assert server.sequences == [1, 1]


def test_a_host_that_never_answers_hello_is_asked_again(scripted, connect, monkeypatch):
    monkeypatch.setattr(stream_module, "WELCOME_TIMEOUT_S", 0.05)
    released = threading.Event()

    def mute(hello, requests, context):
        released.wait()
        yield from ()

    server = scripted(mute, accept_all)
    logger = connect(server)
    logger.log_scalar("x", 1.0, 0)
    logger.flush()
    released.set()
    assert server.values == [1.0]


def test_a_hint_to_reconnect_is_followed_and_nothing_is_sent_twice(scripted, connect):
    rest: list[object] = []

    def ends_soon(hello, requests, context):
        yield welcome()
        batch = next(requests).batch
        yield reconnect(1)
        rest.extend(requests)
        yield acknowledge(batch.sequence)

    server = scripted(ends_soon, accept_all)
    logger = connect(server)
    logger.log_scalar("x", 1.0, 0)
    logger.flush()
    logger.log_scalar("x", 2.0, 1)
    logger.flush()
    assert rest == []
    assert server.sequences == [1, 2]
    assert server.hellos[1].first_held == 2


def test_a_host_that_does_not_know_the_run_has_it_opened_again(scripted, connect):
    server = scripted(lambda hello, requests, context: refuse(context, Reason.RUN_NOT_FOUND), accept_all)
    logger = connect(server, backends=["csv"])
    logger.log_scalar("x", 1.0, 0)
    logger.flush()
    assert server.values == [1.0]
    again = server.opened[1]
    assert (again.run_id, again.epoch, again.namespace, again.exp_name) == ("a-run", 3, "default", "run")
    assert again.resume == run_service_pb2.RESUME_ALLOW
    assert list(again.backends) == list(server.opened[0].backends)


def test_after_a_lost_journal_it_goes_on_as_a_new_writer_and_says_so_once(scripted, connect):
    def forgets(hello, requests, context):
        yield welcome()
        for _ in range(4):
            next(requests)
        yield acknowledge(3)
        context.abort(grpc.StatusCode.UNAVAILABLE, "gone")

    def lost(hello, requests, context):
        refuse(context, Reason.JOURNAL_LOST, first_sequence="1", last_sequence="3")

    server = scripted(forgets, lost, accept_all)
    logger = connect(server)
    for step in range(4):
        logger.log_str("t", LARGE, step)
    with pytest.raises(DeliveryError, match="batches 1 to 3") as raised:
        logger.flush()
    assert server.hellos[0].writer_id in str(raised.value)
    assert raised.value.ledger.accepted == 7
    assert server.hellos[1].first_held == 4
    assert server.hellos[2].first_held == 1
    assert server.hellos[2].writer_id not in {server.hellos[0].writer_id, ""}
    assert server.sequences == [1, 2, 3, 4, 1]
    assert server.batches[-1].records == server.batches[3].records
    logger.flush()


@pytest.mark.parametrize(
    "reason", [Reason.RUN_CLOSED, Reason.WRITER_FENCED, Reason.RUN_MISMATCH, Reason.INVALID_FIELD, Reason.NOT_SERVED]
)
def test_refusals_for_good_end_delivery_and_are_raised_once(scripted, connect, caplog, reason):
    server = scripted(lambda hello, requests, context: refuse(context, reason))
    logger = connect(server)
    logger.log_metrics({"x": 1.0, "y": 2.0}, 0)
    with pytest.raises(DeliveryError, match=rf"2 points.*{reason.name}") as raised:
        logger.flush()
    assert raised.value.ledger.accepted == 7
    assert reason.name in caplog.text
    assert not logger.is_alive
    logger.flush()
    logger.log_scalar("x", 3.0, 1)
    with pytest.raises(DeliveryError, match="1 point:"):
        logger.shutdown()


def test_exhausted_resources_without_advice_are_not_retried(scripted, connect):
    full = grpc.StatusCode.RESOURCE_EXHAUSTED
    server = scripted(lambda hello, requests, context: context.abort(full, "too large"))
    logger = connect(server)
    logger.log_scalar("x", 1.0, 0)
    with pytest.raises(DeliveryError, match="too large"):
        logger.flush()


def test_rejections_are_raised_once_though_the_host_repeats_them(scripted, connect):
    told = rejected(1, "names: 'x' is bad")

    def rejects(hello, requests, context):
        yield welcome()
        next(requests)
        yield acknowledge(1, 0, told)
        context.abort(grpc.StatusCode.UNAVAILABLE, "gone")

    def repeats(hello, requests, context):
        yield welcome(1)
        yield acknowledge(1, 0, told)
        for request in requests:
            yield acknowledge(request.batch.sequence, 0, told)

    server = scripted(rejects, repeats)
    logger = connect(server)
    logger.log_scalar("x", 1.0, 0)
    with pytest.raises(DeliveryError, match=r"1 point: refused by the server \(INVALID_FIELD\): names: 'x' is bad"):
        logger.flush()
    logger.log_scalar("y", 1.0, 0)
    logger.flush()


def test_what_was_dropped_is_told_to_the_host(scripted, connect):
    full = threading.Event()

    def acknowledges_late(hello, requests, context):
        yield welcome()
        held = next(requests).batch
        full.wait()
        yield acknowledge(held.sequence)
        for request in requests:
            yield acknowledge(request.batch.sequence)

    server = scripted(acknowledges_late)
    logger = connect(server, on_full="drop", max_buffer_bytes=1 << 16)
    logger.log_str("t", "x" * (1 << 16), 0)
    for step in range(10):
        logger.log_scalar("x", 1.0, step)
    full.set()
    logger.flush()
    logger.log_scalar("x", 2.0, 10)
    logger.flush()
    assert sum(batch.dropped for batch in server.batches) == 10
    assert server.values == [2.0]


# Calls that wait.


def test_a_synchronous_call_is_a_batch_that_is_waited_for(scripted, connect):
    server = scripted()
    logger = connect(server, delivery="sync")
    logger.log_scalar("x", 1.0, 0)
    logger.log_metrics({"x": 2.0, "note": "text"}, 1)
    logger.log_hparams({"a": 1})
    assert [(batch.sequence, len(batch.records), batch.wait_applied) for batch in server.batches] == [
        (1, 1, True),
        (2, 2, True),
        (3, 1, True),
    ]


@pytest.mark.parametrize("backend", ["", "csv"])
def test_a_synchronous_call_raises_what_was_rejected(scripted, connect, backend):
    def rejects(hello, requests, context):
        yield welcome()
        for request in requests:
            sequence = request.batch.sequence
            yield acknowledge(sequence, sequence, rejected(sequence, "not this one", backend))

    logger = connect(scripted(rejects), delivery="sync")
    with pytest.raises(RuntimeError, match="not this one"):
        logger.log_scalar("x", 1.0, 0)
    logger.flush()  # It has been told.


def test_a_synchronous_call_raises_after_its_time_and_the_rest_is_told_later(scripted, connect):
    late = threading.Event()

    def applies_late(hello, requests, context):
        yield welcome()
        sequence = next(requests).batch.sequence
        yield acknowledge(sequence)
        late.wait()
        yield acknowledge(sequence, sequence, rejected(sequence, "after all not", "csv"))
        for request in requests:
            yield acknowledge(request.batch.sequence)

    logger = connect(scripted(applies_late), delivery="sync", sync_timeout=0.1)
    with pytest.raises(DeliveryPending, match="do not log it again"):
        logger.log_scalar("x", 1.0, 0)
    late.set()

    def flush_until_it_has_come() -> None:
        while True:
            logger.flush()

    with pytest.raises(DeliveryError, match="after all not"):
        flush_until_it_has_come()


def test_a_synchronous_call_survives_a_broken_stream(scripted, connect):
    def breaks(hello, requests, context):
        yield welcome()
        yield acknowledge(next(requests).batch.sequence)
        context.abort(grpc.StatusCode.UNAVAILABLE, "gone before it was applied")

    def goes_on(hello, requests, context):
        yield welcome(1)
        yield acknowledge(1, next(requests).batch.sequence)

    server = scripted(breaks, goes_on)
    logger = connect(server, delivery="sync")
    logger.log_scalar("x", 1.0, 0)
    assert server.sequences == [1, 1]


def test_a_synchronous_call_raises_when_delivery_has_ended(scripted, connect):
    logger = connect(scripted(lambda hello, requests, context: refuse(context, Reason.RUN_CLOSED)), delivery="sync")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="RUN_CLOSED"):
            logger.log_scalar("x", 1.0, 0)
