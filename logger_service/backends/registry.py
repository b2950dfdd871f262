"""The backends there are, by type. A backend's module is imported when a run first needs it."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

from logger_service.backends.base import BackendFactory
from logger_service.contract.errors import Reason, ServiceError
from logger_service.v1 import run_service_pb2

BACKENDS: Mapping[str, str] = {
    "csv": "logger_service.backends.csv:CsvBackend",
}


class BackendClass(BackendFactory, Protocol):
    """The class of a backend: opens one, and says what its kind can do."""

    @property
    def type(self) -> str:
        """Its name in `backends=[...]`."""
        ...

    @property
    def OPTIONS(self) -> frozenset[str]:
        """The options that it takes."""
        ...

    def capabilities(self) -> Sequence[run_service_pb2.Capability]:
        """How it takes each kind of record."""
        ...


@functools.cache
def backend_class(type: str) -> BackendClass:
    """Returns the class of a type of backend.

    Raises:
        ServiceError: UNKNOWN_BACKEND: there is no such type.
    """
    target = BACKENDS.get(type)
    if target is None:
        known = ", ".join(sorted(BACKENDS))
        raise ServiceError(Reason.UNKNOWN_BACKEND, f"there is no backend {type!r}; there is: {known}", field="backends")
    module, _, name = target.partition(":")
    return cast(BackendClass, getattr(importlib.import_module(module), name))


def names() -> list[str]:
    """Returns the types there are."""
    return sorted(BACKENDS)


def check_options(type: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options, if the backend takes them.

    Raises:
        ServiceError: UNKNOWN_BACKEND, or INVALID_OPTION: it does not take one of them; the message names it.
    """
    known = backend_class(type).OPTIONS
    for option in options:
        if option not in known:
            allowed = f"it takes: {', '.join(sorted(known))}" if known else "it takes none"
            raise ServiceError(
                Reason.INVALID_OPTION, f"the backend {type} has no option {option!r}; {allowed}", field="backends"
            )
    return dict(options)
