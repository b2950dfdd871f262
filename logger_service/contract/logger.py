"""The logger that a training script constructs: TorchRL's API, over a sink that a subclass brings."""

from __future__ import annotations

from types import TracebackType
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar

from logger_service.contract.dispatch import DIRECT, LoggerMeta
from logger_service.contract.recording import Recording
from logger_service.contract.sink import RecordSink
from logger_service.v1 import run_service_pb2

FlushLevel: TypeAlias = Literal["applied", "accepted"]
"""How far `flush` waits: written by every backend, or durable in the journal."""

LoggerT = TypeVar("LoggerT", bound="Logger")


class Logger(Recording, metaclass=LoggerMeta):
    """What all loggers share. A subclass opens a sink and says how to flush and end it.

    Every constructor also takes `service_backend` (`direct` or `grpc`) and `service_backend_options`; see `dispatch`.

    Args:
        exp_name: The name of the run.
        log_dir: The directory that the run is written to.
        sink: Where everything goes.
        run_id: The run's id, where a host gave it one.

    Attributes:
        exp_name: The name of the run.
        log_dir: The directory that the run is written to.
        run_id: The run's id; empty where no host gave it one.
    """

    _backend_type: ClassVar[str | None] = None
    """The type of the backend that this class writes by itself, and that a service would write for it."""

    _service_cls: LoggerMeta | None = None
    """The class that this logger, a service's, stands for."""

    def __init__(self, exp_name: str, log_dir: str, sink: RecordSink, *, run_id: str = "") -> None:
        super().__init__(sink)
        self.exp_name = exp_name
        self.log_dir = log_dir
        self.run_id = run_id

    @property
    def service_backend(self) -> str:
        """The service backend: `direct`, or what `service_backend=` was."""
        return DIRECT

    @property
    def is_alive(self) -> bool:
        """Whether it can log."""
        return "_sink" in self.__dict__

    def start(self: LoggerT) -> LoggerT:
        """Returns the logger, which its construction has started.

        Raises:
            LoggerClosedError: It was shut down.
        """
        self._require_open()
        return self

    def client(self) -> Any:
        """Returns what workers log with: of a direct logger, itself.

        Raises:
            LoggerClosedError: It was shut down.
        """
        self._require_open()
        return self

    def flush(self, timeout: float | None = None, level: FlushLevel = "applied") -> run_service_pb2.Ledger | None:
        """Waits until everything that was logged has arrived.

        Args:
            timeout: Seconds to wait; None: as long as it takes.
            level: `applied`: it can be read from where it was to go. `accepted`: it is durable at the host.

        Returns:
            What became of the run's points, where a host counts them; None of a direct logger.

        Raises:
            LoggerClosedError: The logger was shut down.
            TimeoutError: It has not arrived in time; it is on its way.
            DeliveryError: Something did not arrive, for good, since this was last raised.
        """
        if level not in ("applied", "accepted"):
            raise ValueError(f"level must be 'applied' or 'accepted', not {level!r}")
        self._require_open()
        return self._flush(timeout, level)

    def shutdown(self, timeout: float | None = None) -> None:
        """Ends the logger: what was logged is delivered first. A second time it does nothing.

        Args:
            timeout: Seconds to wait; None: the logger's own default.

        Raises:
            TimeoutError: Not everything was delivered in time. The logger has ended nevertheless.
            DeliveryError: Something did not arrive, for good, since this was last raised.
        """
        if self.__dict__.pop("_sink", None) is not None:  # Whoever takes the sink away ends it, once.
            self._shutdown(timeout)

    def close(self, timeout: float | None = None) -> None:
        """Does what `shutdown` does."""
        self.shutdown(timeout)

    def __enter__(self: LoggerT) -> LoggerT:
        """Returns the logger."""
        self._require_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Shuts it down."""
        self.shutdown()

    def __repr__(self) -> str:
        """Names the run."""
        return f"{type(self).__name__}(exp_name={self.exp_name!r}, log_dir={self.log_dir!r})"

    def _flush(self, timeout: float | None, level: FlushLevel) -> run_service_pb2.Ledger | None:
        """Does what `flush` promises; its arguments have been checked, and the logger is open."""
        raise NotImplementedError

    def _shutdown(self, timeout: float | None) -> None:
        """Delivers the rest and releases everything. Called once, when nothing can be logged any more."""
        raise NotImplementedError
