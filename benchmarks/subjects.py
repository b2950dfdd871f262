"""The loggers that are compared, each opened on a run of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torchrl.record.loggers import CSVLogger as TorchrlCSVLogger

from logger_client import GrpcLogger
from logger_service.backends import CSVLogger
from tests.support.server import ServerProcess

_numbers = itertools.count()


class Subjects:
    """Opens loggers by the name of their kind: `grpc`, `grpc-sync`, `direct`, `torchrl`, `torchrl-process`.

    Args:
        root: Where they write to.
        server: What the gRPC ones log to.
    """

    def __init__(self, root: Path, server: ServerProcess) -> None:
        self._root = root
        self._server = server

    @contextmanager
    def open(self, kind: str) -> Iterator[Any]:
        """Opens a logger, and shuts it down."""
        logger = self._open(kind, f"{kind}-{next(_numbers)}")
        try:
            yield logger
        finally:
            logger.shutdown()

    def _open(self, kind: str, exp_name: str) -> Any:
        log_dir = str(self._root / "local")
        match kind:
            case "grpc":
                return GrpcLogger(exp_name, self._server.address)
            case "grpc-sync":
                return GrpcLogger(exp_name, self._server.address, delivery="sync")
            case "direct":
                return CSVLogger(exp_name, log_dir=log_dir)
            case "torchrl":
                return TorchrlCSVLogger(exp_name, log_dir=log_dir)
            case "torchrl-process":
                return TorchrlCSVLogger(exp_name, log_dir=log_dir, service_backend="process")
        raise ValueError(kind)
