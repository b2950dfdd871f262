"""What the SQLite journal does beyond what every journal does: it lasts, it is versioned, it is one host's alone."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from logger_service.journal.base import CounterRows, CursorRow, JournalError, NoticeRow, RequestRow
from logger_service.journal.connections import connect_writer
from logger_service.journal.schema import STEPS, check_version, migrate, version_of
from logger_service.journal.sqlite import SqliteJournal

from .conftest import Program
from .rows import LATER_NS, NOW_NS, batch_row, batch_rows, positions, read_all, run_row, snapshot_of, writer_row

OpenSqlite = Callable[..., SqliteJournal]


def test_everything_is_there_when_opened_again(open_sqlite: OpenSqlite) -> None:
    journal = open_sqlite()
    assert journal.was_created
    journal.commit([run_row("a"), run_row("b"), *batch_rows(1, 300, "a"), writer_row("b")], NOW_NS)
    journal.commit([CursorRow("a", "csv", 9, 1, 0, "{}", {"x": 1}), CounterRows("a", 9, {("metrics", "x"): 3})], NOW_NS)
    journal.commit([RequestRow("b", b"k" * 16, b"r", LATER_NS), *[NoticeRow("b", 1, "k", "m")] * 120], NOW_NS)
    journal.trim({"a": 10}, 100)
    before, batches = journal.load(), read_all(journal, "a")
    journal.close()
    journal = open_sqlite()
    assert not journal.was_created
    assert journal.load() == before
    assert read_all(journal, "a") == batches
    with pytest.raises(ValueError, match="does not follow the last one, 300"):
        journal.commit([batch_row(300, "a")], NOW_NS)
    journal.commit([batch_row(301, "a"), batch_row(1, "b"), NoticeRow("b", 2, "k", "last")], NOW_NS)
    assert positions(journal, "a") == list(range(11, 302))
    assert len(snapshot_of(journal, "b").notices) == 100
    assert snapshot_of(journal, "b").notices[-1].message == "last"


def test_a_fully_trimmed_run_remembers_its_position(open_sqlite: OpenSqlite) -> None:
    journal = open_sqlite()
    journal.commit([run_row(), *batch_rows(1, 5)], NOW_NS)
    journal.trim({"run": 5}, 100)
    before = journal.load()
    journal.close()
    journal = open_sqlite()
    assert journal.load() == before
    assert snapshot_of(journal).last_position == 5
    journal.commit([batch_row(6)], NOW_NS)
    assert positions(journal) == [6]


def test_directory_is_made_for_its_owner_alone(open_sqlite: OpenSqlite, path: Path) -> None:
    open_sqlite()
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_durability_is_checked(path: Path) -> None:
    with pytest.raises(ValueError, match="durability must be 'disk' or 'os', not 'memory'"):
        SqliteJournal(path, "memory")
    assert not path.parent.exists()


def test_a_second_opener_is_refused(open_sqlite: OpenSqlite, path: Path, program: Program) -> None:
    journal = open_sqlite()
    with pytest.raises(JournalError, match=rf"{path.parent}: .* in use by another process \(pid {os.getpid()}\)"):
        open_sqlite()
    source = (
        "import pathlib, sys; from logger_service.journal.sqlite import *; SqliteJournal(pathlib.Path(sys.argv[1]))"
    )
    _, complaint = program(source, path).communicate()
    assert f"JournalError: {path.parent}: the journal is in use by another process (pid {os.getpid()})" in complaint
    journal.commit([run_row()], NOW_NS)
    journal.close()
    assert snapshot_of(open_sqlite()).run == run_row()


def test_a_child_does_not_inherit_the_lock(open_sqlite: OpenSqlite, program: Program) -> None:
    journal = open_sqlite()
    child = program("import sys; print('up', flush=True); sys.stdin.read()")
    assert child.stdout is not None
    assert child.stdout.readline() == "up\n"
    journal.close()
    open_sqlite()
    assert child.poll() is None


def test_a_newer_version_is_refused_and_left_alone(open_sqlite: OpenSqlite, path: Path) -> None:
    open_sqlite().close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {len(STEPS) + 1}")
    connection.close()
    before = path.read_bytes()
    message = f"{path}: the journal is of version {len(STEPS) + 1}; this program reads versions up to {len(STEPS)}"
    with pytest.raises(JournalError) as caught:
        open_sqlite()
    assert message in str(caught.value)
    assert path.read_bytes() == before
    with pytest.raises(JournalError, match="of version"):  # the lock was given up
        open_sqlite()


def test_another_programs_database_is_refused_and_left_alone(open_sqlite: OpenSqlite, path: Path) -> None:
    path.parent.mkdir()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(JournalError, match="a database, but not a journal"):
        open_sqlite()
    assert path.read_bytes() == before


def test_an_older_version_is_migrated_step_by_step(open_sqlite: OpenSqlite, path: Path) -> None:
    journal = open_sqlite()
    journal.commit([run_row()], NOW_NS)
    journal.close()
    newer = (
        *STEPS,
        ("ALTER TABLE tails ADD COLUMN mood TEXT", "UPDATE tails SET mood = ''"),
        ("CREATE TABLE extra (x)",),
    )
    connection = connect_writer(path)
    try:
        migrate(connection, newer)
        assert version_of(connection) == len(STEPS) + 2
        assert connection.execute("SELECT mood FROM tails").fetchall() == []
        assert connection.execute("SELECT x FROM extra").fetchall() == []
        check_version(connection, path, newer)
        with pytest.raises(sqlite3.OperationalError):
            migrate(connection, (*newer, ("CREATE TABLE more (x)", "no such statement")))
        assert version_of(connection) == len(STEPS) + 2
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            connection.execute("SELECT * FROM more")
    finally:
        connection.close()


def test_an_older_copy_put_back_is_what_counts(open_sqlite: OpenSqlite, path: Path) -> None:
    journal = open_sqlite()
    journal.commit([run_row(), *batch_rows(1, 10)], NOW_NS)
    journal.close()
    copy = path.with_name("copy")
    shutil.copy(path, copy)
    journal = open_sqlite()
    journal.commit([*batch_rows(11, 20), run_row("later")], NOW_NS)
    journal.close()
    shutil.copy(copy, path)
    journal = open_sqlite()
    assert [snapshot.run.run_id for snapshot in journal.load()] == ["run"]
    journal.commit([batch_row(11, payload=b"another")], NOW_NS)
    assert positions(journal) == list(range(1, 12))
    assert read_all(journal)[-1].payload == b"another"
    assert list(journal.damaged()) == []


def test_what_cannot_be_opened_is_said_with_its_path(open_sqlite: OpenSqlite, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    with pytest.raises(JournalError, match=rf"{tmp_path}/file.*: the journal cannot be opened: Not a directory"):
        open_sqlite(tmp_path / "file" / "sub" / "journal.db")
    (tmp_path / "journal.db").mkdir()
    with pytest.raises(JournalError, match=rf"{tmp_path}/journal.db: the journal cannot be opened: "):
        open_sqlite(tmp_path / "journal.db")


def test_an_unwritable_directory_is_said_with_its_path(tmp_path: Path, program: Program) -> None:
    (tmp_path / "locked").mkdir(mode=0o555)
    tmp_path.chmod(0o755)
    # Root may write anywhere, so the program becomes nobody, who can reach the directory only from where he is.
    source = """
import os, pathlib, sys
from logger_service.journal.sqlite import SqliteJournal
os.chdir(sys.argv[1])
if os.getuid() == 0:
    os.setuid(65534)
try:
    SqliteJournal(pathlib.Path("locked/journal.db"))
except Exception as error:
    print(type(error).__name__, error)
"""
    output, complaint = program(source, tmp_path).communicate()
    assert output == "JournalError locked/journal.lock: the journal cannot be opened: Permission denied\n", complaint


def test_space_is_given_back(open_sqlite: OpenSqlite, path: Path) -> None:
    journal = open_sqlite(durability="os")
    journal.commit([run_row()], NOW_NS)
    for first in range(1, 2_001, 200):
        journal.commit(batch_rows(first, first + 199, size=20_000), NOW_NS)
    while journal.trim({"run": 2_000}, 300):
        pass
    while journal.trim({"run": 2_000}, 300) or _free_pages(path) > 2_048:
        pass
    journal.close()
    assert path.stat().st_size < 12 << 20


def _free_pages(path: Path) -> int:
    connection = sqlite3.connect(path)
    try:
        (free,) = connection.execute("PRAGMA freelist_count").fetchone()
        return int(free)
    finally:
        connection.close()


def test_a_reader_does_not_hold_up_commits(open_sqlite: OpenSqlite, path: Path) -> None:
    journal = open_sqlite()
    journal.commit([run_row(), *batch_rows(1, 10)], NOW_NS)
    reader = sqlite3.connect(path)
    try:
        rows = reader.execute("SELECT key FROM batches")
        rows.fetchone()  # now it holds a snapshot
        journal.commit([batch_row(11)], NOW_NS)
        assert positions(journal)[-1] == 11
        assert len(rows.fetchall()) == 9
    finally:
        reader.close()


def test_closed_is_closed(open_sqlite: OpenSqlite) -> None:
    journal = open_sqlite()
    journal.commit([run_row()], NOW_NS)
    journal.close()
    journal.close()
    for use in (
        journal.load,
        lambda: journal.commit([], NOW_NS),
        lambda: journal.read("run", 0, 1),
        lambda: journal.trim({}, 1),
    ):
        with pytest.raises(ValueError, match="the journal is closed"):
            use()


def test_threads_may_close_while_others_read(open_sqlite: OpenSqlite) -> None:
    journal = open_sqlite()
    journal.commit([run_row(), *batch_rows(1, 50)], NOW_NS)
    started, refused = threading.Barrier(4), []

    def read_on() -> None:
        started.wait()
        try:
            while True:
                journal.read("run", 0, 1_000)
        except ValueError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=read_on) for _ in range(3)]
    for thread in threads:
        thread.start()
    started.wait()
    journal.close()
    for thread in threads:
        thread.join()
    assert len(refused) == 3
