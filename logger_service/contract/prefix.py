"""A view over a logger that puts a prefix before every name, as TorchRL's does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, Literal, TypeVar, overload

from logger_service.contract.logger import Logger
from logger_service.contract.recording import Recording
from logger_service.contract.sanitize import Sanitizer

LoggerT = TypeVar("LoggerT", bound=Recording)

_REMEMBERED_NAMES = 1 << 16


class PrefixLogger(Generic[LoggerT]):
    """Logs metrics, texts and media under `prefix/`, into the logger it is a view of.

    Hyperparameters keep their keys. Everything else (lifecycle, state, directories) is the logger's own; `client()` and
    `start()` return views again. A view over a `Logger` passes `isinstance` for that logger's classes; a view over a
    worker client offers no more than the client does.

    Args:
        logger: A logger, a worker client or another view; the prefixes of views compose.
        prefix: What names begin with; `/` around it is dropped.

    Attributes:
        prefix: The whole prefix.

    Raises:
        TypeError: `prefix` is not a `str`, or `logger` not a logger.
        ValueError: `prefix` is nothing but `/`.
    """

    def __init__(self, logger: LoggerT | PrefixLogger[LoggerT], prefix: str) -> None:
        if not isinstance(prefix, str):
            raise TypeError(f"prefix must be a str, not {type(prefix).__name__}")
        whole = prefix.strip("/")
        if not whole:
            raise ValueError("prefix must have at least one character other than '/'")
        if type(logger) is PrefixLogger:
            whole = f"{logger.prefix}/{whole}"
            logger = logger._logger
        if not isinstance(logger, Recording):
            raise TypeError(f"logger must be a logger, not {type(logger).__name__}")
        self.prefix: str = whole
        self._logger: LoggerT = logger
        self._sanitizer = Sanitizer(whole)
        self._names: dict[str, str] = {}
        if isinstance(logger, Logger):
            self._service_cls = logger._service_cls or type(logger)

    def with_prefix(self, prefix: str) -> PrefixLogger[LoggerT]:
        """Returns a view with `prefix` after this one's; for an empty prefix, this one."""
        return self if prefix == "" else PrefixLogger(self, prefix)

    def log_scalar(self, name: str, value: Any, step: int | None = None) -> None:
        """Logs one number under the prefix. See `Recording.log_scalar`."""
        self._logger.log_scalar(self._names.get(name) or self._name(name), value, step)

    @overload
    def log_metrics(
        self, metrics: Any, step: int | None = None, *, keys_sep: str = "/", defer: Literal[False] = False
    ) -> dict[str, Any]: ...

    @overload
    def log_metrics(
        self, metrics: Any, step: int | None = None, *, keys_sep: str = "/", defer: bool
    ) -> Mapping[str, Any]: ...

    def log_metrics(
        self, metrics: Any, step: int | None = None, *, keys_sep: str = "/", defer: bool = False
    ) -> Mapping[str, Any]:
        """Logs many values under the prefix, and returns them with it. See `Recording.log_metrics`."""
        return self._logger._log_metrics(self._sanitizer, metrics, step, keys_sep, defer)

    def log_str(self, name: str, value: str, step: int | None = None) -> None:
        """Logs a text under the prefix. See `Recording.log_str`."""
        self._logger.log_str(self._name(name), value, step)

    def log_hparams(self, cfg: Any) -> None:
        """Logs hyperparameters, whose keys stay as they are. See `Recording.log_hparams`."""
        self._logger.log_hparams(cfg)

    def log_histogram(self, name: str, data: Any, **kwargs: Any) -> None:
        """Logs a histogram under the prefix. See `Recording.log_histogram`."""
        self._logger.log_histogram(self._name(name), data, **kwargs)

    def log_video(self, name: str, video: Any, step: int | None = None, **kwargs: Any) -> None:
        """Logs a video under the prefix. See `Recording.log_video`."""
        self._logger.log_video(self._name(name), video, step, **kwargs)

    def log_image(self, name: str, image: Any, step: int | None = None, **kwargs: Any) -> None:
        """Logs an image under the prefix. See `Recording.log_image`."""
        self._logger.log_image(self._name(name), image, step, **kwargs)

    def _name(self, name: str) -> str:
        """Returns the name with the prefix."""
        prefixed = self._sanitizer.prefixed(name)
        if len(self._names) >= _REMEMBERED_NAMES:
            self._names.clear()
        self._names[name] = prefixed
        return prefixed

    def __getattr__(self, name: str) -> Any:
        """Returns the logger's attribute; of `client` and `start`, one that keeps the view."""
        if "_logger" not in self.__dict__:  # While it is made, or copied.
            raise AttributeError(name)
        attribute = getattr(self._logger, name)
        if name not in ("client", "start"):
            return attribute

        def keep_view(*args: Any, **kwargs: Any) -> Any:
            logger = attribute(*args, **kwargs)
            return self if logger is self._logger else PrefixLogger(logger, self.prefix)

        return keep_view

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy is a view over a copy of the logger."""
        return PrefixLogger, (self._logger, self.prefix)

    def __repr__(self) -> str:
        """Names the prefix and the logger."""
        return f"PrefixLogger(prefix={self.prefix!r}, logger={self._logger!r})"
