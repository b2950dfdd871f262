"""What every journal does."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from logger_service.journal.base import (
    BatchRow,
    Change,
    CounterRows,
    CursorRow,
    ForgetRejections,
    Journal,
    NoticeRow,
    RejectionRow,
    RequestRow,
    RunSnapshot,
)

from .rows import (
    LATER_NS,
    NOW_NS,
    batch_row,
    batch_rows,
    payload_of,
    positions,
    read_all,
    run_row,
    snapshot_of,
    writer_row,
)

_CURSOR = CursorRow("run", "csv", 2, 20, 1, '{"next": 1}', {"scalars/loss.csv": 100, "scalars/ü.csv": 7})


def test_new_journal_is_empty(journal: Journal) -> None:
    assert journal.was_created
    assert journal.load() == []
    assert list(journal.damaged()) == []
    assert journal.read("run", 0, 1_000) == []
    assert journal.trim({"run": 10}, 100) == 0


def test_everything_comes_back(journal: Journal) -> None:
    counters = CounterRows("run", 2, {("metrics", "loss"): 12, ("text", "ü"): 1})
    rejection = RejectionRow("run", "writer", 1, "csv", b"\x00\xff")
    request = RequestRow("run", b"0123456789abcdef", b"\x00answer", LATER_NS)
    notice = NoticeRow("run", NOW_NS, "adopted", "the run was adopted")
    changes: list[Change] = [run_row(), writer_row(sequence=2, position=2), *batch_rows(1, 2)]
    journal.commit([*changes, rejection, _CURSOR, counters, request, notice], NOW_NS)
    assert journal.load() == [
        RunSnapshot(
            run=run_row(),
            last_position=2,
            first_position=1,
            held_bytes=len(payload_of(1)) + len(payload_of(2)),
            last_write_ns=NOW_NS,
            writers=[writer_row(sequence=2, position=2)],
            cursors=[_CURSOR],
            counters=counters,
            rejections=[rejection],
            requests=[request],
            notices=[notice],
        )
    ]
    assert read_all(journal) == [batch_row(1), batch_row(2)]


def test_rows_are_replaced(journal: Journal) -> None:
    journal.commit([run_row(), run_row(epoch=1), writer_row(), writer_row(sequence=1)], NOW_NS)
    journal.commit([run_row(epoch=2, closed=True, notes="n"), writer_row(sequence=2), batch_row(1)], NOW_NS)
    snapshot = snapshot_of(journal)
    assert snapshot.run == run_row(epoch=2, closed=True, notes="n")
    assert snapshot.writers == [writer_row(sequence=2)]
    assert snapshot.last_position == 1


def test_lengths_and_counts_are_merged(journal: Journal) -> None:
    journal.commit([run_row(), _CURSOR, CounterRows("run", 2, {("metrics", "loss"): 1})], NOW_NS)
    longer = replace(_CURSOR, position=5, applied=50, state="{}", lengths={"scalars/loss.csv": 300, "new.csv": 1})
    journal.commit([longer, CounterRows("run", 5, {("metrics", "loss"): 9, ("metrics", "x"): 1})], NOW_NS)
    snapshot = snapshot_of(journal)
    lengths = {"scalars/loss.csv": 300, "scalars/ü.csv": 7, "new.csv": 1}
    assert snapshot.cursors == [replace(longer, lengths=lengths)]
    assert snapshot.counters == CounterRows("run", 5, {("metrics", "loss"): 9, ("metrics", "x"): 1})


def test_cursors_of_several_backends_stand_side_by_side(journal: Journal) -> None:
    other = replace(_CURSOR, backend="wandb", position=1, lengths={})
    journal.commit([run_row(), _CURSOR, other], NOW_NS)
    assert snapshot_of(journal).cursors == [_CURSOR, other]


def test_a_batch_must_follow_the_last_one(journal: Journal) -> None:
    journal.commit([run_row(), run_row("other"), *batch_rows(1, 3)], NOW_NS)
    for position in (3, 5, 1):
        with pytest.raises(ValueError, match=rf"'run'.* position {position} does not follow the last one, 3"):
            journal.commit([writer_row(), batch_row(1, "other"), batch_row(position)], NOW_NS)
    assert positions(journal) == [1, 2, 3]
    assert positions(journal, "other") == []
    assert snapshot_of(journal).writers == []
    journal.commit([batch_row(4), batch_row(1, "other"), batch_row(5)], NOW_NS)
    assert positions(journal) == [1, 2, 3, 4, 5]


def test_a_run_comes_before_what_belongs_to_it(journal: Journal) -> None:
    changes: list[Change] = [batch_row(1), writer_row(), _CURSOR, ForgetRejections("run", "writer", 1)]
    for change in changes:
        with pytest.raises(ValueError, match=r"'run'.*does not know it"):
            journal.commit([run_row("new"), change], NOW_NS)
    assert journal.load() == []
    journal.commit([run_row("new"), run_row(), batch_row(1)], NOW_NS)
    assert [snapshot.run.run_id for snapshot in journal.load()] == ["new", "run"]
    assert positions(journal) == [1]
    assert positions(journal, "new") == []


def test_rejections_are_kept_until_forgotten(journal: Journal) -> None:
    rows = [RejectionRow("run", "writer", sequence, backend, b"r") for sequence in (1, 2, 3) for backend in ("", "csv")]
    other = RejectionRow("run", "other", 1, "", b"o")
    journal.commit([run_row(), *rows, other], NOW_NS)
    again = RejectionRow("run", "writer", 3, "csv", b"again")
    journal.commit([ForgetRejections("run", "writer", 3), again], NOW_NS)
    assert snapshot_of(journal).rejections == [other, rows[4], again]
    # Within a commit, too, order counts: what is added after is kept, what is added before is not.
    late, early = RejectionRow("run", "writer", 1, "csv", b"late"), RejectionRow("run", "writer", 2, "", b"early")
    journal.commit([early, ForgetRejections("run", "writer", 4), late, ForgetRejections("run", "writer", 1)], NOW_NS)
    assert snapshot_of(journal).rejections == [other, late]


def test_requests_expire(journal: Journal) -> None:
    short, long = RequestRow("run", b"s" * 16, b"1", LATER_NS), RequestRow("run", b"l" * 16, b"2", LATER_NS + 5)
    past = RequestRow("run", b"p" * 16, b"3", NOW_NS + 1)
    journal.commit([run_row(), long, short, past], NOW_NS)
    assert snapshot_of(journal).requests == [long, short]
    journal.commit([], LATER_NS)
    assert snapshot_of(journal).requests == [long]
    journal.commit([replace(long, response=b"new", expires_ns=LATER_NS + 9)], LATER_NS)
    journal.commit([], LATER_NS + 5)
    assert [row.response for row in snapshot_of(journal).requests] == [b"new"]
    journal.commit([], LATER_NS + 9)
    assert snapshot_of(journal).requests == []


def test_newest_notices_are_kept(journal: Journal) -> None:
    notices = [NoticeRow("run", NOW_NS + number, "kind", f"notice {number}") for number in range(250)]
    journal.commit([run_row(), run_row("other"), NoticeRow("other", 1, "kind", "kept"), *notices[:90]], NOW_NS)
    journal.commit(notices[90:130], NOW_NS)
    journal.commit(notices[130:], NOW_NS)
    assert snapshot_of(journal).notices == notices[-100:]
    assert len(snapshot_of(journal, "other").notices) == 1


def test_read_is_bounded_in_bytes(journal: Journal) -> None:
    journal.commit([run_row(), run_row("other"), *batch_rows(1, 5, size=100), *batch_rows(1, 5, "other")], NOW_NS)
    assert [batch.position for batch in journal.read("run", 0, 300)] == [1, 2, 3]
    assert [batch.position for batch in journal.read("run", 3, 399)] == [4, 5]
    assert [batch.position for batch in journal.read("run", 2, 0)] == [3]
    assert journal.read("run", 5, 1_000) == []
    assert journal.read("run", 99, 1_000) == []


def test_trim_deletes_in_slices(journal: Journal) -> None:
    journal.commit([run_row(), run_row("other"), *batch_rows(1, 10), *batch_rows(1, 10, "other", size=50)], NOW_NS)
    assert journal.trim({"run": 7, "other": 3, "unknown": 5}, 4) == 4
    assert journal.trim({"run": 7, "other": 3}, 4) == 4
    assert journal.trim({"run": 7, "other": 3}, 4) == 2
    assert journal.trim({"run": 7, "other": 3}, 4) == 0
    assert positions(journal) == [8, 9, 10]
    snapshot = snapshot_of(journal, "other")
    assert (snapshot.first_position, snapshot.last_position, snapshot.held_bytes) == (4, 10, 350)


def test_a_trimmed_run_goes_on_where_it_was(journal: Journal) -> None:
    journal.commit([run_row(), *batch_rows(1, 5)], NOW_NS)
    assert journal.trim({"run": 1 << 50}, 1_000) == 5
    snapshot = snapshot_of(journal)
    assert (snapshot.first_position, snapshot.last_position, snapshot.held_bytes) == (6, 5, 0)
    assert snapshot.last_write_ns == NOW_NS
    journal.commit([batch_row(6)], NOW_NS + 1)
    snapshot = snapshot_of(journal)
    assert (snapshot.first_position, snapshot.last_position, snapshot.last_write_ns) == (6, 6, NOW_NS + 1)
    assert positions(journal) == [6]


def test_readers_see_whole_commits_while_batches_come_and_go(journal: Journal) -> None:
    journal.commit([run_row()], NOW_NS)
    faults: list[str] = []
    done = threading.Event()

    def follow() -> None:
        after = 0
        while after < 300:
            ended = done.is_set()
            part = journal.read("run", after, 2_000)
            for batch in part:
                if batch.payload != payload_of(batch.position, size=50):
                    faults.append(f"{batch.position} holds {batch.payload!r}")
                if batch.position != after + 1:
                    faults.append(f"{batch.position} follows {after}")
                after = batch.position
            if ended and not part:
                faults.append(f"ended at {after}")
                return

    threads = [threading.Thread(target=follow) for _ in range(4)]
    for thread in threads:
        thread.start()
    for first in range(1, 301, 3):
        journal.commit(batch_rows(first, first + 2, size=50), NOW_NS)
    done.set()
    for thread in threads:
        thread.join()
    assert faults == []


def test_trim_may_run_beside_commits(journal: Journal) -> None:
    journal.commit([run_row(), *batch_rows(1, 200)], NOW_NS)
    trimmer = threading.Thread(target=lambda: [journal.trim({"run": 200}, 7) for _ in range(40)])
    trimmer.start()
    for position in range(201, 301):
        journal.commit([batch_row(position)], NOW_NS)
    trimmer.join()
    snapshot = snapshot_of(journal)
    assert (snapshot.first_position, snapshot.last_position) == (201, 300)
    assert snapshot.held_bytes == sum(len(payload_of(position)) for position in range(201, 301))
    assert positions(journal) == list(range(201, 301))


def test_large_and_empty_payloads(journal: Journal) -> None:
    payloads = [b"", bytes(range(256)) * 8_192, b"x" * 4_061, b"\x00"]
    journal.commit([run_row()], NOW_NS)
    journal.commit([batch_row(at, payload=payload) for at, payload in enumerate(payloads, 1)], NOW_NS)
    assert [batch.payload for batch in read_all(journal)] == payloads
    assert isinstance(read_all(journal)[0], BatchRow)
