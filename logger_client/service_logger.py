"""What loggers over a service share, whatever the way to its host: the owner, and the clients that workers get."""

from __future__ import annotations

import copy
from typing import Any, get_args

from logger_client.delivery.identity import RunIdentity
from logger_client.delivery.options import DeliveryOptions, check_choice
from logger_client.delivery.writer import Writer
from logger_client.transports.base import Transport
from logger_service.contract.dispatch import LoggerMeta
from logger_service.contract.logger import FlushLevel, Logger
from logger_service.contract.recording import Recording
from logger_service.v1 import run_service_pb2

SHUTDOWN_TIMEOUT_S = 30.0
"""How long `shutdown` takes at most, if it is not told."""


class ServiceLogger(Logger):
    """A logger whose records a host writes. A subclass says how to open the run.

    Every copy that pickling makes is a writer of its own in the same run.

    Args:
        run: The run, which has been opened.
        transport: The way to its host, which belongs to the logger from now on.
        options: How to deliver.
    """

    def __init__(self, run: RunIdentity, transport: Transport, options: DeliveryOptions) -> None:
        self._run = run
        self._transport = transport
        self._options = options
        self._writer = Writer(run, transport, options)
        super().__init__(run.exp_name, run.log_dir, self._writer.sink, run_id=run.run_id)

    @property
    def is_alive(self) -> bool:
        """Whether it can log, and what it logs can be delivered."""
        return super().is_alive and self._writer.is_alive

    def client(self) -> WorkerLogger:
        """Returns a logger for workers: it can be pickled, and has no part in the lifecycle.

        Raises:
            LoggerClosedError: The logger was shut down.
        """
        self._require_open()
        return WorkerLogger(self._run, self._transport, self._options, self.service_backend, self._writer)

    def _flush(self, timeout: float | None, level: FlushLevel) -> run_service_pb2.Ledger | None:
        return self._writer.flush(timeout, level)

    def _shutdown(self, timeout: float | None) -> None:
        self._writer.shutdown(SHUTDOWN_TIMEOUT_S if timeout is None else timeout)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy is another writer of the run.

        Raises:
            LoggerClosedError: The logger was shut down.
        """
        self._require_open()
        return _copy_of_owner, (type(self), self._run, self._transport, self._options, self._service_cls)

    def __repr__(self) -> str:
        """Names the run and its host."""
        return f"{type(self).__name__}(exp_name={self.exp_name!r}, target={self._transport.target!r})"


class WorkerLogger(Recording):
    """What `client()` of a service's logger gives to workers: it logs, and flushes what it logged.

    In the process of its owner it shares the owner's writer; every copy that pickling makes is a writer of its own.

    Args:
        run: The run.
        transport: The way to its host.
        options: How to deliver.
        service_backend: What its owner's `service_backend` is.
        writer: The owner's writer; None: one of its own.

    Attributes:
        exp_name: The name of the run.
        log_dir: Where its files are, relative to the host's data directory.
        service_backend: The service backend.
    """

    def __init__(
        self,
        run: RunIdentity,
        transport: Transport,
        options: DeliveryOptions,
        service_backend: str,
        writer: Writer | None = None,
    ) -> None:
        self._writer = Writer(run, transport, options) if writer is None else writer
        super().__init__(self._writer.sink)
        self._recipe = (run, transport, options, service_backend)
        self.exp_name = run.exp_name
        self.log_dir = run.log_dir
        self.service_backend = service_backend

    def flush(self, timeout: float | None = None, level: FlushLevel = "applied") -> run_service_pb2.Ledger | None:
        """Waits until everything that was logged in this process has arrived. See `Logger.flush`."""
        check_choice("level", level, get_args(FlushLevel))
        return self._writer.flush(timeout, level)

    def client(self) -> WorkerLogger:
        """Returns another logger for workers."""
        return WorkerLogger(*self._recipe, self._writer)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy is another writer of the run."""
        return _copy_of_worker, self._recipe

    def __repr__(self) -> str:
        """Names the run and its host."""
        return f"WorkerLogger(exp_name={self.exp_name!r}, target={self._recipe[1].target!r})"


def _copy_of_worker(
    run: RunIdentity, transport: Transport, options: DeliveryOptions, service_backend: str
) -> WorkerLogger:
    """Makes what pickling a worker's logger gives."""
    return WorkerLogger(run, copy.copy(transport), options, service_backend)


def _copy_of_owner(
    logger_cls: type[ServiceLogger],
    run: RunIdentity,
    transport: Transport,
    options: DeliveryOptions,
    service_cls: LoggerMeta | None,
) -> ServiceLogger:
    """Makes what pickling an owner gives; its class's own constructor would open the run again."""
    logger = logger_cls.__new__(logger_cls)
    # `copy.copy` gives the very transport of the original, which each of the two would close.
    ServiceLogger.__init__(logger, run, copy.copy(transport), options)
    if service_cls is not None:
        logger._service_cls = service_cls
    return logger
