"""The way to a server over gRPC: a channel, the calls of the contract, and the translation of gRPC's errors."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import grpc

from logger_client.delivery import fork
from logger_client.transports.base import CallFailed
from logger_service.contract import status_details
from logger_service.v1 import logging_service_pb2, query_service_pb2, run_service_pb2

_OPTIONS: dict[str, int] = {
    # The server's limits decide; they are checked before anything is sent.
    "grpc.max_send_message_length": -1,
    "grpc.max_receive_message_length": 64 << 20,
    # Notices a peer that is gone without a word. Only while a stream is open, and no more often than servers allow.
    "grpc.keepalive_time_ms": 30_000,
    "grpc.keepalive_timeout_ms": 20_000,
    "grpc.keepalive_permit_without_calls": 0,
    # How soon a connection is tried again; how often a stream is, the sender decides.
    "grpc.initial_reconnect_backoff_ms": 100,
    "grpc.min_reconnect_backoff_ms": 5_000,
    "grpc.max_reconnect_backoff_ms": 2_000,
    # gRPC's own retries would only hide what the sender is to know.
    "grpc.enable_retries": 0,
}
_Answer = TypeVar("_Answer")

_PACKAGE = "/logger_service.v1"
_CANCELLED, _UNAVAILABLE = 1, 14


class GrpcTransport:
    """A channel to a server. Connects when it is first used.

    Args:
        target: Where the server listens, as gRPC names it, such as `127.0.0.1:50051`.
    """

    def __init__(self, target: str) -> None:
        self.target = target
        self._lock = threading.Lock()
        self._channel: Any = None
        self._closed = False

    def open_run(
        self, request: run_service_pb2.OpenRunRequest, timeout_s: float, *, wait_for_host: bool = False
    ) -> run_service_pb2.OpenRunResponse:
        """Calls OpenRun."""
        method = f"{_PACKAGE}.RunService/OpenRun"
        answer = run_service_pb2.OpenRunResponse
        return self._call(method, request, answer.FromString, timeout_s, wait_for_host=wait_for_host)

    def flush_run(self, request: run_service_pb2.FlushRunRequest, timeout_s: float) -> run_service_pb2.FlushRunResponse:
        """Calls FlushRun."""
        answer = run_service_pb2.FlushRunResponse
        return self._call(f"{_PACKAGE}.RunService/FlushRun", request, answer.FromString, timeout_s)

    def get_server_info(self, timeout_s: float) -> run_service_pb2.GetServerInfoResponse:
        """Calls GetServerInfo."""
        answer = run_service_pb2.GetServerInfoResponse
        request = run_service_pb2.GetServerInfoRequest()
        return self._call(f"{_PACKAGE}.RunService/GetServerInfo", request, answer.FromString, timeout_s)

    def list_runs(
        self, request: query_service_pb2.ListRunsRequest, timeout_s: float
    ) -> query_service_pb2.ListRunsResponse:
        """Calls ListRuns."""
        answer = query_service_pb2.ListRunsResponse
        return self._call(f"{_PACKAGE}.QueryService/ListRuns", request, answer.FromString, timeout_s)

    def get_run(self, request: query_service_pb2.GetRunRequest, timeout_s: float) -> query_service_pb2.GetRunResponse:
        """Calls GetRun."""
        answer = query_service_pb2.GetRunResponse
        return self._call(f"{_PACKAGE}.QueryService/GetRun", request, answer.FromString, timeout_s)

    def open_stream(self, requests: Iterator[bytes]) -> GrpcStream:
        """Calls LogStream. Requests are sent as they are: they were serialized once, when they were encoded."""
        with _translated():
            stream = self._opened().stream_stream(
                f"{_PACKAGE}.LoggingService/LogStream",
                request_serializer=None,
                response_deserializer=logging_service_pb2.LogStreamResponse.FromString,
            )
            try:
                return GrpcStream(stream(requests))
            except RuntimeError as error:  # No thread can be started: there are too many, or the interpreter ends.
                raise CallFailed(_UNAVAILABLE, str(error)) from None

    def close(self) -> None:
        """Ends all calls and closes the channel."""
        with self._lock:
            self._closed = True
            channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()

    def __reduce__(self) -> tuple[type[GrpcTransport], tuple[str]]:
        """A copy connects by itself."""
        return GrpcTransport, (self.target,)

    def _opened(self) -> Any:
        with self._lock:
            if self._closed:
                raise CallFailed(_CANCELLED, "the connection was closed")
            if self._channel is None:
                fork.claim_grpc()
                self._channel = grpc.insecure_channel(self.target, options=list(_OPTIONS.items()))
            return self._channel

    def _call(
        self,
        method: str,
        request: Any,
        deserialize: Callable[[bytes], _Answer],
        timeout_s: float,
        *,
        wait_for_host: bool = False,
    ) -> _Answer:
        with _translated():
            call = self._opened().unary_unary(
                method, request_serializer=type(request).SerializeToString, response_deserializer=deserialize
            )
            answer: _Answer = call(request, timeout=timeout_s, wait_for_ready=wait_for_host)
            return answer


class GrpcStream:
    """An open LogStream."""

    def __init__(self, call: Any) -> None:
        self._call = call

    def __iter__(self) -> Iterator[logging_service_pb2.LogStreamResponse]:
        """The answers."""
        with _translated():
            yield from self._call

    def cancel(self) -> None:
        """Ends it."""
        self._call.cancel()


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    """Turns what gRPC raises into `CallFailed`."""
    try:
        yield
    except grpc.RpcError as error:
        raise _failure(error) from None
    except ValueError as error:  # What gRPC raises for a channel that another thread has closed meanwhile.
        if "closed channel" not in str(error):
            raise
        raise CallFailed(_CANCELLED, "the connection was closed") from None


def _failure(error: Any) -> CallFailed:
    code: int = error.code().value[0]
    message: str = error.details() or ""
    details = None
    for key, value in error.trailing_metadata() or ():
        if key == status_details.METADATA_KEY:
            details = value
    return CallFailed(code, message, status_details.decode(code, details, message))
