"""What a writer knows of its run: enough to write to it, to open it again at a host that lost it, and to be pickled."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from logger_service.v1 import logging_service_pb2, run_service_pb2


@dataclass(frozen=True)
class RunIdentity:
    """A run that was opened."""

    run_id: str
    """What the host calls it."""
    epoch: int
    """The epoch as of when it was opened."""
    namespace: str
    """Its namespace."""
    exp_name: str
    """Its name."""
    log_dir: str
    """Where its files are, relative to the host's data directory."""
    backends: tuple[bytes, ...]
    """The serialized `BackendSpec`s that were asked for."""
    limits: bytes
    """The host's serialized `ServerLimits`."""

    @property
    def name(self) -> str:
        """`namespace/exp_name`."""
        return f"{self.namespace}/{self.exp_name}"

    @property
    def server_limits(self) -> logging_service_pb2.ServerLimits:
        """The host's limits."""
        return logging_service_pb2.ServerLimits.FromString(self.limits)

    def reopen_request(self) -> run_service_pb2.OpenRunRequest:
        """How to open it at a host that does not know it (or knows it already)."""
        return run_service_pb2.OpenRunRequest(
            namespace=self.namespace,
            exp_name=self.exp_name,
            backends=[run_service_pb2.BackendSpec.FromString(spec) for spec in self.backends],
            resume=run_service_pb2.RESUME_ALLOW,
            run_id=self.run_id,
            epoch=self.epoch,
        )


def new_writer_id() -> str:
    """Returns an id for a writer, never used before."""
    return secrets.token_hex(16)
