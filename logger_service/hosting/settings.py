"""What a host can be told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from logger_service.v1 import logging_service_pb2, run_service_pb2

MIB = 1 << 20


@dataclass(frozen=True)
class HostSettings:
    """Settings of a `RunHost`."""

    data_dir: Path
    """Where the runs' directories lie: `<data_dir>/<namespace>/<exp_name>`."""
    default_backends: tuple[str, ...] = ("csv",)
    """The backends of a run that asks for none."""
    durability: run_service_pb2.Durability = run_service_pb2.DURABILITY_DISK
    """What the journal was opened with; reported to clients."""
    max_message_bytes: int = 16 * MIB
    """The greatest message on the wire."""
    max_record_bytes: int = 8 * MIB
    """The greatest single record."""
    max_stream_bytes: int = 4 * MIB
    """How much of one stream may be undecided before the server stops reading it."""
    tail_bytes: int = 64 * MIB
    """How much of what was accepted and not yet applied is kept in memory, over all runs; the rest is read back."""
    backlog_bytes: int = 4 << 30
    """How much of one run may be accepted and not yet applied; beyond it: JOURNAL_FULL."""
    write_after_s: float = 1.0
    """How long what was accepted may wait to be written to files when nobody waits for it."""
    checkpoint_after_s: float = 30.0
    """How long what was written may wait to be fsynced and its batches trimmed from the journal."""
    checkpoint_after_bytes: int = 64 * MIB
    """How much of one run may be written before it is fsynced and trimmed, whatever the time."""
    idle_after_s: float = 60.0
    """How long a run without a writer stays open."""
    projector_threads: int = 2
    """How many threads write to file backends."""

    @property
    def limits(self) -> logging_service_pb2.ServerLimits:
        """The limits, as clients are told."""
        return logging_service_pb2.ServerLimits(
            max_message_bytes=self.max_message_bytes,
            max_record_bytes=self.max_record_bytes,
            max_stream_bytes=self.max_stream_bytes,
        )
