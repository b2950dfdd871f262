"""The journal in a SQLite database, one per host: one transaction, and one fsync, for all runs of a commit."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from .base import BatchRow, Change, RunSnapshot
from .changes import ChangeSet
from .connections import ReaderPool
from .damage import DamageReport
from .faults import is_damage, os_errors
from .loading import first_expiry, load_snapshots
from .opening import mark_suspect, open_database
from .reading import read_batches
from .runs import RunState
from .tables import position_of
from .trimming import give_back_pages, trim_run


class SqliteJournal:
    """A journal in a file. Only one at a time opens it, in this process or another.

    Args:
        path: The database; made, with its directory, if missing. Beside it stand `-wal`, `-shm` and a `.lock` file.
        durability: `disk`: a commit is on the disk when it returns. `os`: it is with the operating system, and
            survives the process but not the machine; a commit with cursors or counters is on the disk all the same,
            with everything before it.

    Raises:
        JournalError: It is in use, of a newer version, no journal, or its directory cannot be written. What is
            damaged is no reason: what can be read of it is salvaged, and the damaged file set aside.
    """

    def __init__(self, path: Path, durability: str = "disk") -> None:
        if durability not in ("disk", "os"):
            raise ValueError(f"durability must be 'disk' or 'os', not {durability!r}")
        self._path = Path(path)
        self._synced = durability == "disk"
        self._syncing = True
        self._report = DamageReport()
        # Guards the connection that writes and what is known of the runs. Readers do not take it.
        self._lock = threading.Lock()
        self._closed = False
        opened = open_database(self._path, self._report)
        self._was_created = opened.created
        self._file_lock = opened.lock
        self._connection = opened.connection
        self._states = opened.states
        self._next_key = opened.next_key
        self._first_expiry_ns = opened.first_expiry_ns
        self._readers = ReaderPool(self._path)

    @property
    def was_created(self) -> bool:
        """Whether opening it made it: there was none before."""
        return self._was_created

    def load(self) -> list[RunSnapshot]:
        """Returns all runs."""
        with self._lock, self._faults():
            self._check_open()
            return load_snapshots(self._connection, self._states, time.time_ns(), self._report)

    def commit(self, changes: Sequence[Change], now_ns: int) -> None:
        """Applies the changes in one transaction, in order; on return they are durable.

        Raises:
            OSError: Nothing was applied, for example because the disk is full. May be tried again.
            ValueError: Nothing was applied: a batch does not follow its run's last one, or a run is unknown.
        """
        with self._lock:
            pending = ChangeSet(self._states, self._next_key, now_ns)
            pending.add_all(changes)
            with self._transaction(synced=self._synced or pending.must_sync):
                pending.write(self._connection)
                first_expiry_ns = self._expire(pending.first_expiry_ns, now_ns)
            self._states.update(pending.states)
            self._next_key = pending.next_key
            self._first_expiry_ns = first_expiry_ns

    def read(self, run_id: str, after: int, max_bytes: int) -> list[BatchRow]:
        """Returns batches from position `after + 1` on, in order: at least one if any, then up to `max_bytes`."""
        state = self._states.get(run_id)
        if state is None:
            return []
        batches: list[BatchRow] = []
        with self._faults(), self._readers.connection() as connection:
            first, last = max(after + 1, state.first_position), state.last_position
            lost = partial(self._report.add_batches, run_id)
            rows = read_batches(connection, state.key, first, last, lost)
            with contextlib.closing(rows):
                for key, _, writer_id, sequence, _, payload in rows:
                    max_bytes -= len(payload)
                    if max_bytes < 0 and batches:
                        break
                    batches.append(BatchRow(run_id, position_of(key), writer_id, sequence, payload))
        return batches

    def trim(self, upto: Mapping[str, int], max_batches: int) -> int:
        """Deletes at most `max_batches` batches at or before the given position of each run; returns how many.

        Not synced by itself: should the machine die, batches come back that nobody needs.
        """
        with self._lock:
            trimmed: dict[str, RunState] = {}
            left = max_batches
            with self._transaction(synced=False):
                for run_id, position in upto.items():
                    state = self._states.get(run_id)
                    if left > 0 and state is not None and state.first_position <= min(position, state.last_position):
                        count, trimmed[run_id] = trim_run(self._connection, state, position, left)
                        left -= count
            self._states.update(trimmed)
            with self._faults():
                give_back_pages(self._connection)
            return max_batches - left

    def damaged(self) -> Iterable[str]:
        """Says, for the operator, what was found damaged since it was opened."""
        return self._report.texts()

    def close(self) -> None:
        """Closes it. May be called again."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._readers.close()
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
            self._file_lock.release()

    @contextmanager
    def _transaction(self, *, synced: bool) -> Iterator[None]:
        """Runs its body in a transaction: all of it is applied, or nothing."""
        with self._faults():
            self._check_open()
            try:
                self._set_synced(synced)
                self._connection.execute("BEGIN IMMEDIATE")
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    with contextlib.suppress(sqlite3.Error):  # the fault that led here is the one to tell of
                        self._connection.execute("ROLLBACK")
                raise

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError(f"{self._path}: the journal is closed")

    def _expire(self, added_ns: int | None, now_ns: int) -> int | None:
        """Deletes requests that have expired, in the transaction that is open; returns when the next ones do."""
        times = [time_ns for time_ns in (self._first_expiry_ns, added_ns) if time_ns is not None]
        if not times or min(times) > now_ns:
            return min(times, default=None)
        self._connection.execute("DELETE FROM requests WHERE expires_ns <= ?", (now_ns,))
        return first_expiry(self._connection)

    def _set_synced(self, synced: bool) -> None:
        if synced != self._syncing:
            self._connection.execute(f"PRAGMA synchronous = {'FULL' if synced else 'NORMAL'}")
            self._syncing = synced

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """Raises faults of the file as OSError, and has a damaged file salvaged when it is opened next."""
        try:
            with os_errors(self._path):
                yield
        except OSError as error:
            if isinstance(error.__cause__, sqlite3.Error) and is_damage(error.__cause__):
                self._report.add(f"{self._path}: damaged ({error.strerror}); it is salvaged when it is opened next")
                mark_suspect(self._path)
            raise
