"""`grpc.health.v1` for each service and for the server as a whole.

Not the servicer of grpcio-health-checking: that one says SERVING before anything serves, and stops telling the others
once one of several watchers of a service has gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable

import grpc
from grpc_health.v1 import health_pb2

from logger_service.serving.calls import Context

SERVING: int = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING: int = health_pb2.HealthCheckResponse.NOT_SERVING
_SERVICE_UNKNOWN: int = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN


class HealthServicer:
    """Says NOT_SERVING until `set_serving`.

    Args:
        services: The full names of the services.
    """

    def __init__(self, services: Iterable[str]) -> None:
        self._services = frozenset((*services, ""))
        self._status = NOT_SERVING
        self._ending = False
        self._changed = asyncio.Event()
        """Set, and replaced by a new one, on every change."""

    def set_serving(self) -> None:
        """Says SERVING from now on."""
        self._change(SERVING)

    def end(self) -> None:
        """Says NOT_SERVING from now on, and ends the calls of those who watch, once they have been told."""
        self._ending = True
        self._change(NOT_SERVING)

    def _change(self, status: int) -> None:
        self._status = status
        self._changed.set()
        self._changed = asyncio.Event()

    def _status_of(self, service: str) -> int:
        return self._status if service in self._services else _SERVICE_UNKNOWN

    async def Check(self, request: health_pb2.HealthCheckRequest, context: Context) -> health_pb2.HealthCheckResponse:
        """How a service is."""
        status = self._status_of(request.service)
        if status == _SERVICE_UNKNOWN:
            await context.abort(grpc.StatusCode.NOT_FOUND, "the server has no such service")
        return health_pb2.HealthCheckResponse(status=status)

    async def List(self, request: health_pb2.HealthListRequest, context: Context) -> health_pb2.HealthListResponse:
        """How all services are."""
        del request, context
        status = health_pb2.HealthCheckResponse(status=self._status)
        return health_pb2.HealthListResponse(statuses=dict.fromkeys(self._services, status))

    async def Watch(
        self, request: health_pb2.HealthCheckRequest, context: Context
    ) -> AsyncIterator[health_pb2.HealthCheckResponse]:
        """How a service is, and every change."""
        del context
        last: int | None = None
        while True:
            # All as of now: by the time that the answer is on its way, they may have changed again.
            changed, ending, status = self._changed, self._ending, self._status_of(request.service)
            if status != last:
                yield health_pb2.HealthCheckResponse(status=status)
                last = status
            if ending:
                return
            await changed.wait()
