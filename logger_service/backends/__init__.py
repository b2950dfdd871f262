"""The concrete backends a run is written to, and the loggers that write to them directly."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from logger_service.backends.csv_logger import CSVLogger as CSVLogger

__all__ = ["CSVLogger"]

_MODULES = {"CSVLogger": "logger_service.backends.csv_logger"}


def __getattr__(name: str) -> Any:
    """Imports a logger when it is first asked for: a host needs backends without them."""
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(module), name)
