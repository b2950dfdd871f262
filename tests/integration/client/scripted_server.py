"""A gRPC server whose streams do what a test says: the failures that a real server cannot be brought to at will."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn, TypeAlias

import grpc

from logger_service.contract import status_details
from logger_service.contract.errors import Reason, ServiceError
from logger_service.v1 import (
    logging_service_pb2,
    logging_service_pb2_grpc,
    query_service_pb2,
    query_service_pb2_grpc,
    records_pb2,
    run_service_pb2,
    run_service_pb2_grpc,
)

Requests: TypeAlias = "Iterator[logging_service_pb2.LogStreamRequest]"
Script: TypeAlias = (
    "Callable[[logging_service_pb2.Hello, Requests, Any], Iterator[logging_service_pb2.LogStreamResponse]]"
)
"""What a stream does, as a generator: given its Hello, what follows it, and gRPC's context, it yields the answers."""

LIMITS = logging_service_pb2.ServerLimits(
    max_message_bytes=16 << 20, max_record_bytes=8 << 20, max_stream_bytes=4 << 20
)


def welcome(last_sequence: int = 0) -> logging_service_pb2.LogStreamResponse:
    """The answer to Hello."""
    answer = logging_service_pb2.Welcome(last_sequence=last_sequence, epoch=1, limits=LIMITS)
    return logging_service_pb2.LogStreamResponse(welcome=answer)


def acknowledge(
    accepted: int, applied: int = 0, *rejections: records_pb2.BatchRejections
) -> logging_service_pb2.LogStreamResponse:
    """An acknowledgement."""
    answer = logging_service_pb2.Acknowledgement(accepted=accepted, applied=applied, rejections=rejections)
    return logging_service_pb2.LogStreamResponse(acknowledgement=answer)


def reconnect(after_ms: int) -> logging_service_pb2.LogStreamResponse:
    """The hint to open another stream."""
    return logging_service_pb2.LogStreamResponse(reconnect=logging_service_pb2.Reconnect(after_ms=after_ms))


def refuse(context: Any, reason: Reason, **metadata: str) -> NoReturn:
    """Ends a call with a reason of the catalogue."""
    error = ServiceError(reason, metadata=metadata)
    context.set_trailing_metadata(((status_details.METADATA_KEY, status_details.encode(error)),))
    code = next(code for code in grpc.StatusCode if code.value[0] == error.code)
    context.abort(code, error.message)
    raise AssertionError("unreachable")


def accept_all(hello: logging_service_pb2.Hello, requests: Requests, context: Any):
    """A stream without faults, of a host that has what the writer does not hold."""
    yield welcome(hello.first_held - 1)
    for request in requests:
        if request.HasField("finish"):
            return
        yield acknowledge(request.batch.sequence, request.batch.sequence)


class ScriptedServer(
    logging_service_pb2_grpc.LoggingServiceServicer,
    run_service_pb2_grpc.RunServiceServicer,
    query_service_pb2_grpc.QueryServiceServicer,
):
    """A server on a free port.

    Args:
        scripts: What the first stream does, the second, and so on; the last of them also what all others do.

    Attributes:
        hellos: The Hello of every stream.
        batches: Every batch that arrived, on whatever stream.
        opened: Every OpenRun request.
        flushed: Every FlushRun request.
        finished: Set once a writer has said Finish.
        flush_arrived: Set once a FlushRun request has arrived.
        may_flush: To be cleared: while it is, FlushRun is not answered.
    """

    def __init__(self, *scripts: Script) -> None:
        self._scripts = scripts or (accept_all,)
        self._lock = threading.Lock()
        self.hellos: list[logging_service_pb2.Hello] = []
        self.batches: list[records_pb2.Batch] = []
        self.opened: list[run_service_pb2.OpenRunRequest] = []
        self.flushed: list[run_service_pb2.FlushRunRequest] = []
        self.finished = threading.Event()
        self.flush_arrived = threading.Event()
        self.may_flush = threading.Event()
        self.may_flush.set()
        self._server = grpc.server(ThreadPoolExecutor(16), options=[("grpc.max_receive_message_length", 16 << 20)])
        logging_service_pb2_grpc.add_LoggingServiceServicer_to_server(self, self._server)
        run_service_pb2_grpc.add_RunServiceServicer_to_server(self, self._server)
        query_service_pb2_grpc.add_QueryServiceServicer_to_server(self, self._server)
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def stop(self) -> None:
        """Ends it at once."""
        self.may_flush.set()
        self._server.stop(0).wait()

    @property
    def sequences(self) -> list[int]:
        """The sequences of the batches that arrived."""
        return [batch.sequence for batch in self.batches]

    @property
    def values(self) -> list[float]:
        """The values of the metrics that arrived."""
        return [value for batch in self.batches for record in batch.records for value in record.metrics.values]

    def LogStream(self, request_iterator: Requests, context: Any):
        first = next(request_iterator, None)
        if first is None:  # The client went away.
            return
        hello = first.hello
        with self._lock:
            script = self._scripts[min(len(self.hellos), len(self._scripts) - 1)]
            self.hellos.append(hello)
        yield from script(hello, self._noted(request_iterator), context)

    def _noted(self, requests: Requests) -> Requests:
        for request in requests:
            if request.HasField("batch"):
                self.batches.append(request.batch)
            elif request.HasField("finish"):
                self.finished.set()
            yield request

    def OpenRun(self, request: run_service_pb2.OpenRunRequest, context: Any) -> run_service_pb2.OpenRunResponse:
        self.opened.append(request)
        return run_service_pb2.OpenRunResponse(
            run_id="a-run", epoch=3, log_dir=f"default/{request.exp_name}", limits=LIMITS
        )

    def FlushRun(self, request: run_service_pb2.FlushRunRequest, context: Any) -> run_service_pb2.FlushRunResponse:
        self.flushed.append(request)
        self.flush_arrived.set()
        self.may_flush.wait()
        return run_service_pb2.FlushRunResponse(ledger=run_service_pb2.Ledger(accepted=7))

    def GetRun(self, request: query_service_pb2.GetRunRequest, context: Any) -> query_service_pb2.GetRunResponse:
        return query_service_pb2.GetRunResponse(ledger=run_service_pb2.Ledger(accepted=7))
