"""Makers of journal rows with everything filled in that a test does not care about."""

from __future__ import annotations

from collections.abc import Sequence

from logger_service.journal.base import BatchRow, Change, Journal, RunRow, RunSnapshot, WriterRow

NOW_NS = 1_700_000_000_000_000_000
LATER_NS = 1 << 62
"""A time that no test lives to see."""


def run_row(run_id: str = "run", *, epoch: int = 0, closed: bool = False, notes: str = "") -> RunRow:
    """Returns a run."""
    return RunRow(run_id, "default", f"exp/{run_id}", epoch, closed, NOW_NS, '["csv"]', '{"tag": "ü"}', notes)


def writer_row(run_id: str = "run", writer_id: str = "writer", *, sequence: int = 0, position: int = 0) -> WriterRow:
    """Returns a writer."""
    return WriterRow(run_id, writer_id, 0, 1, sequence, position, NOW_NS, "client/1", 10, 1, 2, '{"TOO_LARGE": 3}')


def batch_row(
    position: int, run_id: str = "run", *, payload: bytes | None = None, writer_id: str = "writer"
) -> BatchRow:
    """Returns a batch, whose payload tells what it is."""
    payload = payload_of(position, run_id) if payload is None else payload
    return BatchRow(run_id, position, writer_id, position, payload)


def payload_of(position: int, run_id: str = "run", size: int = 0) -> bytes:
    """Returns the payload that `batch_row` gives a batch, or one of the given size."""
    return f"{run_id}:{position};".encode().ljust(size, b"\x05")


def batch_rows(first: int, last: int, run_id: str = "run", *, size: int = 0) -> list[Change]:
    """Returns the batches of a run from one position to another."""
    return [batch_row(at, run_id, payload=payload_of(at, run_id, size)) for at in range(first, last + 1)]


def positions(journal: Journal, run_id: str = "run", *, after: int = 0) -> list[int]:
    """Returns the positions that can be read."""
    return [batch.position for batch in read_all(journal, run_id, after=after)]


def read_all(journal: Journal, run_id: str = "run", *, after: int = 0) -> Sequence[BatchRow]:
    """Reads all batches, slice by slice."""
    batches: list[BatchRow] = []
    while part := journal.read(run_id, after, 10_000):
        batches += part
        after = part[-1].position
    return batches


def snapshot_of(journal: Journal, run_id: str = "run") -> RunSnapshot:
    """Returns what the journal holds of one run."""
    (snapshot,) = [snapshot for snapshot in journal.load() if snapshot.run.run_id == run_id]
    return snapshot
