"""Which service backends there are, and the metaclass by which a logger class hands its construction to one.

    CSVLogger("run", service_backend="grpc", service_backend_options={"target": "127.0.0.1:50051"})

calls `GrpcLogger.for_logger(CSVLogger, ("run",), {}, {"target": …})` in place of CSVLogger's constructor, and what that
returns passes `isinstance(…, CSVLogger)`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol, cast

SERVICE_BACKENDS: Mapping[str, str] = {"grpc": "logger_client.grpc_logger:GrpcLogger"}
"""Service backends by name, as `module:Class`, imported on use; one of the two tables that look upward."""
DIRECT = "direct"
"""The service backend that is none: the class itself writes, in the process that logs."""


class ServiceLogger(Protocol):
    """What a class in `SERVICE_BACKENDS` offers."""

    @classmethod
    def for_logger(
        cls, logger_cls: type, args: Sequence[Any], kwargs: Mapping[str, Any], options: Mapping[str, Any]
    ) -> Any:
        """Makes a logger that does over the service what a direct one would do here.

        Args:
            logger_cls: The class that was called; its `_backend_type` names the backend to deliver to. The result
                keeps it as `_service_cls`.
            args: What it was called with.
            kwargs: What it was called with, but for the two arguments that led here.
            options: The `service_backend_options`.
        """
        ...


def service_class(service_backend: str) -> type[ServiceLogger]:
    """Returns the class behind the name of a service backend.

    Raises:
        ValueError: There is none of this name; the message lists what there is.
    """
    place = SERVICE_BACKENDS.get(service_backend) if isinstance(service_backend, str) else None
    if place is None:
        names = ", ".join(map(repr, (DIRECT, *SERVICE_BACKENDS)))
        raise ValueError(f"there is no service_backend {service_backend!r}; there are {names}")
    module, _, name = place.partition(":")
    return cast("type[ServiceLogger]", getattr(import_module(module), name))


class LoggerMeta(type):
    """The metaclass of loggers: takes `service_backend` and `service_backend_options` from every constructor."""

    def __call__(
        cls,
        *args: Any,
        service_backend: str = DIRECT,
        service_backend_options: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Constructs the logger, or has a service construct one that stands for it.

        Raises:
            ValueError: There is no such service backend, or this class cannot be behind one; or options without one.
        """
        if service_backend == DIRECT:
            if service_backend_options:
                raise ValueError("service_backend_options are for a service_backend other than 'direct'")
            return super().__call__(*args, **kwargs)
        service = service_class(service_backend)
        if getattr(cls, "_backend_type", None) is None:
            raise ValueError(f"{cls.__name__} does not take service_backend={service_backend!r}: no backend is its own")
        return service.for_logger(cls, args, kwargs, dict(service_backend_options or {}))

    def __instancecheck__(cls, instance: Any) -> bool:
        """Whether it is an instance, or stands for one: a service of the class, or a prefix view over one."""
        if super().__instancecheck__(instance):
            return True
        # Read from the instance's own dict: asking for the attribute would run `__getattr__` of any object.
        stands_for = getattr(instance, "__dict__", {}).get("_service_cls")
        return isinstance(stands_for, LoggerMeta) and issubclass(stands_for, cls)
