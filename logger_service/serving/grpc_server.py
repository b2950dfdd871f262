"""A host behind a gRPC server: what `serve`, a child process and an actor share."""

from __future__ import annotations

import grpc.aio
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection

from logger_service.backends import registry
from logger_service.hosting.host import RunHost
from logger_service.serving.calls import HostCalls
from logger_service.serving.health import HealthServicer
from logger_service.serving.interceptor import ErrorInterceptor
from logger_service.serving.logging_servicer import DESERIALIZERS, LoggingServicer
from logger_service.serving.query_servicer import QueryServicer
from logger_service.serving.registration import add_service
from logger_service.serving.run_servicer import RunServicer
from logger_service.v1 import logging_service_pb2, query_service_pb2, run_service_pb2, state_service_pb2

_LOGGING = logging_service_pb2.DESCRIPTOR.services_by_name["LoggingService"]
_RUNS = run_service_pb2.DESCRIPTOR.services_by_name["RunService"]
_STATE = state_service_pb2.DESCRIPTOR.services_by_name["StateService"]
_QUERIES = query_service_pb2.DESCRIPTOR.services_by_name["QueryService"]
_HEALTH = health_pb2.DESCRIPTOR.services_by_name["Health"]

SERVICES = tuple(service.full_name for service in (_LOGGING, _RUNS, _STATE, _QUERIES))
"""The services of the contract."""


class GrpcServer:
    """A gRPC server for a host. Made and used on a running event loop.

    Args:
        host: The host, started. It stays the caller's to drain and close.
    """

    def __init__(self, host: RunHost) -> None:
        limit = host.settings.max_message_bytes
        self._calls = HostCalls()
        self._logging = LoggingServicer(host, self._calls)
        self._health = HealthServicer(SERVICES)
        self._server = grpc.aio.server(interceptors=(ErrorInterceptor(limit),), options=_options(limit))
        add_service(self._server, _LOGGING, self._logging, DESERIALIZERS)
        add_service(self._server, _RUNS, RunServicer(host, self._calls, registry.names()))
        add_service(self._server, _STATE)
        add_service(self._server, _QUERIES, QueryServicer(host, self._calls))
        add_service(self._server, _HEALTH, self._health)
        reflection.enable_server_reflection((*SERVICES, _HEALTH.full_name, reflection.SERVICE_NAME), self._server)

    async def start(self, address: str) -> int:
        """Listens on an address and says SERVING.

        Args:
            address: `HOST:PORT`; port 0: any free one.

        Returns:
            The port.

        Raises:
            OSError: The address cannot be listened on, for example because the port is in use.
        """
        try:
            port: int = self._server.add_insecure_port(address)
        except RuntimeError as error:
            raise OSError(f"cannot listen on {address}") from error
        await self._server.start()
        self._health.set_serving()
        return port

    async def drain(self, grace_s: float) -> None:
        """Says NOT_SERVING, takes no new streams, and waits up to `grace_s` until those that there are have ended.

        They end once what they sent so far is acknowledged, with a hint to reconnect.
        """
        self._health.end()
        await self._logging.drain(grace_s)

    async def stop(self, grace_s: float) -> None:
        """Stops listening, lets calls end, and cancels those that have not ended after `grace_s`."""
        await self._server.stop(grace_s)
        self._calls.close()


def _options(max_message_bytes: int) -> list[tuple[str, int]]:
    return [
        # Twice the limit: what is a little too large is refused by our own check, with a reason. What is larger still
        # is not even read.
        ("grpc.max_receive_message_length", 2 * max_message_bytes),
        ("grpc.max_send_message_length", max_message_bytes),
        # A writer behind a dead network vanishes within a minute.
        ("grpc.keepalive_time_ms", 40_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.keepalive_permit_without_calls", 1),
        # Clients may ping every 10 s, and a little early.
        ("grpc.http2.min_ping_interval_without_data_ms", 9_000),
        # A port in use is an error, not shared.
        ("grpc.so_reuseport", 0),
    ]
