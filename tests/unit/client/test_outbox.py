"""What a welcome means for what is on its way."""

from __future__ import annotations

from logger_client.delivery.failures import Failures
from logger_client.delivery.outbox import Outbox
from logger_client.delivery.receipt import Receipt
from logger_client.delivery.window import Entry
from logger_service.v1 import logging_service_pb2


def requests(outbox: Outbox, stream: object, count: int) -> list[logging_service_pb2.LogStreamRequest]:
    sent = [outbox.next_request(stream) for _ in range(count)]
    return [logging_service_pb2.LogStreamRequest.FromString(request) for request in sent if request is not None]


def test_a_host_that_forgot_what_it_acknowledged_is_left_as_a_new_writer():
    """A batch that is acknowledged and awaited is still held: sent again to a host without it, it might stand twice."""
    failures = Failures("run")
    outbox = Outbox(failures, lambda size: None, 1 << 20)
    waiter = Receipt()
    outbox.add(Entry(b"", 1, ordinal=1, dropped=0, receipt=waiter))
    outbox.add(Entry(b"", 1, ordinal=2, dropped=0, receipt=None))
    first = object()
    loser, held = outbox.begin_stream(first)
    assert held == 1
    assert outbox.welcome(logging_service_pb2.Welcome(last_sequence=0))
    assert [request.batch.sequence for request in requests(outbox, first, 2)] == [1, 2]
    outbox.acknowledge(logging_service_pb2.Acknowledgement(accepted=1))
    outbox.end_stream()

    second = object()
    assert outbox.begin_stream(second) == (loser, 1)
    assert not outbox.welcome(logging_service_pb2.Welcome(last_sequence=0))
    outbox.end_stream()
    assert any("may stand in the files" in refusal for refusal in waiter.wait(0) or [])

    third = object()
    writer, held = outbox.begin_stream(third)
    assert (writer != loser, held) == (True, 1)
    assert outbox.welcome(logging_service_pb2.Welcome(last_sequence=0))
    assert [request.batch.sequence for request in requests(outbox, third, 1)] == [1]
    outbox.acknowledge(logging_service_pb2.Acknowledgement(accepted=1))
    assert outbox.wait_acknowledged(2, 0)
