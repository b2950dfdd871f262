"""`QueryService`: which runs there are, and how one stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logger_service.serving import fields
from logger_service.serving.calls import Context, HostCalls
from logger_service.v1 import query_service_pb2

if TYPE_CHECKING:
    from logger_service.hosting.host import RunHost


class QueryServicer:
    """Serves reads.

    Args:
        host: The host.
        calls: For the host's blocking calls.
    """

    def __init__(self, host: RunHost, calls: HostCalls) -> None:
        self._host = host
        self._calls = calls

    async def ListRuns(
        self, request: query_service_pb2.ListRunsRequest, context: Context
    ) -> query_service_pb2.ListRunsResponse:
        """Lists runs."""
        del context
        return await self._calls.run(self._host.list_runs, request)

    async def GetRun(
        self, request: query_service_pb2.GetRunRequest, context: Context
    ) -> query_service_pb2.GetRunResponse:
        """One run."""
        del context
        fields.require(request.run_id or request.exp_name, "run_id")
        return await self._calls.run(self._host.get_run, request)
