"""The lock on a data directory: one process at a time, however the last one ended."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from logger_service.server.errors import StartError
from logger_service.server.lock import DirectoryLock

HOLDER = """
import sys
from pathlib import Path
from logger_service.server.lock import DirectoryLock
lock = DirectoryLock(Path(sys.argv[1]), "data")
print("locked", flush=True)
sys.stdin.read()
"""


def test_a_second_holder_is_told_who_has_it(tmp_path: Path) -> None:
    said = rf"^the directory is in use by another server \(pid {os.getpid()}\)$"
    with DirectoryLock(tmp_path, "the directory"), pytest.raises(StartError, match=said):
        DirectoryLock(tmp_path, "the directory")
    with DirectoryLock(tmp_path, "the directory"):
        pass


def test_it_ends_with_its_process(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        with pytest.raises(StartError, match=rf"\(pid {process.pid}\)"):
            DirectoryLock(tmp_path, "data")
        process.kill()
        process.wait()
        with DirectoryLock(tmp_path, "data"):
            assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"


def test_a_child_does_not_keep_it(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path, "data")
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, close_fds=False):
        lock.release()
        DirectoryLock(tmp_path, "data").release()
