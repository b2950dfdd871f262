"""What SQLite's errors mean to a host."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NUMBERS = {
    "database or disk is full": errno.ENOSPC,
    "attempt to write a readonly database": errno.EROFS,
    "database is locked": errno.EBUSY,
    "unable to open database file": errno.EACCES,
}

_DAMAGED = ("malformed", "not a database", "unsupported file format", "no such table", "no such column")


def is_damage(error: sqlite3.Error) -> bool:
    """Returns whether an error says that the file's content is damaged, rather than out of reach."""
    text = str(error).lower()
    return any(part in text for part in _DAMAGED)


def as_os_error(error: sqlite3.Error, path: Path) -> OSError:
    """Returns the OSError that tells of a fault of the file, or of the disk under it."""
    return OSError(_NUMBERS.get(str(error), errno.EIO), str(error), str(path))


@contextmanager
def os_errors(path: Path) -> Iterator[None]:
    """Raises faults of the file as OSError. What is a mistake of this program stays what it is."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise
    except sqlite3.DatabaseError as error:
        raise as_os_error(error, path) from error
