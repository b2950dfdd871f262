"""Ways to deploy a logger, for the suite of behaviours that all of them share.

A new transport or backend adds a class here and a row to `DEPLOYMENTS`; the suite runs over it as it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

from logger_client import GrpcLogger
from logger_service.backends import CSVLogger
from tests.support.run_files import RunFiles, read_csv_run
from tests.support.server import ServerProcess


class Deployment(ABC):
    """Opens loggers and reads back what they wrote, whatever lies in between."""

    def __init__(self) -> None:
        self._opened: list[Any] = []

    def open(self, exp_name: str, **arguments: Any) -> Any:
        """Returns a logger for the run; opened again, the run goes on."""
        logger = self._open(exp_name, **arguments)
        self._opened.append(logger)
        return logger

    @abstractmethod
    def _open(self, exp_name: str, **arguments: Any) -> Any: ...

    @abstractmethod
    def opening(self, exp_name: str) -> str:
        """Returns the code by which a program opens a logger for the run, as `logger`."""

    @abstractmethod
    def run_dir(self, exp_name: str) -> Path:
        """Where the run's files are."""

    @abstractmethod
    def read(self, exp_name: str) -> RunFiles:
        """What the run's files hold at this moment."""

    def close(self) -> None:
        """Shuts down what was opened."""
        for logger in self._opened:
            logger.shutdown()

    @abstractmethod
    def stop(self) -> None:
        """Ends what `close` leaves for the next test."""


class DirectCsv(Deployment):
    """A `CSVLogger` in this process."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self._log_dir = root / "direct"

    def _open(self, exp_name: str, **arguments: Any) -> Any:
        return CSVLogger(exp_name, log_dir=str(self._log_dir), **arguments)

    def opening(self, exp_name: str) -> str:
        return f"""
from logger_service.backends import CSVLogger
logger = CSVLogger({exp_name!r}, log_dir={str(self._log_dir)!r})
"""

    def run_dir(self, exp_name: str) -> Path:
        return self._log_dir / exp_name

    def read(self, exp_name: str) -> RunFiles:
        return read_csv_run(self.run_dir(exp_name))

    def stop(self) -> None:
        pass


class GrpcCsv(Deployment):
    """A `GrpcLogger` and a server that writes CSV."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        root.mkdir(exist_ok=True)
        self.server = ServerProcess(root / "served", root / "stderr")

    def _open(self, exp_name: str, **arguments: Any) -> Any:
        return GrpcLogger(exp_name, self.server.address, **arguments)

    def opening(self, exp_name: str) -> str:
        return f"""
from logger_client import GrpcLogger
logger = GrpcLogger({exp_name!r}, {self.server.address!r})
"""

    def run_dir(self, exp_name: str) -> Path:
        return self.server.data_dir / "default" / exp_name

    def read(self, exp_name: str) -> RunFiles:
        return read_csv_run(self.run_dir(exp_name))

    def stop(self) -> None:
        self.server.kill()


DEPLOYMENTS: dict[str, Callable[[Path], Deployment]] = {"direct-csv": DirectCsv, "grpc-csv": GrpcCsv}
"""Transport and backend."""
