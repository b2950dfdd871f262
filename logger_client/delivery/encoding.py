"""Batches as bytes: records are serialized once, and each sending only puts a fresh header in front of them.

The fields of a protobuf message may be written in pieces: serialized messages that follow each other are one message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from logger_client.delivery.window import Entry
from logger_service.contract.wire import points
from logger_service.v1 import logging_service_pb2, records_pb2

HEADER_BYTES = 64
"""More than what a batch needs beyond its records: its own fields, and the envelope."""

_LENGTH_DELIMITED = 2
_RECORD_TAG = bytes([records_pb2.Batch.RECORDS_FIELD_NUMBER << 3 | _LENGTH_DELIMITED])
_BATCH_TAG = bytes([logging_service_pb2.LogStreamRequest.BATCH_FIELD_NUMBER << 3 | _LENGTH_DELIMITED])


def serialize_records(records: Iterable[records_pb2.Record], max_bytes: int) -> Iterator[tuple[bytes, int]]:
    """Serializes records as the `records` of one or more batches.

    Args:
        records: The records.
        max_bytes: How large one of the results may be, unless a single record is larger.

    Yields:
        The bytes, and how many points they hold.
    """
    parts: list[bytes] = []
    size = held = 0
    for record in records:
        body = record.SerializeToString()
        prefix = _RECORD_TAG + _varint(len(body))
        if parts and size + len(prefix) + len(body) > max_bytes:
            yield b"".join(parts), held
            parts, size, held = [], 0, 0
        parts += (prefix, body)
        size += len(prefix) + len(body)
        held += points(record)
    if parts:
        yield b"".join(parts), held


def batch_request(entry: Entry, first_held: int) -> bytes:
    """Returns the serialized `LogStreamRequest` that holds a batch."""
    header = records_pb2.Batch(
        sequence=entry.sequence,
        first_held=min(first_held, entry.sequence),
        dropped=entry.dropped,
        wait_applied=entry.awaited,
    ).SerializeToString()
    return b"".join((_BATCH_TAG, _varint(len(header) + len(entry.records)), header, entry.records))


def hello_request(hello: logging_service_pb2.Hello) -> bytes:
    """Returns the serialized `LogStreamRequest` that opens a stream."""
    return logging_service_pb2.LogStreamRequest(hello=hello).SerializeToString()


def finish_request() -> bytes:
    """Returns the serialized `LogStreamRequest` that says that the writer is done."""
    return logging_service_pb2.LogStreamRequest(finish=logging_service_pb2.Finish()).SerializeToString()


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
