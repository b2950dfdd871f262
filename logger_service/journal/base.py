"""What a host needs of a journal. No caller knows which database is behind it.

A journal holds, for each run, its accepted batches by position (1, 2, 3 …, given by the host) and the small state
that belongs to them: writers, cursors, counters, answers to keep. The host changes it through `commit` alone: one
transaction with everything that several runs have to say, durable when it returns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run. Writing it again replaces it."""

    run_id: str
    namespace: str
    exp_name: str
    epoch: int
    closed: bool
    """Ended with CloseRun."""
    created_ns: int
    backends: str
    """The backend specs, as JSON."""
    tags: str
    """Tags, as a JSON object."""
    notes: str


@dataclass(frozen=True, slots=True)
class WriterRow:
    """A writer and what it has sent so far. Writing it again replaces it."""

    run_id: str
    writer_id: str
    epoch: int
    status: int
    """A `WriterStatus` of the contract."""
    last_sequence: int
    """The last sequence accepted; 0: none."""
    last_position: int
    """Where the batch of `last_sequence` stands; 0: none."""
    last_seen_ns: int
    client: str
    accepted: int
    """Points, as are the following."""
    repeated: int
    dropped: int
    rejected: str
    """Points by name of reason, as a JSON object."""


@dataclass(frozen=True, slots=True)
class BatchRow:
    """An accepted batch. Its position must be the successor of the run's last one, or the commit fails."""

    run_id: str
    position: int
    writer_id: str
    sequence: int
    payload: bytes
    """A serialized `Batch` of the contract, automatic steps filled in, rejected records removed."""


@dataclass(frozen=True, slots=True)
class RejectionRow:
    """The rejections of one batch, kept until `ForgetRejections`. Written again: replaced."""

    run_id: str
    writer_id: str
    sequence: int
    backend: str
    """Empty: refused at acceptance."""
    payload: bytes
    """A serialized `BatchRejections` of the contract."""


@dataclass(frozen=True, slots=True)
class ForgetRejections:
    """The writer has seen the rejections of all its sequences before `before`."""

    run_id: str
    writer_id: str
    before: int


@dataclass(frozen=True, slots=True)
class CursorRow:
    """How far a backend of a run is, fsynced. Writing it again replaces it, but for `lengths`, which are merged."""

    run_id: str
    backend: str
    position: int
    applied: int
    """Points."""
    rejected: int
    """Points."""
    state: str
    """What the backend needs to go on from here, as JSON."""
    lengths: Mapping[str, int]
    """Length in bytes by path, relative to the run's directory, of the files that changed since the last one."""


@dataclass(frozen=True, slots=True)
class CounterRows:
    """Rows accepted by (kind, name), as of `position`. Merged into what the run has."""

    run_id: str
    position: int
    counts: Mapping[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class RequestRow:
    """The answer to a call with a `request_id`, kept until `expires_ns`."""

    run_id: str
    key: bytes
    """16 bytes: a hash of the method and the `request_id`."""
    response: bytes
    expires_ns: int


@dataclass(frozen=True, slots=True)
class NoticeRow:
    """Something that happened to a run. The newest 100 of each run are kept."""

    run_id: str
    time_ns: int
    kind: str
    message: str


Change: TypeAlias = (
    RunRow | WriterRow | BatchRow | RejectionRow | ForgetRejections | CursorRow | CounterRows | RequestRow | NoticeRow
)


@dataclass(slots=True)
class RunSnapshot:
    """Everything a journal holds of a run, but for its batches."""

    run: RunRow
    is_whole: bool = True
    """Whether no row of it was left out as damaged."""
    last_position: int = 0
    """The position of the last batch ever appended, trimmed or not."""
    first_position: int = 1
    """The position of the first batch still held; `last_position + 1` if none is."""
    held_bytes: int = 0
    """The size of the payloads still held."""
    last_write_ns: int = 0
    """When the last batch was appended; 0: never."""
    writers: list[WriterRow] = field(default_factory=list)
    cursors: list[CursorRow] = field(default_factory=list)
    """With all `lengths`."""
    counters: CounterRows | None = None
    rejections: list[RejectionRow] = field(default_factory=list)
    requests: list[RequestRow] = field(default_factory=list)
    """Those that have not expired."""
    notices: list[NoticeRow] = field(default_factory=list)
    """Oldest first."""


class JournalError(Exception):
    """The journal cannot be opened: locked, of a newer version, or not writable. The text is for the operator."""


class Journal(Protocol):
    """A journal. `commit` is called by one thread; the others may be called by any."""

    @property
    def was_created(self) -> bool:
        """Whether opening it made it: there was none before."""
        ...

    def load(self) -> list[RunSnapshot]:
        """Returns all runs."""
        ...

    def commit(self, changes: Sequence[Change], now_ns: int) -> None:
        """Applies the changes in one transaction, in order; on return they are durable.

        Args:
            changes: The changes.
            now_ns: The time, for `last_write_ns` and to expire requests.

        Raises:
            OSError: Nothing was applied, for example because the disk is full. May be tried again.
        """
        ...

    def read(self, run_id: str, after: int, max_bytes: int) -> list[BatchRow]:
        """Returns batches from position `after + 1` on, in order: at least one if there is one, then up to `max_bytes`.

        A batch whose checksum does not fit is left out (so positions may have gaps) and named in the log, once.
        """
        ...

    def trim(self, upto: Mapping[str, int], max_batches: int) -> int:
        """Deletes at most `max_batches` batches at or before the given position of each run; returns how many."""
        ...

    def damaged(self) -> Iterable[str]:
        """Says, for the operator, what was found damaged since it was opened."""
        ...

    def close(self) -> None:
        """Closes it."""
        ...
