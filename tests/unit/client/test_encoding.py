"""Batches as bytes."""

from __future__ import annotations

import pytest

from logger_client.delivery.encoding import HEADER_BYTES, batch_request, serialize_records
from logger_client.delivery.receipt import Receipt
from logger_client.delivery.window import Entry
from logger_service.v1 import logging_service_pb2, records_pb2


def text(name: str, size: int = 1) -> records_pb2.Record:
    return records_pb2.Record(text=records_pb2.TextRecord(name=name, text="x" * size))


def rows(names: int, count: int) -> records_pb2.Record:
    values = [float(value) for value in range(names * count)]
    metrics = records_pb2.MetricRows(names=[f"m{n}" for n in range(names)], steps=range(count), values=values)
    return records_pb2.Record(metrics=metrics)


def parse(data: bytes) -> records_pb2.Batch:
    return logging_service_pb2.LogStreamRequest.FromString(data).batch


@pytest.mark.parametrize("size", [0, 1, 100, 127, 128, 16_383, 16_384, 3_000_000])
def test_a_header_in_front_of_serialized_records_is_a_batch(size):
    records = [text("a", size), rows(3, 4), text("b")]
    [(data, points)] = serialize_records(records, 1 << 24)
    assert points == 14
    entry = Entry(data, points, ordinal=1, dropped=5, receipt=Receipt(), sequence=70_000)
    request = batch_request(entry, 300)
    assert parse(request) == records_pb2.Batch(
        sequence=70_000, first_held=300, dropped=5, wait_applied=True, records=records
    )
    assert len(request) <= len(data) + HEADER_BYTES


def test_a_batch_sent_again_has_a_fresh_header():
    [(data, points)] = serialize_records([text("a")], 1 << 20)
    entry = Entry(data, points, ordinal=1, sequence=9)
    assert parse(batch_request(entry, 4)).first_held == 4
    assert parse(batch_request(entry, 9)).first_held == 9
    assert not parse(batch_request(entry, 9)).wait_applied


def test_a_batch_without_records_carries_a_count():
    batch = parse(batch_request(Entry(b"", 0, ordinal=1, dropped=7, sequence=1), 1))
    assert batch == records_pb2.Batch(sequence=1, first_held=1, dropped=7)


def test_records_are_spread_over_batches_of_limited_size():
    records = [text(f"t{number}", 400) for number in range(10)] + [text("large", 5000), rows(2, 2)]
    parts = list(serialize_records(records, 1000))
    assert [points for _, points in parts] == [2, 2, 2, 2, 2, 1, 4]
    assert all(len(data) <= 1000 for data, points in parts if points != 1)
    together = records_pb2.Batch()
    for data, _ in parts:
        together.MergeFromString(data)
    assert list(together.records) == records


def test_no_records_are_no_batch():
    assert list(serialize_records([], 1000)) == []
