"""`LoggingService`: the streaming door, and unary doors for what one call can say."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from logger_service.contract.errors import Reason, ServiceError
from logger_service.serving import fields
from logger_service.serving.calls import Context, HostCalls, result
from logger_service.serving.log_stream import LogStream, SizedRequest
from logger_service.serving.wakeups import Wakeups
from logger_service.v1 import logging_service_pb2, records_pb2

if TYPE_CHECKING:
    from logger_service.hosting.host import RunHost

DESERIALIZERS = {"LogStream": SizedRequest.parse}
"""How requests are parsed, where it is not just their message."""


class LoggingServicer:
    """Serves what is logged.

    Args:
        host: The host.
        calls: For the host's blocking calls.
    """

    def __init__(self, host: RunHost, calls: HostCalls) -> None:
        self._host = host
        self._calls = calls
        self._wakeups = Wakeups(asyncio.get_running_loop())
        self._streams: dict[LogStream, asyncio.Task[Any] | None] = {}
        self._draining = False

    async def drain(self, grace_s: float) -> None:
        """Takes no new streams, has the open ones end with a hint to reconnect, and waits up to `grace_s` for that."""
        self._draining = True
        for stream in self._streams:
            stream.drain()
        tasks = [task for task in self._streams.values() if task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=grace_s)

    async def LogStream(self, requests: object, context: Context) -> None:
        """The fast door."""
        del requests  # Read from the context.
        if self._draining:
            raise ServiceError(Reason.SHUTTING_DOWN)
        stream = LogStream(self._host, self._calls, self._wakeups, context)
        self._streams[stream] = asyncio.current_task()
        try:
            await stream.serve()
        finally:
            del self._streams[stream]

    async def LogScalar(
        self, request: logging_service_pb2.LogScalarRequest, context: Context
    ) -> logging_service_pb2.LogScalarResponse:
        """Logs one scalar."""
        del context
        rows = records_pb2.MetricRows(names=[request.name], values=[request.value])
        fields.set_row(rows, request)
        steps = await self._log("LogScalar", request, records_pb2.Record(metrics=rows))
        return logging_service_pb2.LogScalarResponse(step=steps[request.name])

    async def LogMetrics(
        self, request: logging_service_pb2.LogMetricsRequest, context: Context
    ) -> logging_service_pb2.LogMetricsResponse:
        """Logs one row of metrics."""
        del context
        metrics = dict(request.metrics)
        fields.require(metrics, "metrics")
        rows = records_pb2.MetricRows(names=metrics.keys(), values=metrics.values())
        fields.set_row(rows, request)
        steps = await self._log("LogMetrics", request, records_pb2.Record(metrics=rows), name_field="metrics")
        return logging_service_pb2.LogMetricsResponse(steps=steps)

    async def LogHistogram(
        self, request: logging_service_pb2.LogHistogramRequest, context: Context
    ) -> logging_service_pb2.LogHistogramResponse:
        """Logs a histogram."""
        del context
        fields.require(request.HasField("histogram"), "histogram")
        record = records_pb2.Record(histogram=request.histogram)
        steps = await self._log("LogHistogram", request, record, name_field="histogram.name")
        return logging_service_pb2.LogHistogramResponse(step=steps[request.histogram.name])

    async def LogText(
        self, request: logging_service_pb2.LogTextRequest, context: Context
    ) -> logging_service_pb2.LogTextResponse:
        """Logs a text."""
        del context
        text = records_pb2.TextRecord(name=request.name, text=request.text, time_unix_nano=request.time_unix_nano)
        if request.HasField("step"):
            text.step = request.step
        steps = await self._log("LogText", request, records_pb2.Record(text=text))
        return logging_service_pb2.LogTextResponse(step=steps[request.name])

    async def LogHparams(
        self, request: logging_service_pb2.LogHparamsRequest, context: Context
    ) -> logging_service_pb2.LogHparamsResponse:
        """Logs hyperparameters."""
        del context
        fields.require(request.HasField("hparams"), "hparams")
        hparams = records_pb2.HparamsRecord(hparams=request.hparams, time_unix_nano=request.time_unix_nano)
        await self._log("LogHparams", request, records_pb2.Record(hparams=hparams))
        return logging_service_pb2.LogHparamsResponse()

    async def _log(
        self, method: str, request: fields.UnaryLogRequest, record: records_pb2.Record, *, name_field: str = "name"
    ) -> dict[str, int]:
        """Logs a record; returns name to step once it is journaled."""
        fields.require(request.run_id, "run_id")
        epoch = request.epoch if request.HasField("epoch") else None
        try:
            return await result(
                self._host.log(method, request.run_id, record, epoch=epoch, request_id=request.request_id)
            )
        except ServiceError as error:
            if error.reason is not Reason.INVALID_NAME:
                raise
            # The host names the field of the record; the caller knows that of the request.
            raise ServiceError(error.reason, error.message, field=name_field) from None
