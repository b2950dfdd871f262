"""What a projector, or a direct logger, needs of a backend.

A backend takes batches in order, may buffer, writes when asked, and says at a checkpoint how far its files are. It runs
on one thread at a time. After a crash it is opened again as of its last checkpoint and given the later batches again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from logger_service.v1 import records_pb2, run_service_pb2

RECORD_KINDS = ("metrics", "histogram", "text", "hparams", "video", "image")
"""The kinds of record, as the fields of `Record.kind` are called."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where a backend is, fsynced."""

    lengths: Mapping[str, int]
    """Length in bytes by path, relative to the run's directory, with `/`, of the files that changed since the last."""
    state: Mapping[str, Any]
    """What else it needs to go on from here; plain JSON types."""


@dataclass(slots=True)
class Recovery:
    """What a recovery found. Paths are relative to the run's directory."""

    short: dict[str, int] = field(default_factory=dict)
    """Files shorter than committed, with the number of bytes missing. They are continued as they are."""
    kept: dict[str, int] = field(default_factory=dict)
    """Files that hold more than the replay wrote, with the number of bytes kept beyond it."""
    mended: dict[str, int] = field(default_factory=dict)
    """Files of which torn bytes were cut (and, where the journal has them, written again), with their number."""
    rows: dict[tuple[str, str], int] = field(default_factory=dict)
    """Rows by (kind, name) that the files hold, where a file is short or holds more than the journal knows."""


class Backend(Protocol):
    """A backend of one run, or of one direct logger."""

    type: ClassVar[str]
    """Its name in `backends=[...]`."""

    @classmethod
    def capabilities(cls) -> Sequence[run_service_pb2.Capability]:
        """How it takes each kind of record."""
        ...

    def apply(self, batch: records_pb2.Batch) -> list[records_pb2.Rejection]:
        """Takes a batch, whose steps are all filled in; may keep it in buffers.

        Returns:
            What it refuses for good. The rest of the batch stands.

        Raises:
            Exception: A fault that may pass. The backend must be opened again from its last checkpoint.
        """
        ...

    def write(self) -> None:
        """Writes all buffers: after it, what was applied can be read by others. Does not fsync.

        Raises:
            OSError: A fault that may pass, such as a full disk. Nothing of the buffers is lost: may be called again.
        """
        ...

    def checkpoint(self) -> Checkpoint:
        """Writes all buffers and fsyncs the files and directories that changed since the last checkpoint."""
        ...

    def note_gap(self) -> None:
        """Called in recovery where batches are missing: the journal lost them, and files may hold what they wrote.

        From here on what differs from what is applied is not taken for torn: whole rows are kept, and what follows is
        looked for behind them.
        """
        ...

    def end_recovery(self) -> Recovery:
        """Called once, after the batches beyond the last checkpoint were applied again, before any new one.

        Until it is called, what is written is compared with what the files hold beyond their committed lengths.
        """
        ...

    def close(self) -> None:
        """Releases files and connections, without writing buffers. May be opened again."""
        ...


class BackendFactory(Protocol):
    """Opens a backend: what the registry finds under a type's name."""

    def __call__(
        self, run_dir: str, options: Mapping[str, Any], *, lengths: Mapping[str, int] | None, state: Mapping[str, Any]
    ) -> Backend:
        """Opens a backend as of its last checkpoint, in recovery.

        Args:
            run_dir: The run's directory; made if missing.
            options: Its options, validated.
            lengths: The committed lengths; None: nothing is known of the run's files, so that each is continued
                (mended, kept, its rows counted).
            state: The committed `Checkpoint.state`; empty: none.
        """
        ...
