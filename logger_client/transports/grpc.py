"""The way to a server over gRPC: the calls of the contract, on a channel or, in a forked child, through a relay."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from logger_client import fork
from logger_client.transports.base import CANCELLED, CallFailed, Channel, ChannelStream
from logger_client.transports.relay.channel import RelayChannel
from logger_client.uninterrupted import uninterrupted
from logger_service.v1 import logging_service_pb2, query_service_pb2, run_service_pb2

_PACKAGE = "/logger_service.v1"


class GrpcTransport:
    """A way to a server. Connects when it is first used, and anew in a forked child.

    No channel is ever used by the main thread, where Ctrl-C would leave its locks held.

    Args:
        target: Where the server listens, as gRPC names it, such as `127.0.0.1:50051`.
    """

    def __init__(self, target: str) -> None:
        self.target = target
        self._lock = threading.Lock()
        self._channel: Channel | None = None
        self._closed = False
        fork.watch(self)

    def open_run(
        self, request: run_service_pb2.OpenRunRequest, timeout_s: float, *, wait_for_host: bool = False
    ) -> run_service_pb2.OpenRunResponse:
        """Calls OpenRun."""
        answer = self._call(
            f"{_PACKAGE}.RunService/OpenRun", request.SerializeToString(), timeout_s, wait_for_host=wait_for_host
        )
        return run_service_pb2.OpenRunResponse.FromString(answer)

    def flush_run(self, request: run_service_pb2.FlushRunRequest, timeout_s: float) -> run_service_pb2.FlushRunResponse:
        """Calls FlushRun."""
        answer = self._call(f"{_PACKAGE}.RunService/FlushRun", request.SerializeToString(), timeout_s)
        return run_service_pb2.FlushRunResponse.FromString(answer)

    def get_server_info(self, timeout_s: float) -> run_service_pb2.GetServerInfoResponse:
        """Calls GetServerInfo."""
        answer = self._call(f"{_PACKAGE}.RunService/GetServerInfo", b"", timeout_s)
        return run_service_pb2.GetServerInfoResponse.FromString(answer)

    def list_runs(
        self, request: query_service_pb2.ListRunsRequest, timeout_s: float
    ) -> query_service_pb2.ListRunsResponse:
        """Calls ListRuns."""
        answer = self._call(f"{_PACKAGE}.QueryService/ListRuns", request.SerializeToString(), timeout_s)
        return query_service_pb2.ListRunsResponse.FromString(answer)

    def get_run(self, request: query_service_pb2.GetRunRequest, timeout_s: float) -> query_service_pb2.GetRunResponse:
        """Calls GetRun."""
        answer = self._call(f"{_PACKAGE}.QueryService/GetRun", request.SerializeToString(), timeout_s)
        return query_service_pb2.GetRunResponse.FromString(answer)

    def open_stream(self, requests: Iterator[bytes]) -> LogStream:
        """Calls LogStream. Requests are sent as they are: they were serialized once, when they were encoded."""
        method = f"{_PACKAGE}.LoggingService/LogStream"
        return LogStream(uninterrupted(lambda: self._opened().open_stream(method, requests)))

    def close(self) -> None:
        """Ends all calls and closes the channel."""
        uninterrupted(self._close)

    def _close(self) -> None:
        with self._lock:
            self._closed = True
            channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()

    def begin_in_child(self) -> None:
        """Leaves the parent's channel alone."""
        fork.keep(self._channel)
        self._lock = threading.Lock()
        self._channel = None

    def __reduce__(self) -> tuple[type[GrpcTransport], tuple[str]]:
        """A copy connects by itself."""
        return GrpcTransport, (self.target,)

    def _call(self, method: str, request: bytes, timeout_s: float, *, wait_for_host: bool = False) -> bytes:
        return uninterrupted(lambda: self._opened().call(method, request, timeout_s, wait_for_host=wait_for_host))

    def _opened(self) -> Channel:
        with self._lock:
            if self._closed:
                raise CallFailed(CANCELLED, "the connection was closed")
            if self._channel is None:
                if fork.grpc_is_inherited():
                    self._channel = RelayChannel(self.target)
                else:
                    # Not before it is used: what is not loaded, a fork does not inherit.
                    from logger_client.transports.channel import GrpcChannel

                    self._channel = GrpcChannel(self.target)
            return self._channel


class LogStream:
    """An open LogStream."""

    def __init__(self, stream: ChannelStream) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[logging_service_pb2.LogStreamResponse]:
        """The answers."""
        return map(logging_service_pb2.LogStreamResponse.FromString, self._stream)

    def cancel(self) -> None:
        """Ends it."""
        uninterrupted(self._stream.cancel)
