"""Damage to a SQLite journal costs what is damaged and no more, and is named."""

from __future__ import annotations

import shutil
import sqlite3
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from logger_service.journal.base import CounterRows, CursorRow, NoticeRow, RejectionRow, RequestRow
from logger_service.journal.pages import scan_batches
from logger_service.journal.replacing import beside
from logger_service.journal.sqlite import SqliteJournal
from logger_service.journal.tables import batch_key

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

OpenSqlite = Callable[..., SqliteJournal]

_RUNS = [f"run-{number}" for number in range(20)]
_LAST = 60
_PAGE = 4_096


@pytest.fixture
def filled(open_sqlite: OpenSqlite, path: Path) -> Path:
    """A closed database with 20 runs of 60 batches of about 2 KB, and some of everything else."""
    journal = open_sqlite(durability="os")
    journal.commit([run_row(run_id) for run_id in _RUNS], NOW_NS)
    for run_id in _RUNS:
        journal.commit(batch_rows(1, _LAST, run_id, size=2_000), NOW_NS)
        journal.commit([writer_row(run_id, sequence=_LAST, position=_LAST), NoticeRow(run_id, 1, "k", "m")], NOW_NS)
        journal.commit(
            [CursorRow(run_id, "csv", 5, 5, 0, "{}", {"x": 1}), RejectionRow(run_id, "w", 1, "", b"r")], NOW_NS
        )
        journal.commit(
            [CounterRows(run_id, 5, {("metrics", "x"): 5}), RequestRow(run_id, b"k", b"v", LATER_NS)], NOW_NS
        )
    journal.close()
    return path


def _overwrite(path: Path, offset: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


def _set_aside(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{path.name}.damaged-*"))


def _check_goes_on(journal: SqliteJournal) -> None:
    """Whatever was lost: the journal takes commits, of the runs it has and of new ones, and holds them."""
    snapshots = journal.load()
    for snapshot in snapshots:
        journal.commit([batch_row(snapshot.last_position + 1, snapshot.run.run_id)], NOW_NS)
        held = positions(journal, snapshot.run.run_id)
        assert held[-1] == snapshot.last_position + 1
        assert held == sorted(set(held))
    journal.commit([run_row("new"), batch_row(1, "new")], NOW_NS)
    assert positions(journal, "new") == [1]
    assert len(journal.load()) == len(snapshots) + 1


def test_a_flipped_bit_costs_one_batch(open_sqlite: OpenSqlite, filled: Path, caplog: pytest.LogCaptureFixture) -> None:
    offset = filled.read_bytes().index(payload_of(30, "run-7"))
    _overwrite(filled, offset + 500, b"\x04")
    journal = open_sqlite()
    assert positions(journal, "run-7") == [position for position in range(1, _LAST + 1) if position != 30]
    assert positions(journal, "run-7", after=29) == list(range(31, _LAST + 1))
    expected = "run run-7: the batch at position 30 is damaged and left out"
    assert list(journal.damaged()) == [expected]
    assert [record.message for record in caplog.records] == [expected]
    for run_id in _RUNS:
        if run_id != "run-7":
            assert positions(journal, run_id) == list(range(1, _LAST + 1))
    assert _set_aside(filled) == []
    _check_goes_on(journal)


@pytest.mark.parametrize(
    ("table", "assignment"),
    [
        ("writers", "last_sequence = last_sequence + 1"),
        ("cursors", "position = x'00'"),
        ("counters", "name = CAST(x'ff' AS TEXT)"),
        ("counted", "position = 6"),
        ("rejections", "payload = x''"),
        ("requests", "response = 'text'"),
        ("notices", "message = ''"),
        ("runs", "exp_name = 'other'"),
    ],
)
def test_a_damaged_row_costs_that_row(open_sqlite: OpenSqlite, filled: Path, table: str, assignment: str) -> None:
    journal = open_sqlite()
    before = {snapshot.run.run_id: snapshot for snapshot in journal.load()}
    journal.close()
    column = "key" if table == "runs" else "run"
    with sqlite3.connect(filled) as connection:
        connection.execute(f"UPDATE {table} SET {assignment} WHERE {column} = 3")
    connection.close()
    journal = open_sqlite()
    after = {snapshot.run.run_id: snapshot for snapshot in journal.load()}
    for run_id in _RUNS:
        if run_id != "run-2":
            assert after[run_id] == before[run_id]
    assert after.get("run-2") != before["run-2"] or table == "counted"  # as of when, can be told from the cursor
    assert any(f"a row of {table} is damaged and left out" in text for text in journal.damaged())
    _check_goes_on(journal)


def test_overwritten_pages_cost_what_stood_in_them(open_sqlite: OpenSqlite, filled: Path) -> None:
    size = filled.stat().st_size
    _overwrite(filled, size // 2 // _PAGE * _PAGE - 700, bytes(range(256)) * 8)
    journal = open_sqlite()
    held = {run_id: positions(journal, run_id) for run_id in _RUNS}
    lost = {run_id: sorted({*range(1, _LAST + 1)} - {*held[run_id]}) for run_id in _RUNS}
    assert 0 < sum(map(len, lost.values())) < 20
    for run_id in _RUNS:
        assert bool(lost[run_id]) == any(f"run {run_id}:" in text for text in journal.damaged())
        assert snapshot_of(journal, run_id).last_position == _LAST
        assert all(batch.payload == payload_of(batch.position, run_id, 2_000) for batch in read_all(journal, run_id))
    _check_goes_on(journal)


def test_damage_anywhere_never_keeps_a_host_from_starting(open_sqlite: OpenSqlite, filled: Path) -> None:
    whole = filled.read_bytes()
    pages = len(whole) // _PAGE
    most = 0
    for page in [*range(24), *range(24, pages, pages // 12)]:
        for other in filled.parent.iterdir():
            other.unlink()
        filled.write_bytes(whole)
        _overwrite(filled, page * _PAGE, b"\xa5" * _PAGE)
        journal = open_sqlite(durability="os")
        snapshots = journal.load()
        for snapshot in snapshots:
            for batch in read_all(journal, snapshot.run.run_id):
                assert batch.payload == payload_of(batch.position, snapshot.run.run_id, 2_000)
        most = max(most, len(snapshots))
        _check_goes_on(journal)
        journal.close()
        journal = open_sqlite(durability="os")
        assert len(journal.load()) == len(snapshots) + 1
        journal.close()
    assert most == len(_RUNS)


@pytest.mark.parametrize("part", [0.9, 0.5, 0.1])
def test_a_file_cut_short(open_sqlite: OpenSqlite, filled: Path, part: float) -> None:
    size = int(filled.stat().st_size * part)
    with filled.open("r+b") as file:
        file.truncate(size)
    journal = open_sqlite()
    snapshots = {snapshot.run.run_id: snapshot for snapshot in journal.load()}
    count = sum(len(positions(journal, run_id)) for run_id in snapshots)
    assert size / 4_000 < count < len(_RUNS) * _LAST
    assert [path.stat().st_size for path in _set_aside(filled)] == [size]
    assert any("is set aside as journal.db.damaged-" in text for text in journal.damaged())
    _check_goes_on(journal)


@pytest.mark.parametrize("content", [b"\x00" * 50_000, b"this is no database\n" * 5_000, b"SQLite format 3\x00", b"x"])
def test_a_file_of_something_else(open_sqlite: OpenSqlite, filled: Path, content: bytes) -> None:
    filled.write_bytes(content)
    journal = open_sqlite()
    assert journal.load() == []
    assert not journal.was_created
    assert [path.read_bytes() for path in _set_aside(filled)] == [content]
    *_, said = journal.damaged()
    assert said.startswith(f"{filled}: the journal was damaged (")
    assert said.endswith("; 0 runs and 0 batches were salvaged")
    _check_goes_on(journal)
    journal.close()
    assert list(open_sqlite().damaged()) == []


def test_an_emptied_file_begins_anew(open_sqlite: OpenSqlite, filled: Path) -> None:
    filled.write_bytes(b"")
    journal = open_sqlite()
    assert journal.was_created
    assert journal.load() == []
    _check_goes_on(journal)


@pytest.mark.parametrize("in_log", [False, True])
def test_batches_are_found_in_raw_pages(open_sqlite: OpenSqlite, path: Path, in_log: bool) -> None:
    sizes = [0, 1, 100, 478, 3_000, *range(4_020, 4_070), 4_500, 8_192, 20_000, 300_000]
    journal = open_sqlite()
    journal.commit([run_row()], NOW_NS)
    for position, size in enumerate(sizes, 1):
        journal.commit([batch_row(position, payload=payload_of(position, size=size))], NOW_NS + position)
    if not in_log:
        journal.close()
    keys = [batch_key(1, position) for position in range(1, len(sizes) + 1)]
    found = {row[0]: row for row in scan_batches(path, beside(path, "-wal"), keys)}
    assert sorted(found) == keys
    for position, size in enumerate(sizes, 1):
        _, time_ns, writer_id, sequence, _, payload = found[keys[position - 1]]
        expected = (NOW_NS + position, "writer", position, payload_of(position, size=size))
        assert (time_ns, writer_id, sequence, payload) == expected


def _crash_copy(open_sqlite: OpenSqlite, path: Path) -> None:
    """Makes a database whose batches stand in the write-ahead log alone, as a killed host leaves it."""
    elsewhere = path.with_name("elsewhere") / path.name
    journal = open_sqlite(elsewhere)
    journal.commit([run_row(), *batch_rows(1, 100)], NOW_NS)
    for suffix in ("", "-wal"):
        shutil.copy(beside(elsewhere, suffix), beside(path, suffix))
    journal.close()


@pytest.mark.parametrize("content", [b"", b"\x00" * _PAGE, b"\x55" * _PAGE * 3])
def test_what_the_log_holds_outlives_the_file(open_sqlite: OpenSqlite, path: Path, content: bytes) -> None:
    path.parent.mkdir()
    _crash_copy(open_sqlite, path)
    path.write_bytes(content)
    journal = open_sqlite()
    assert positions(journal) == list(range(1, 101))
    _check_goes_on(journal)


def test_an_older_file_under_a_newer_log_is_looked_through(open_sqlite: OpenSqlite, path: Path) -> None:
    """A copy that was put back without taking away the log of what it replaces: pages of two times, mixed."""
    elsewhere = path.with_name("elsewhere") / path.name
    journal = open_sqlite(elsewhere)
    journal.commit([run_row(run_id) for run_id in _RUNS], NOW_NS)
    journal.commit([row for run_id in _RUNS for row in batch_rows(1, 20, run_id, size=3_000)], NOW_NS)
    journal.close()
    shutil.copy(elsewhere, path.with_name("older"))
    journal = open_sqlite(elsewhere)
    for first in range(21, 400, 20):  # more than one log holds before it is begun anew
        journal.commit([row for run_id in _RUNS for row in batch_rows(first, first + 19, run_id, size=3_000)], NOW_NS)
    shutil.copy(beside(elsewhere, "-wal"), beside(path, "-wal"))
    journal.close()
    path.with_name("older").rename(path)
    journal = open_sqlite()
    for snapshot in journal.load():
        for batch in read_all(journal, snapshot.run.run_id):
            assert batch.payload == payload_of(batch.position, snapshot.run.run_id, 3_000)
    assert list(journal.damaged()) != []
    _check_goes_on(journal)


def test_a_log_without_its_file_is_set_aside(open_sqlite: OpenSqlite, path: Path) -> None:
    path.parent.mkdir()
    _crash_copy(open_sqlite, path)
    path.unlink()
    journal = open_sqlite()
    assert journal.was_created
    assert journal.load() == []
    assert [path.name.partition(".damaged-")[2][-5:] for path in _set_aside(path)] == ["Z-wal"]
    _check_goes_on(journal)


def test_damage_found_in_use_is_salvaged_at_the_next_start(open_sqlite: OpenSqlite, filled: Path) -> None:
    journal = open_sqlite()
    journal.trim(dict.fromkeys(_RUNS, 20), 1_000)
    journal.close()
    # The list of free pages: nothing looks at it before something is to be written.
    (first_free,) = struct.unpack(">I", filled.read_bytes()[32:36])
    _overwrite(filled, (first_free - 1) * _PAGE, b"\xa5" * _PAGE)
    journal = open_sqlite()
    assert list(journal.damaged()) == []
    with pytest.raises(OSError, match="malformed"):
        journal.commit([change for run_id in _RUNS for change in batch_rows(61, 99, run_id, size=2_000)], NOW_NS)
    assert any("salvaged when it is opened next" in text for text in journal.damaged())
    assert positions(journal, "run-1") == list(range(21, _LAST + 1))
    journal.close()
    journal = open_sqlite()
    assert any("damaged (as was found while it was in use)" in text for text in journal.damaged())
    assert [positions(journal, run_id) for run_id in _RUNS] == [list(range(21, _LAST + 1))] * len(_RUNS)
    _check_goes_on(journal)
    journal.close()
    assert list(open_sqlite().damaged()) == []


@pytest.mark.parametrize("moved", [(), ("",), ("", "-wal")])
def test_an_interrupted_salvage_is_ended(open_sqlite: OpenSqlite, filled: Path, moved: tuple[str, ...]) -> None:
    salvaged = filled.read_bytes()
    beside(filled, ".salvaged").write_bytes(salvaged)
    beside(filled, ".salvaging").write_bytes(b"half")
    filled.write_bytes(b"damaged")
    beside(filled, "-wal").write_bytes(b"log")
    for suffix in moved:
        beside(filled, suffix).rename(beside(filled, f".damaged-before{suffix}"))
    journal = open_sqlite()
    assert [len(positions(journal, run_id)) for run_id in _RUNS] == [_LAST] * len(_RUNS)
    assert {path.read_bytes() for path in _set_aside(filled)} == {b"damaged", b"log"}
    assert not beside(filled, ".salvaging").exists()
    assert not beside(filled, ".salvaged").exists()
