"""The schema of the SQLite journal, by version, and the steps from one to the next."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from .base import JournalError

_VERSION_1 = (
    """CREATE TABLE runs (
        key INTEGER PRIMARY KEY, run_id TEXT NOT NULL, namespace TEXT NOT NULL, exp_name TEXT NOT NULL,
        epoch INTEGER NOT NULL, closed INTEGER NOT NULL, created_ns INTEGER NOT NULL, backends TEXT NOT NULL,
        tags TEXT NOT NULL, notes TEXT NOT NULL, crc INTEGER NOT NULL)""",
    """CREATE TABLE tails (
        run INTEGER PRIMARY KEY, last_position INTEGER NOT NULL, last_write_ns INTEGER NOT NULL,
        crc INTEGER NOT NULL)""",
    """CREATE TABLE batches (
        key INTEGER PRIMARY KEY, time_ns INTEGER NOT NULL, writer_id TEXT NOT NULL, sequence INTEGER NOT NULL,
        crc INTEGER NOT NULL, payload BLOB NOT NULL)""",
    """CREATE TABLE writers (
        run INTEGER NOT NULL, writer_id TEXT NOT NULL, epoch INTEGER NOT NULL, status INTEGER NOT NULL,
        last_sequence INTEGER NOT NULL, last_position INTEGER NOT NULL, last_seen_ns INTEGER NOT NULL,
        client TEXT NOT NULL, accepted INTEGER NOT NULL, repeated INTEGER NOT NULL, dropped INTEGER NOT NULL,
        rejected TEXT NOT NULL, crc INTEGER NOT NULL, PRIMARY KEY (run, writer_id)) WITHOUT ROWID""",
    """CREATE TABLE rejections (
        run INTEGER NOT NULL, writer_id TEXT NOT NULL, sequence INTEGER NOT NULL, backend TEXT NOT NULL,
        payload BLOB NOT NULL, crc INTEGER NOT NULL,
        PRIMARY KEY (run, writer_id, sequence, backend)) WITHOUT ROWID""",
    """CREATE TABLE cursors (
        run INTEGER NOT NULL, backend TEXT NOT NULL, position INTEGER NOT NULL, applied INTEGER NOT NULL,
        rejected INTEGER NOT NULL, state TEXT NOT NULL, crc INTEGER NOT NULL,
        PRIMARY KEY (run, backend)) WITHOUT ROWID""",
    """CREATE TABLE lengths (
        run INTEGER NOT NULL, backend TEXT NOT NULL, path TEXT NOT NULL, length INTEGER NOT NULL,
        crc INTEGER NOT NULL, PRIMARY KEY (run, backend, path)) WITHOUT ROWID""",
    """CREATE TABLE counted (
        run INTEGER PRIMARY KEY, position INTEGER NOT NULL, crc INTEGER NOT NULL)""",
    """CREATE TABLE counters (
        run INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, count INTEGER NOT NULL,
        crc INTEGER NOT NULL, PRIMARY KEY (run, kind, name)) WITHOUT ROWID""",
    """CREATE TABLE requests (
        run INTEGER NOT NULL, key BLOB NOT NULL, response BLOB NOT NULL, expires_ns INTEGER NOT NULL,
        crc INTEGER NOT NULL, PRIMARY KEY (run, key)) WITHOUT ROWID""",
    "CREATE INDEX requests_by_expiry ON requests (expires_ns)",
    """CREATE TABLE notices (
        run INTEGER NOT NULL, number INTEGER NOT NULL, time_ns INTEGER NOT NULL, kind TEXT NOT NULL,
        message TEXT NOT NULL, crc INTEGER NOT NULL, PRIMARY KEY (run, number)) WITHOUT ROWID""",
)

STEPS: tuple[Sequence[str], ...] = (_VERSION_1,)
"""The statements that lead from version i to version i + 1. Version 0 is an empty database."""


def version_of(connection: sqlite3.Connection) -> int:
    """Returns the version of a database's schema."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def check_version(connection: sqlite3.Connection, path: Path, steps: Sequence[Sequence[str]] = STEPS) -> None:
    """Refuses what this program cannot read, changing nothing.

    Raises:
        JournalError: It is of a newer version, or of another program.
    """
    version = version_of(connection)
    if version > len(steps):
        raise JournalError(
            f"{path}: the journal is of version {version}; this program reads versions up to {len(steps)}. "
            "Run the program that wrote it, or a newer one"
        )
    if version == 0 and connection.execute("SELECT 1 FROM sqlite_master").fetchone():
        raise JournalError(f"{path}: a database, but not a journal")


def migrate(connection: sqlite3.Connection, steps: Sequence[Sequence[str]] = STEPS) -> None:
    """Brings a database to the newest version, one step after the other, each whole or not at all."""
    for version in range(version_of(connection), len(steps)):
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in steps[version]:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {version + 1}")
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
