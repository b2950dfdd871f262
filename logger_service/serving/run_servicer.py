"""`RunService`: opening, flushing and ending runs, and what the server is."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

import logger_service
from logger_service.contract.errors import Reason, ServiceError
from logger_service.serving import fields
from logger_service.serving.calls import Context, HostCalls, result
from logger_service.v1 import run_service_pb2

if TYPE_CHECKING:
    from logger_service.hosting.host import RunHost


class RunServicer:
    """Serves runs.

    Args:
        host: The host.
        calls: For the host's blocking calls.
        backends: The types of backends that the host has.
    """

    def __init__(self, host: RunHost, calls: HostCalls, backends: Sequence[str]) -> None:
        self._host = host
        self._calls = calls
        self._backends = backends

    async def OpenRun(
        self, request: run_service_pb2.OpenRunRequest, context: Context
    ) -> run_service_pb2.OpenRunResponse:
        """Makes a run, or attaches to one."""
        del context
        fields.require(request.exp_name, "exp_name")
        fields.check_length(request.attempt_id, 128, "attempt_id")
        return await self._calls.run(self._host.open_run, request)

    async def FlushRun(
        self, request: run_service_pb2.FlushRunRequest, context: Context
    ) -> run_service_pb2.FlushRunResponse:
        """Waits until what was accepted is durable or applied."""
        fields.require(request.run_id, "run_id")
        flushed = result(self._host.flush(request))
        try:
            ledger = await asyncio.wait_for(flushed, _patience_s(context.time_remaining()))
        # Since Python 3.11 the two are one.
        except (asyncio.TimeoutError, TimeoutError):
            raise ServiceError(Reason.NOT_YET_APPLIED) from None
        return run_service_pb2.FlushRunResponse(ledger=ledger)

    async def CloseRun(
        self, request: run_service_pb2.CloseRunRequest, context: Context
    ) -> run_service_pb2.CloseRunResponse:
        """Ends a run."""
        del context
        fields.require(request.run_id, "run_id")
        ledger = await self._calls.run_long(self._host.close_run, request.run_id)
        return run_service_pb2.CloseRunResponse(ledger=ledger)

    async def GetServerInfo(
        self, request: run_service_pb2.GetServerInfoRequest, context: Context
    ) -> run_service_pb2.GetServerInfoResponse:
        """What the server is."""
        del request, context
        settings = self._host.settings
        return run_service_pb2.GetServerInfoResponse(
            version=logger_service.__version__,
            limits=settings.limits,
            backends=self._backends,
            default_backends=settings.default_backends,
            durability=settings.durability,
            reasons=[reason.value for reason in Reason],
        )


def _patience_s(remaining_s: float | None) -> float | None:
    """How long to wait within a call's deadline, so that the answer is there before the client gives up."""
    if remaining_s is None:
        return None
    return remaining_s - min(max(0.1 * remaining_s, 0.02), 0.5)
