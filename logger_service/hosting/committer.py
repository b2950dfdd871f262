"""One thread that commits what all runs accepted, as many at once as there are: the group commit.

What was submitted is never given up while the host lives: a commit that fails (a full disk) is tried again until it
succeeds, so that the state in memory never has to be taken back. Nothing is acknowledged meanwhile.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

from logger_service.journal.base import BatchRow, Change, Journal

_log = logging.getLogger(__name__)

_GROUP_BYTES = 8 << 20
_GROUP_CHANGES = 8192
_TRIM_BATCHES = 1000
_GROUPS_PER_TRIM = 32
_LOOK_S = 0.25
_RETRY_FIRST_S = 0.05
_RETRY_MOST_S = 2.0

Done: TypeAlias = "Callable[[Exception | None], None]"
"""Called with None once all is durable, or with the fault for which the journal will never take it."""


class Owner(Protocol):
    """Whom a commit is told to, once for all that it had in it: a lock taken for each costs more than the batch."""

    def durable(self, notes: list[Any]) -> None:
        """What was submitted with these notes is durable. Called on the committer's thread, in their order."""
        ...

    def lost(self, note: Any, fault: Exception) -> None:
        """The journal will never take what was submitted with this note: a fault of the host."""
        ...


class Committer:
    """Commits to a journal.

    Args:
        journal: The journal. From now on only this object commits to it and trims it.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._queue: deque[_Item] = deque()
        self._trims: dict[str, int] = {}
        self._wake = threading.Condition()
        self._closing = False
        self._broken: dict[str, Exception] = {}
        self._failing = False
        self.ending = False
        """Whether those who wait give up when the journal cannot be written."""
        self.commits = 0
        """How many transactions were committed."""
        self._thread = threading.Thread(target=self._work, name="journal-committer", daemon=True)
        self._thread.start()

    @property
    def failing(self) -> bool:
        """Whether the last attempt to commit failed."""
        return self._failing

    def submit(self, changes: Sequence[Change], done: Done | None = None) -> None:
        """Queues changes; `done` is called, on the committer's thread after owners were told, once all is durable."""
        self._put((changes, None, done))

    def submit_for(self, owner: Owner, changes: Sequence[Change], note: Any) -> None:
        """Queues changes; `owner.durable` is given the note once they are durable."""
        self._put((changes, owner, note))

    def commit(self, changes: Sequence[Change]) -> None:
        """Submits changes and waits until they are durable.

        Raises:
            OSError: The journal cannot be written, and the host is ending. They are still queued.
            Exception: The journal will never take them: a fault of the host.
        """
        durable = threading.Event()
        faults: list[Exception] = []

        def done(fault: Exception | None) -> None:
            if fault is not None:
                faults.append(fault)
            durable.set()

        self.submit(changes, done)
        self.wait(durable)
        if faults:
            raise faults[0]

    def wait(self, durable: threading.Event) -> None:
        """Waits for an event that a commit sets.

        Raises:
            OSError: As `commit`.
        """
        while not durable.wait(_LOOK_S):
            if self.ending and self._failing:
                raise OSError("the journal cannot be written")

    def _put(self, item: _Item) -> None:
        with self._wake:
            self._queue.append(item)
            if len(self._queue) == 1:
                self._wake.notify()

    def trim(self, run_id: str, upto: int) -> None:
        """Asks to delete, when there is time, the run's batches up to a position."""
        with self._wake:
            self._trims[run_id] = max(upto, self._trims.get(run_id, 0))
            self._wake.notify()

    def close(self) -> None:
        """Commits what is queued and ends. What cannot be committed is given up, unacknowledged."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join()

    def _work(self) -> None:
        groups = 0
        while True:
            with self._wake:
                while not (self._queue or self._trims or self._closing):
                    self._wake.wait()
                group = self._take_group()
                if not group and self._closing:
                    return
            if group and not self._commit_group(group):
                return
            groups += 1
            # Trimming waits for quiet, but not for ever.
            if self._trims and (not group or groups % _GROUPS_PER_TRIM == 0):
                self._trim_slice()

    def _take_group(self) -> list[_Item]:
        group: list[_Item] = []
        size = count = 0
        while self._queue and size < _GROUP_BYTES and count < _GROUP_CHANGES:
            item = self._queue.popleft()
            group.append(item)
            count += len(item[0])
            for change in item[0]:
                if type(change) is BatchRow:
                    size += len(change.payload)
        return group

    def _commit_group(self, group: list[_Item]) -> bool:
        """Commits a group, and tells it; False: it was given up, since the host is ending."""
        if self._broken:
            group = self._without_broken(group)
        try:
            if not self._commit([change for item, _, _ in group for change in item]):
                return False
        except Exception as fault:
            if len(group) > 1:
                # It is the fault of one of them, which must not be that of the others.
                return all(self._commit_group([item]) for item in group)
            _log.exception("the journal refuses what the host asks of it")
            self._broken.update((change.run_id, fault) for change in group[0][0])
            _tell_lost(group[0], fault)
        else:
            _tell(group)
        return True

    def _without_broken(self, group: list[_Item]) -> list[_Item]:
        """Refuses what belongs to runs of which something was refused before: it makes no sense without that."""
        kept: list[_Item] = []
        for item in group:
            fault = next((self._broken[change.run_id] for change in item[0] if change.run_id in self._broken), None)
            if fault is None:
                kept.append(item)
            else:
                _tell_lost(item, fault)
        return kept

    def _commit(self, changes: list[Change]) -> bool:
        delay = _RETRY_FIRST_S
        while changes:
            try:
                self._journal.commit(changes, time.time_ns())
                self.commits += 1
                break
            except OSError as error:
                if not self._failing:
                    _log.error("the journal cannot be written; trying again: %s", error)
                self._failing = True
                if self._closing:
                    _log.error("gave up %d unacknowledged changes: the journal cannot be written", len(changes))
                    return False
                time.sleep(delay)
                delay = min(delay * 2, _RETRY_MOST_S)
        if self._failing:
            self._failing = False
            _log.warning("the journal can be written again")
        return True

    def _trim_slice(self) -> None:
        with self._wake:
            trims = dict(self._trims)
        try:
            trimmed = self._journal.trim(trims, _TRIM_BATCHES)
        except Exception as error:  # space is not freed now: later trims do it
            _log.warning("the journal cannot be trimmed: %s", error)
            trimmed = 0
        if trimmed < _TRIM_BATCHES:
            with self._wake:
                for run_id, upto in trims.items():
                    if self._trims.get(run_id) == upto:
                        del self._trims[run_id]


_Item: TypeAlias = "tuple[Sequence[Change], Owner | None, Any]"
"""Changes, and an owner with its note or no owner with a callback."""


def _tell(group: list[_Item]) -> None:
    notes: dict[Owner, list[Any]] = {}
    dones: list[Done] = []
    for _, owner, note in group:
        if owner is not None:
            notes.setdefault(owner, []).append(note)
        elif note is not None:
            dones.append(note)
    for owner, told in notes.items():
        try:
            owner.durable(told)
        except Exception:  # the fault of one run must not stop the commits of the others
            _log.exception("a commit could not be told")
    for done in dones:
        try:
            done(None)
        except Exception:
            _log.exception("a commit could not be told")


def _tell_lost(item: _Item, fault: Exception) -> None:
    _, owner, note = item
    try:
        if owner is not None:
            owner.lost(note, fault)
        elif note is not None:
            note(fault)
    except Exception:
        _log.exception("a commit could not be told")
