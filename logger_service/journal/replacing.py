"""Puts a salvaged database in the place of the damaged one, so that a crash at any moment loses neither."""

from __future__ import annotations

import os
import time
from pathlib import Path

_CONTENT = ("", "-wal")
"""The files that hold a SQLite database. They belong together: one without the other is another database."""

_PARTS = (*_CONTENT, "-shm")
"""All its files. The last one is an index of the log, made anew when it is missing."""


def beside(path: Path, suffix: str) -> Path:
    """Returns the path of a file beside the database."""
    return path.with_name(path.name + suffix)


def set_aside(path: Path) -> str:
    """Renames a database's files; returns the new name."""
    stamp = time.strftime(".damaged-%Y%m%dT%H%M%SZ", time.gmtime())
    number = 1
    while any(beside(path, f"{stamp}{part}").exists() for part in _CONTENT):
        number += 1
        stamp = f"{stamp.split('~')[0]}~{number}"
    for part in reversed(_CONTENT):  # the database last: as long as it is there, its log is looked for
        file = beside(path, part)
        if file.exists() and file.stat().st_size:
            file.rename(beside(path, f"{stamp}{part}"))
    discard(path)
    return path.name + stamp


def discard(path: Path) -> None:
    """Removes a database's files, as far as there are any."""
    for part in _PARTS:
        beside(path, part).unlink(missing_ok=True)


def replace(path: Path, salvaged: Path) -> str:
    """Puts a complete, closed database in the place of another; returns the name under which that one is now."""
    salvaged.rename(beside(path, ".salvaged"))
    _sync_directory(path)
    return _exchange(path)


def finish_replacing(path: Path) -> None:
    """Ends what a crash interrupted: what was salvaged whole takes its place, what was not goes."""
    discard(beside(path, ".salvaging"))
    if beside(path, ".salvaged").exists():
        _exchange(path)


def _exchange(path: Path) -> str:
    aside = set_aside(path)
    beside(path, ".salvaged").rename(path)
    beside(path, ".suspect").unlink(missing_ok=True)
    _sync_directory(path)
    return aside


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
