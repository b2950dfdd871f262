"""A writer that costs its machine little, so that hundreds of them try the server and not themselves.

On the wire it does what a `GrpcLogger` does: a connection of its own, batches after the same linger, the same window.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from typing import Any

import grpc

from logger_client.delivery.recorder import LINGER_S, LINGER_UNACKNOWLEDGED_S
from logger_client.delivery.window import MIN_IN_FLIGHT
from logger_service.v1 import (
    logging_service_pb2,
    logging_service_pb2_grpc,
    records_pb2,
    run_service_pb2,
    run_service_pb2_grpc,
)


class LeanWriter:
    """A writer of a run. It logs 0, 1, 2 … under the name `loss`, with automatic steps.

    Args:
        target: The server.
        exp_name: The run.

    Attributes:
        waits: For each call, the seconds until it was acknowledged.
    """

    def __init__(self, target: str, exp_name: str) -> None:
        self._channel = grpc.aio.insecure_channel(target, options=[("grpc.use_local_subchannel_pool", 1)])
        self._runs: Any = run_service_pb2_grpc.RunServiceStub(self._channel)
        self._exp_name = exp_name
        self._run_id = ""
        self._stream: Any = None
        self._changed = asyncio.Event()
        self._calls: list[float] = []
        self._logged = 0
        self._in_flight: dict[int, list[float]] = {}
        self._sequence = 0
        self._acknowledged = 0
        self.waits: list[float] = []

    async def connect(self) -> None:
        """Opens the run and the stream."""
        request = run_service_pb2.OpenRunRequest(exp_name=self._exp_name)
        run = await self._runs.OpenRun(request, timeout=60)
        self._run_id = run.run_id
        self._stream = logging_service_pb2_grpc.LoggingServiceStub(self._channel).LogStream()
        hello = logging_service_pb2.Hello(
            run_id=run.run_id, writer_id=os.urandom(16).hex(), epoch=run.epoch, first_held=1
        )
        await self._stream.write(logging_service_pb2.LogStreamRequest(hello=hello))
        await self._stream.read()

    async def log(self, calls: int, interval_s: float, delay_s: float) -> None:
        """Logs at a steady pace, and returns once all is acknowledged."""
        begin = time.perf_counter() + delay_s
        reader = asyncio.create_task(self._read(calls))
        sender = asyncio.create_task(self._send(calls))
        for call in range(calls):
            await asyncio.sleep(begin + call * interval_s - time.perf_counter())
            self._calls.append(time.perf_counter())
            self._changed.set()
        await asyncio.gather(reader, sender)

    async def flush(self) -> None:
        """Waits until all that the run has accepted stands in its files."""
        await self._runs.FlushRun(run_service_pb2.FlushRunRequest(run_id=self._run_id), timeout=60)

    async def finish(self) -> None:
        """Ends the writer."""
        await self._stream.write(logging_service_pb2.LogStreamRequest(finish=logging_service_pb2.Finish()))
        await self._stream.read()
        await self._channel.close()

    async def _send(self, calls: int) -> None:
        sent = 0
        while sent < calls:
            await self._until(lambda: bool(self._calls))
            await asyncio.sleep(LINGER_S)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._until(lambda: not self._in_flight), LINGER_UNACKNOWLEDGED_S - LINGER_S)
            await self._until(lambda: len(self._in_flight) < MIN_IN_FLIGHT)
            taken, self._calls = self._calls, []
            self._sequence += 1
            self._in_flight[self._sequence] = taken
            sent += len(taken)
            await self._stream.write(logging_service_pb2.LogStreamRequest(batch=self._batch(len(taken))))

    async def _read(self, calls: int) -> None:
        while len(self.waits) < calls:
            response = await self._stream.read()
            now = time.perf_counter()
            while self._acknowledged < response.acknowledgement.accepted:
                self._acknowledged += 1
                self.waits += [now - call for call in self._in_flight.pop(self._acknowledged)]
            self._changed.set()

    async def _until(self, condition: Any) -> None:
        while not condition():
            self._changed.clear()
            await self._changed.wait()

    def _batch(self, rows: int) -> records_pb2.Batch:
        values = range(self._logged, self._logged + rows)
        self._logged += rows
        metrics = records_pb2.MetricRows(names=["loss"], time_unix_nano=[time.time_ns()] * rows, values=values)
        return records_pb2.Batch(
            sequence=self._sequence,
            first_held=self._acknowledged + 1,
            records=[records_pb2.Record(metrics=metrics)],
        )
