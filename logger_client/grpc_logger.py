"""`GrpcLogger`: a logger whose records a `logger-service` process writes."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from logger_client.delivery.options import Delivery, DeliveryOptions, check_seconds
from logger_client.delivery.recorder import OnFull
from logger_client.opening import Backends, Resume, open_request, open_run
from logger_client.service_logger import ServiceLogger
from logger_client.transports.grpc import GrpcTransport

TARGET_VARIABLE = "LOGGER_CLIENT_TARGET"
"""The variable that names the server where no target is given."""

_PLACES = ("log_dir",)


_SCHEME = re.compile(r"(unix|unix-abstract|dns|ipv4|ipv6|vsock):\S")
_ADDRESS = re.compile(r"(?:[^\s:/]+|\[[^\s\]]+\]):([0-9]{1,5})")


class GrpcLogger(ServiceLogger):
    """Logs to a run on a server.

    Calls return at once; what they log is sent in the background, and again until the server has acknowledged that it
    is durable.

    Args:
        exp_name: The name of the run: segments split at `/`.
        target: Where the server listens, such as `127.0.0.1:50051`.
        namespace: The namespace of the run.
        backends: What the server writes the run with: types such as `"csv"`, each alone or as `(type, options)`.
            None: for a new run the server's default, for an existing one what it has.
        resume: `allow` attaches to a run of this name or makes it (and warns if it attached); `never` makes it;
            `must` attaches to it.
        delivery: `async`: calls return at once, and what fails is raised by the next `flush` or `shutdown`.
            `sync`: they return when the server has written what they logged.
        sync_timeout: Seconds that a `sync` call waits before it raises DeliveryPending.
        on_full: What happens when `max_buffer_bytes` are not acknowledged: calls `wait` for room, or what they log is
            counted and `drop`ped.
        max_buffer_bytes: How much may wait for the server, in bytes on the wire; at least 65,536.
        connect_timeout: Seconds to wait here for the server.

    Raises:
        ConnectionError: The server was not reached within `connect_timeout`.
        FileExistsError: `resume="never"`, and there is a run of this name.
        FileNotFoundError: `resume="must"`, and there is none.
        ValueError, TypeError: An argument is not what it must be, or the server refuses it; the message names it.
    """

    def __init__(
        self,
        exp_name: str,
        target: str,
        *,
        namespace: str = "default",
        backends: Backends | None = None,
        resume: Resume = "allow",
        delivery: Delivery = "async",
        sync_timeout: float = 30.0,
        on_full: OnFull = "wait",
        max_buffer_bytes: int = 64 << 20,
        connect_timeout: float = 10.0,
    ) -> None:
        request = open_request(exp_name, namespace, backends, resume)
        options = DeliveryOptions(delivery, sync_timeout, on_full, max_buffer_bytes)
        check_seconds("connect_timeout", connect_timeout)
        transport = GrpcTransport(check_target(target))
        try:
            run = open_run(transport, request, connect_timeout)
        except BaseException:
            transport.close()
            raise
        super().__init__(run, transport, options)

    @property
    def service_backend(self) -> str:
        """`grpc`."""
        return "grpc"

    @classmethod
    def for_logger(
        cls, logger_cls: Any, args: Sequence[Any], kwargs: Mapping[str, Any], options: Mapping[str, Any]
    ) -> GrpcLogger:
        """Makes what `SomeLogger(..., service_backend="grpc", service_backend_options=options)` returns.

        Args:
            logger_cls: The class of the logger; what is made passes for one of its instances.
            args: The positional arguments of its constructor.
            kwargs: Its keyword arguments. One that names a place is refused: where files go, the server says.
            options: `target`, else taken from the variable `LOGGER_CLIENT_TARGET`, and any other keyword argument of
                GrpcLogger but `backends`.

        Raises:
            ValueError: There is no target, or an argument names a place.
            TypeError: An argument or an option is unknown.
        """
        given = inspect.signature(logger_cls.__init__).bind(None, *args, **kwargs).arguments
        for place in _PLACES:
            if given.get(place) is not None:
                raise ValueError(f"{place} cannot be given with service_backend='grpc': the server says where files go")
        allowed = set(inspect.signature(cls.__init__).parameters) - {"self", "exp_name", "backends"}
        if unknown := sorted(set(options) - allowed):
            raise TypeError(f"service_backend_options has {', '.join(unknown)}; known are {', '.join(sorted(allowed))}")
        target = options.get("target") or os.environ.get(TARGET_VARIABLE)
        if not target:
            raise ValueError(
                f"no target: set service_backend_options={{'target': ...}} or the variable {TARGET_VARIABLE}"
            )
        logger = cls(given["exp_name"], **{**options, "target": target}, backends=[logger_cls._backend_type])
        logger._service_cls = logger_cls
        return logger


def check_target(target: Any) -> str:
    """Returns the target, if it can be one.

    Raises:
        TypeError: It is not a `str`.
        ValueError: It is neither `HOST:PORT` nor an address with a scheme that gRPC knows, such as `unix:PATH`.
    """
    if not isinstance(target, str):
        raise TypeError(f"target must be a str such as '127.0.0.1:50051', not {type(target).__name__}")
    if _SCHEME.match(target) and not any(character.isspace() for character in target):
        return target
    address = _ADDRESS.fullmatch(target)
    if address is None or not 1 <= int(address[1]) <= 65535:
        raise ValueError(f"target must be HOST:PORT such as '127.0.0.1:50051', not {target!r}")
    return target
