"""Applies a run's accepted batches to one backend, in order, and remembers how far it is: its cursor."""

from __future__ import annotations

import json
import logging
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from logger_service.backends import registry
from logger_service.backends.base import Backend, Recovery
from logger_service.hosting.context import HostContext
from logger_service.hosting.pool import Task
from logger_service.hosting.run_log import RunLog
from logger_service.hosting.tail import Accepted
from logger_service.journal.base import CursorRow, RejectionRow
from logger_service.v1 import records_pb2

_log = logging.getLogger(__name__)

_SLICE_BYTES = 1 << 20
_RETRY_FIRST_S = 0.2
_RETRY_MOST_S = 30.0


class Owner(Protocol):
    """Who has a projector: the run, as far as its projectors know it."""

    @property
    def name(self) -> str:
        """What it is called in the log."""
        ...

    @property
    def directory(self) -> Path:
        """Where its files are."""
        ...

    @property
    def is_open(self) -> bool:
        """Whether its backends are to get on."""
        ...

    def got_on(self) -> None:
        """A projector has written more."""
        ...

    def checkpointed(self) -> None:
        """A projector's checkpoint is durable."""
        ...

    def missing(self, first: int, last: int) -> None:
        """The journal lost the batches of these positions."""
        ...

    def recovered(self, found: Recovery, *, adopted: bool) -> int:
        """Takes over what a recovery found.

        Returns:
            How many points the files hold that no writer of this journal wrote.
        """
        ...

    def refused(self, writer_id: str, told: records_pb2.BatchRejections) -> None:
        """A backend refused records for good, and the journal knows it."""
        ...


@dataclass(frozen=True, slots=True)
class _Slice:
    """What is applied and not yet written."""

    position: int
    size: int
    points: int
    refused: int


class Projector:
    """One backend of one run. Its steps run in the host's pool, one at a time.

    Args:
        context: What all runs share.
        owner: The run.
        log: What it has accepted.
        type: The backend's type.
        options: Its options.
        cursor: Where the journal has it; None: it has not.
        is_whole: Whether the journal has all that it should have of the run; else files are not taken at its word.
    """

    def __init__(
        self,
        context: HostContext,
        owner: Owner,
        log: RunLog,
        type: str,
        options: dict[str, Any],
        cursor: CursorRow | None,
        is_whole: bool,
    ) -> None:
        self.type = type
        self.options = options
        self.task = Task(self._step)
        self.applied = cursor.position if cursor else 0
        """The position up to which everything is written."""
        self.applied_points = cursor.applied if cursor else 0
        self.rejected_points = cursor.rejected if cursor else 0
        self.applied_bytes = 0
        """Of payloads, since the host started."""
        self.problem = ""
        """Why it does not get on, for the user; empty: it does."""
        self.checkpointed = self.applied
        """The position up to which everything is fsynced and the journal knows it."""
        self._context = context
        self._owner = owner
        self._log = log
        self._busy = threading.RLock()
        self._backend: Backend | None = None
        self._lengths: dict[str, int] = dict(cursor.lengths) if cursor else {}
        self._state: dict[str, Any] = json.loads(cursor.state) if cursor else {}
        self._committed_points = (self.applied_points, self.rejected_points)
        self._unwritten: _Slice | None = None
        self._is_behind = False
        self._is_whole = is_whole
        self._written_bytes = 0
        self._oldest_write = 0.0
        self._retry_s = _RETRY_FIRST_S

    # Opening and closing

    def recover(self, run_dir: Path, *, adopt: bool) -> None:
        """Opens the backend as of its last checkpoint, applies what follows it again, and ends with a checkpoint.

        Args:
            run_dir: The run's directory.
            adopt: The journal does not know the directory's files: they are continued as they are.
        """
        with self._busy:
            self._close_backend()
            self._unwritten = None
            self._is_behind = False
            with self._log.lock:
                upto, bytes_upto = self._log.committed, self._log.accepted_bytes
                position, lengths, state = self.checkpointed, dict(self._lengths), self._state
                self.applied_points, self.rejected_points = self._committed_points
            backend = registry.backend_class(self.type)(
                str(run_dir), self.options, lengths=None if adopt else lengths, state=state
            )
            try:
                replayed = 0 if adopt else self._replay(backend, position, upto)
                found = backend.end_recovery()
            except BaseException:
                backend.close()  # what is half recovered is not gone on with: it is begun again
                raise
            self._backend = backend
            self.applied, self.applied_bytes = upto, bytes_upto
            self.applied_points += self._owner.recovered(found, adopted=adopt)
            if adopt or replayed or not self._is_whole or found.kept or found.mended or found.short:
                self._commit_checkpoint(wait=True)
            self._is_whole = True

    def _replay(self, backend: Backend, position: int, upto: int) -> int:
        """Applies and writes what follows a checkpoint; returns how many batches that is."""
        if not self._is_whole:
            backend.note_gap()
        begin = position
        while position < upto:
            batches = self._log.read_back(position, _SLICE_BYTES)
            if not batches:
                self._owner.missing(position + 1, upto)
                break
            for accepted in batches:
                if accepted.position != position + 1:
                    self._owner.missing(position + 1, accepted.position - 1)
                    backend.note_gap()
                self._count(*self._apply(backend, accepted))
                position = accepted.position
            backend.write()
        return upto - begin

    def finish(self) -> None:
        """Applies all there is, fsyncs it, commits the cursor and closes the backend.

        Raises:
            Exception: It cannot be done at present. The backend is as it was.
        """
        with self._busy:
            if self._is_behind or (self._backend is None and self.applied < self._log.committed):
                self.recover(self._owner.directory, adopt=False)
            if self._backend is None:
                return
            while self._unwritten is not None or self.applied < self._log.committed:
                self._slice(self._backend)
            if self._oldest_write:
                self._commit_checkpoint(wait=True)
            self._close_backend()

    def _close_backend(self) -> None:
        if self._backend is not None:
            backend, self._backend = self._backend, None
            backend.close()

    # Getting on

    def _step(self) -> float | None:
        with self._busy:
            try:
                return self._get_on()
            except Exception as error:  # a failing backend must not stop the others: it is tried again
                delay, self._retry_s = self._retry_s, min(self._retry_s * 2, _RETRY_MOST_S)
                if not self.problem:
                    _log.exception("backend %s of run %s failed; trying again", self.type, self._owner.name)
                self.problem = (
                    f"{self.type} fails at present ({type(error).__name__}); what was accepted is kept and tried again"
                )
                return delay

    def _get_on(self) -> float | None:
        if not self._owner.is_open:
            return None
        if self._is_behind:
            self._close_backend()
        if self._backend is None:
            self.recover(self._owner.directory, adopt=False)
            self._owner.got_on()
        assert self._backend is not None
        if self._unwritten is not None or self.applied < self._log.committed:
            self._slice(self._backend)
            self._owner.got_on()
        if self.problem:
            _log.warning("backend %s of run %s works again", self.type, self._owner.name)
            self.problem = ""
        self._retry_s = _RETRY_FIRST_S
        if self.applied < self._log.committed:
            return 0.0
        return self._checkpoint_when_due()

    def _slice(self, backend: Backend) -> None:
        """Applies and writes at most a slice."""
        if self._unwritten is None:
            committed = self._log.committed
            batches = self._log.after(self.applied, _SLICE_BYTES)
            position, points, refused = self.applied, 0, 0
            try:
                for accepted in batches:
                    if accepted.position != position + 1:
                        self._owner.missing(position + 1, accepted.position - 1)
                    position = accepted.position
                    taken, not_taken = self._apply(backend, accepted)
                    points, refused = points + taken, refused + not_taken
            except Exception:
                self._close_backend()  # half a slice may be in its buffers: it is opened again as of its checkpoint
                raise
            if not batches and position < committed:
                self._owner.missing(position + 1, committed)
                position = committed
            self._oldest_write = self._oldest_write or time.monotonic()
            self._unwritten = _Slice(position, sum(accepted.size for accepted in batches), points, refused)
        backend.write()  # if it fails, its buffers hold what is left, and the next step goes on with them
        written, self._unwritten = self._unwritten, None
        self.applied = written.position
        self.applied_bytes += written.size
        self._written_bytes += written.size
        self._count(written.points, written.refused)

    def _count(self, points: int, refused: int) -> None:
        self.applied_points += points
        self.rejected_points += refused

    def _apply(self, backend: Backend, accepted: Accepted) -> tuple[int, int]:
        """Has the backend take a batch; returns how many points it took, and how many it refused for good."""
        rejections = backend.apply(accepted.batch)
        refused = sum(rejection.points for rejection in rejections)
        if rejections:
            self._report(accepted, rejections)
        return accepted.points - refused, refused

    def _report(self, accepted: Accepted, rejections: list[records_pb2.Rejection]) -> None:
        told = records_pb2.BatchRejections(sequence=accepted.sequence, rejections=rejections, backend=self.type)
        row = RejectionRow(self._log.run_id, accepted.writer_id, accepted.sequence, self.type, told.SerializeToString())
        self._context.committer.submit([row], lambda _: self._owner.refused(accepted.writer_id, told))

    # Checkpoints

    def _checkpoint_when_due(self) -> float | None:
        if not self._oldest_write:
            return None
        settings = self._context.settings
        left = self._oldest_write + settings.checkpoint_after_s - time.monotonic()
        if left <= 0 or self._written_bytes >= settings.checkpoint_after_bytes:
            self._commit_checkpoint(wait=False)
            return None
        return left

    def _commit_checkpoint(self, *, wait: bool) -> None:
        assert self._backend is not None
        checkpoint = self._backend.checkpoint()
        self._written_bytes, self._oldest_write = 0, 0.0
        position, counted = self.applied, (self.applied_points, self.rejected_points)
        state = dict(checkpoint.state)
        row = CursorRow(self._log.run_id, self.type, position, *counted, json.dumps(state), dict(checkpoint.lengths))

        durable = threading.Event()
        faults: list[Exception] = []

        def committed(fault: Exception | None) -> None:
            if fault is not None:
                # The next step opens the backend again, as of the checkpoint before.
                self._is_behind = True
                faults.append(fault)
            else:
                # Together, and not before: a backend that is opened again meanwhile goes on from one checkpoint.
                with self._log.lock:
                    self._lengths.update(checkpoint.lengths)
                    self._state, self._committed_points, self.checkpointed = state, counted, position
                self._owner.checkpointed()
            durable.set()

        self._log.submit_with_counters([row], committed)
        if wait:
            self._context.committer.wait(durable)
            if faults:
                raise faults[0]
