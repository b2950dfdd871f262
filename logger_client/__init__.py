"""The client of Logger Service: TorchRL's logger API, delivered to a server.

Importing it loads neither gRPC nor anything that a script may not need; each name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from logger_service import __version__

if TYPE_CHECKING:
    from logger_client.factory import generate_exp_name, get_logger
    from logger_client.grpc_logger import GrpcLogger
    from logger_service.contract.errors import DeliveryError, DeliveryPending, LoggerClosedError
    from logger_service.v1.run_service_pb2 import Ledger

__all__ = [
    "DeliveryError",
    "DeliveryPending",
    "GrpcLogger",
    "Ledger",
    "LoggerClosedError",
    "__version__",
    "generate_exp_name",
    "get_logger",
]

_PLACES = {
    "DeliveryError": "logger_service.contract.errors",
    "DeliveryPending": "logger_service.contract.errors",
    "GrpcLogger": "logger_client.grpc_logger",
    "Ledger": "logger_service.v1.run_service_pb2",
    "LoggerClosedError": "logger_service.contract.errors",
    "generate_exp_name": "logger_client.factory",
    "get_logger": "logger_client.factory",
}


def __getattr__(name: str) -> Any:
    """Loads what is exported when it is first asked for."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_PLACES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """What is exported."""
    return __all__
