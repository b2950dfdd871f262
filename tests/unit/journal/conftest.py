"""The journals under test, and programs that use one in a process of their own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from logger_service.journal.base import Journal
from logger_service.journal.memory import MemoryJournal
from logger_service.journal.sqlite import SqliteJournal

Program = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a test's database is."""
    return tmp_path / "host" / "journal.db"


@pytest.fixture(params=["sqlite", "memory"])
def journal(request: pytest.FixtureRequest, path: Path) -> Iterator[Journal]:
    """Each journal there is, empty."""
    opened: Journal = SqliteJournal(path) if request.param == "sqlite" else MemoryJournal()
    yield opened
    opened.close()


@pytest.fixture
def open_sqlite(path: Path) -> Iterator[Callable[..., SqliteJournal]]:
    """Opens the test's database; closes at the end what the test did not."""
    opened: list[SqliteJournal] = []

    def open_one(at: Path = path, durability: str = "disk") -> SqliteJournal:
        opened.append(SqliteJournal(at, durability))
        return opened[-1]

    yield open_one
    for journal in opened:
        journal.close()


@pytest.fixture
def program() -> Iterator[Program]:
    """Starts a Python program with arguments, behind a prefix such as strace; ends it with the test."""
    started: list[subprocess.Popen[str]] = []

    def start(source: str, *arguments: object, prefix: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        command = [*prefix, sys.executable, "-c", source, *map(str, arguments)]
        started.append(
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()
