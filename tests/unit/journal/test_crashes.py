"""The SQLite journal in processes of their own: killed, with a full disk, and watched at its system calls."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from logger_service.journal.sqlite import SqliteJournal
from tests.support.strace import strace_command

from .conftest import Program
from .rows import payload_of, positions, read_all, snapshot_of

OpenSqlite = Callable[..., SqliteJournal]

_COMMIT_FOR_EVER = """
import pathlib, sys
from logger_service.journal.sqlite import SqliteJournal
from tests.unit.journal.rows import *
journal = SqliteJournal(pathlib.Path(sys.argv[1]), sys.argv[2])
if journal.was_created:
    journal.commit([run_row()], NOW_NS)
position = snapshot_of(journal).last_position
while True:
    position += 1
    journal.commit([batch_row(position), writer_row(sequence=position, position=position)], NOW_NS)
    print(position, flush=True)
    if position % 50 == 0:
        journal.trim({"run": position - 100}, 30)
"""


@pytest.mark.parametrize("durability", ["disk", "os"])
def test_a_killed_process_loses_nothing_it_committed(
    open_sqlite: OpenSqlite, path: Path, program: Program, durability: str
) -> None:
    last = 0
    for lines in (1, 150, 77, 400):
        process = program(_COMMIT_FOR_EVER, path, durability)
        assert process.stdout is not None
        for _ in range(lines):
            last = int(process.stdout.readline())
        process.kill()
        told = process.stdout.read().rpartition("\n")[0]
        last = int(told.split()[-1]) if told else last
        journal = open_sqlite()
        snapshot = snapshot_of(journal)
        assert snapshot.last_position in (last, last + 1)  # the one after may have been committed and not yet told
        assert snapshot.writers[0].last_sequence == snapshot.last_position
        assert positions(journal) == list(range(snapshot.first_position, snapshot.last_position + 1))
        assert all(batch.payload == payload_of(batch.position) for batch in read_all(journal))
        assert list(journal.damaged()) == []
        journal.close()


_FILL_THE_DISK = """
import errno, pathlib, resource, sys
from logger_service.journal.sqlite import SqliteJournal
from tests.unit.journal.rows import *
path = pathlib.Path(sys.argv[1])
journal = SqliteJournal(path)
journal.commit([run_row(), run_row("other")], NOW_NS)
size = max(file.stat().st_size for file in path.parent.iterdir())
unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100_000, unlimited[1]))
position = 0
try:
    while True:
        changes = [*batch_rows(position + 1, position + 10, size=3_000)]
        changes += batch_rows(position + 1, position + 10, "other")
        changes.append(writer_row(sequence=position + 10, position=position + 10))
        journal.commit(changes, NOW_NS)
        position += 10
except OSError as error:
    assert error.errno in (errno.ENOSPC, errno.EIO), error
    assert error.filename == str(path), error
assert position > 0
for _ in range(3):
    try:
        journal.commit(changes, NOW_NS)
    except OSError:
        pass
    else:
        raise AssertionError("a commit went to a full disk")
for run_id in ("run", "other"):
    assert positions(journal, run_id) == list(range(1, position + 1))
    assert snapshot_of(journal, run_id).last_position == position
assert snapshot_of(journal).writers[0].last_sequence == position
resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
journal.commit(changes, NOW_NS)
assert list(journal.damaged()) == [], journal.damaged()
print(position + 10)
"""


def test_a_full_disk_applies_nothing_and_passes(open_sqlite: OpenSqlite, path: Path, program: Program) -> None:
    output, complaint = program(_FILL_THE_DISK, path).communicate()
    assert complaint == ""
    journal = open_sqlite()
    for run_id in ("run", "other"):
        assert positions(journal, run_id) == list(range(1, int(output) + 1))
    assert list(journal.damaged()) == []


_OPEN_ON_A_FULL_DISK = """
import pathlib, resource, sys
from logger_service.journal.sqlite import SqliteJournal
resource.setrlimit(resource.RLIMIT_FSIZE, (8_192, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
try:
    SqliteJournal(pathlib.Path(sys.argv[1]))
except Exception as error:
    print(type(error).__name__, error)
"""


def test_a_full_disk_is_said_when_opening(open_sqlite: OpenSqlite, path: Path, program: Program) -> None:
    output, complaint = program(_OPEN_ON_A_FULL_DISK, path).communicate()
    assert re.match(rf"JournalError {path}: the journal cannot be opened: (disk I/O error|.* is full)", output), (
        complaint
    )
    assert open_sqlite().load() == []  # what it left behind is in nobody's way


_COMMIT_WATCHED = """
import os, pathlib, sys
from logger_service.journal.base import CounterRows, CursorRow
from logger_service.journal.sqlite import SqliteJournal
from tests.unit.journal.rows import *

def watched(changes):
    os.getppid()  # a call that the trace has and nothing else makes
    journal.commit(changes, NOW_NS)

runs = [f"run-{number}" for number in range(500)]
journal = SqliteJournal(pathlib.Path(sys.argv[1]), sys.argv[2])
journal.commit([run_row(run_id) for run_id in runs], NOW_NS)
watched([change for run_id in runs for change in (batch_row(1, run_id), writer_row(run_id, sequence=1, position=1))])
watched([batch_row(2, runs[0])])
watched([CursorRow(runs[0], "csv", 1, 1, 0, "{}", {"x": 1})])
watched([CounterRows(runs[0], 1, {("metrics", "x"): 1})])
watched([batch_row(3, runs[0])])
os.getppid()
journal.trim({runs[0]: 2}, 10)
os.getppid()
"""


@pytest.mark.parametrize(("durability", "syncs"), [("disk", [1, 1, 1, 1, 1, 0]), ("os", [0, 0, 1, 1, 0, 0])])
def test_one_commit_is_one_fsync(
    path: Path, tmp_path: Path, program: Program, durability: str, syncs: list[int]
) -> None:
    trace = tmp_path / "trace"
    prefix = strace_command(trace, "fsync,fdatasync,getppid")
    process: subprocess.Popen[str] = program(_COMMIT_WATCHED, path, durability, prefix=prefix)
    _, complaint = process.communicate()
    assert process.returncode == 0, complaint
    parts = trace.read_text().split("getppid(")[1:-1]
    assert [len(re.findall(r"\bf(?:data)?sync\(", part)) for part in parts] == syncs
