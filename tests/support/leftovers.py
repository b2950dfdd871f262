"""Finds processes that a test session started and did not end."""

from __future__ import annotations

import os
import secrets
import time
from pathlib import Path

TOKEN = "LOGGER_TESTS_TOKEN"
# They belong to the session's own process and end with it.
_OWN_HELPERS = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")


def mark_descendants() -> None:
    """Marks every process started from here on, through its environment."""
    os.environ[TOKEN] = secrets.token_hex(16)


def find_leftovers(patience_s: float = 5.0) -> list[str]:
    """Returns the command lines of marked processes that still run after `patience_s`; [] as soon as there are none."""
    deadline = time.monotonic() + patience_s
    while (found := _marked()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def _marked() -> list[str]:
    mark = f"{TOKEN}={os.environ[TOKEN]}".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if int(process.name) == os.getpid() or mark not in (process / "environ").read_bytes().split(b"\0"):
                continue
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue  # It ended, or it is not ours.
        if command and not any(helper in command for helper in _OWN_HELPERS):
            found.append(f"{process.name}: {command}")
    return found
