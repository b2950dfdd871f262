"""What delivery needs of a way to a host, and the one exception with which a way fails."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from logger_service.contract import status_details
from logger_service.contract.errors import Reason, ServiceError
from logger_service.v1 import logging_service_pb2, query_service_pb2, run_service_pb2

CANCELLED, UNKNOWN = 1, 2
"""Status codes of gRPC itself: no reason of the contract has them, so they are not among its `Code`s."""


class CallFailed(Exception):
    """A call or a stream ended with an error. Its text is the host's, or the transport's own.

    Args:
        code: The number of the canonical status code.
        message: What the other side said.
        details: The serialized `google.rpc.Status` that came with it; None: none did.

    Attributes:
        code: The number of the canonical status code.
        message: What the other side said.
        details: As above.
        error: The refusal, if it is one of the contract's; None: it is to be judged by its code alone.
    """

    def __init__(self, code: int, message: str, details: bytes | None = None) -> None:
        self.code = code
        self.message = message
        self.details = details
        self.error: ServiceError | None = status_details.decode(code, details, message)
        super().__init__(message)

    @property
    def reason(self) -> Reason | None:
        """The reason of the contract; None: it has none."""
        return None if self.error is None else self.error.reason


class LogStreamCall(Protocol):
    """An open stream. Iterating it gives the host's answers and raises `CallFailed`."""

    def __iter__(self) -> Iterator[logging_service_pb2.LogStreamResponse]:
        """The answers, until the host ends the stream."""
        ...

    def cancel(self) -> None:
        """Ends the stream at once, from any thread; may be called again."""
        ...


class ChannelStream(Protocol):
    """An open stream of a channel. Iterating it gives serialized answers and raises `CallFailed`."""

    def __iter__(self) -> Iterator[bytes]:
        """The answers, until the other side ends the stream."""
        ...

    def cancel(self) -> None:
        """Ends the stream at once, from any thread; may be called again."""
        ...


class Channel(Protocol):
    """What carries the calls of a transport, as bytes. Every method may be called from any thread."""

    def call(self, method: str, request: bytes, timeout_s: float, *, wait_for_host: bool = False) -> bytes:
        """Makes a call and returns its answer.

        Raises:
            CallFailed: It failed.
        """
        ...

    def open_stream(self, method: str, requests: Iterator[bytes]) -> ChannelStream:
        """Opens a stream; `requests` is iterated on a thread of the channel.

        Raises:
            CallFailed: It could not be opened.
        """
        ...

    def close(self) -> None:
        """Ends all calls at once."""
        ...


class Transport(Protocol):
    """A way to one host. Every method may be called from any thread and raises `CallFailed`.

    A transport connects when it is first used, not when it is made. It can be pickled: a copy is a way of its own to
    the same host.

    Attributes:
        target: What the host is called, for messages.
    """

    target: str

    def open_run(
        self, request: run_service_pb2.OpenRunRequest, timeout_s: float, *, wait_for_host: bool = False
    ) -> run_service_pb2.OpenRunResponse:
        """Calls OpenRun; with `wait_for_host`, an unreachable host is waited for until the time is up."""
        ...

    def flush_run(self, request: run_service_pb2.FlushRunRequest, timeout_s: float) -> run_service_pb2.FlushRunResponse:
        """Calls FlushRun."""
        ...

    def get_server_info(self, timeout_s: float) -> run_service_pb2.GetServerInfoResponse:
        """Calls GetServerInfo."""
        ...

    def list_runs(
        self, request: query_service_pb2.ListRunsRequest, timeout_s: float
    ) -> query_service_pb2.ListRunsResponse:
        """Calls ListRuns."""
        ...

    def get_run(self, request: query_service_pb2.GetRunRequest, timeout_s: float) -> query_service_pb2.GetRunResponse:
        """Calls GetRun."""
        ...

    def open_stream(self, requests: Iterator[bytes]) -> LogStreamCall:
        """Calls LogStream.

        Args:
            requests: Serialized `LogStreamRequest`s; iterated on a thread of the transport, until the stream has ended.
        """
        ...

    def close(self) -> None:
        """Ends all calls at once and gives up the connection; may be called again."""
        ...
