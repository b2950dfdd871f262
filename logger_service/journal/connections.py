"""Connections to the journal's database: one that writes, a few that read beside it."""

from __future__ import annotations

import queue
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from .tables import STATEMENTS

_CHECKPOINT_PAGES = 4_000
"""Pages in the write-ahead log before they are copied into the database (16 MiB). Each copying costs three more fsyncs
and writes a page once that was written many times, so a small number costs much and a large one only disk."""

_LOG_BYTES_KEPT = 64 << 20
"""What stays of a write-ahead log that once grew longer, because a reader held it or the disk was slow."""

_WRITER_CACHE_KIB = 16 << 10


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file:{quote(str(path.absolute()))}?mode={mode}",
        uri=True,
        timeout=5.0,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=STATEMENTS,
    )
    # Text of a damaged row may be no UTF-8. It is read as something, and its checksum tells.
    connection.text_factory = lambda data: str(data, "utf-8", "replace")
    return connection


def connect_writer(path: Path) -> sqlite3.Connection:
    """Opens, or makes, the database for writing: syncing each commit, giving pages back only when told to."""
    connection = _connect(path, "rwc")
    try:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # has to stand before the first page is written
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES_KEPT}")
        connection.execute(f"PRAGMA cache_size = {-_WRITER_CACHE_KIB}")
        connection.execute("PRAGMA secure_delete = OFF")  # on in some builds: trimming would write every page once more
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def connect_reader(path: Path) -> sqlite3.Connection:
    """Opens the database for reading; never changes it."""
    return _connect(path, "ro")


class ReaderPool:
    """Connections for reading, each used by one thread at a time, made when needed and kept.

    Args:
        path: The database.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._idle: queue.LifoQueue[sqlite3.Connection] = queue.LifoQueue()
        self._closed = False

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """Lends a connection."""
        if self._closed:
            raise ValueError(f"{self._path}: the journal is closed")
        try:
            connection = self._idle.get_nowait()
        except queue.Empty:
            connection = connect_reader(self._path)
        try:
            yield connection
        finally:
            self._idle.put(connection)
            if self._closed:
                self.close()

    def close(self) -> None:
        """Closes those that are idle; the others are closed when they come back."""
        self._closed = True
        while True:
            try:
                self._idle.get_nowait().close()
            except queue.Empty:
                return
