"""Opens the journal's database: locks it, looks whether it is whole, salvages it if not, brings it up to date."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from . import tables
from .base import JournalError
from .connections import connect_reader, connect_writer
from .damage import DamageReport
from .faults import as_os_error, is_damage
from .loading import first_expiry, load_states, next_run_key
from .lock import JournalLock
from .pages import PAGE_BYTES
from .replacing import beside, finish_replacing, replace, set_aside
from .runs import RunState
from .salvage import salvage
from .schema import STEPS, check_version, migrate, version_of


@dataclass(frozen=True)
class Opened:
    """A database that is ready to be written to."""

    lock: JournalLock
    connection: sqlite3.Connection
    created: bool
    """Whether there was none before."""
    states: dict[str, RunState]
    next_key: int
    """The integer key of the next new run."""
    first_expiry_ns: int | None
    """When the first request expires; None: there is none."""


def open_database(path: Path, report: DamageReport) -> Opened:
    """Opens, or makes, a journal's database.

    Raises:
        JournalError: It is in use, of a newer version, no journal, or its directory cannot be written.
    """
    lock: JournalLock | None = None
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = JournalLock(path.with_suffix(".lock"))
        created = _make_whole(path, report)
        connection = connect_writer(path)
        try:
            created = created or version_of(connection) == 0  # or it was being made, and never was used
            migrate(connection)
            states = load_states(connection, report)
            opened = Opened(lock, connection, created, states, next_run_key(connection), first_expiry(connection))
        except BaseException:
            connection.close()
            raise
        return opened
    except BaseException as error:
        if lock is not None:
            lock.release()
        if isinstance(error, sqlite3.DatabaseError):
            error = as_os_error(error, path)
        if isinstance(error, OSError):
            where = error.filename or path
            raise JournalError(f"{where}: the journal cannot be opened: {error.strerror or error}") from error
        raise


def mark_suspect(path: Path) -> None:
    """Has the database salvaged when it is opened next: what was found damaged while in use may look whole then."""
    try:
        beside(path, ".suspect").touch()
    except OSError:
        return  # a disk that takes no file now; the damage is found again


def _make_whole(path: Path, report: DamageReport) -> bool:
    """Sees to it that there is either a whole database or none; returns whether there is none."""
    finish_replacing(path)
    log = beside(path, "-wal")
    if not path.exists():
        if log.exists() and log.stat().st_size:
            aside = set_aside(path)
            report.add(f"{path}: the journal is gone but for its write-ahead log, which was set aside as {aside}-wal")
        return True
    if path.stat().st_size == 0 and not (log.exists() and log.stat().st_size):
        return True
    damage = _find_damage(path)
    if damage is None:
        return False
    salvaged = beside(path, ".salvaging")
    summary = salvage(path, salvaged, report)
    aside = replace(path, salvaged)
    report.add(f"{path}: the journal was damaged ({damage}) and is set aside as {aside}; {summary}")
    return False


def _find_damage(path: Path) -> str | None:
    """Returns what is wrong with a database that must be salvaged. Changes nothing.

    Looks at all of the small tables and at the tree of the batches; a payload is looked at when it is read.
    """
    if beside(path, ".suspect").exists():
        return "as was found while it was in use"
    if path.stat().st_size < PAGE_BYTES:
        return "it is shorter than a page"  # SQLite takes what is very short for new
    connection = connect_reader(path)
    try:
        check_version(connection, path)
        if version_of(connection) == len(STEPS):
            for table in (tables.RUNS, *tables.OF_A_RUN):
                (finding,) = connection.execute(f"PRAGMA quick_check({table.name})").fetchone()
                if finding != "ok":
                    return str(finding)
            load_states(connection, DamageReport(silent=True))
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return str(error)
    finally:
        connection.close()
    return None
