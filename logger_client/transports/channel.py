"""A gRPC channel, and the translation of gRPC's errors. The one module of the client that imports gRPC."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
from collections.abc import Iterator
from typing import Any

import grpc

from logger_client.transports.base import CANCELLED, CallFailed
from logger_service.contract import status_details
from logger_service.contract.errors import Code

_log = logging.getLogger("logger_client")

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


class GrpcChannel:
    """A channel to a server. Connects when it is first used.

    Args:
        target: Where the server listens, as gRPC names it, such as `127.0.0.1:50051`.
    """

    def __init__(self, target: str) -> None:
        _warn_of_fork_support()
        self._channel: Any = grpc.insecure_channel(target, options=list(_OPTIONS.items()))

    def call(self, method: str, request: bytes, timeout_s: float, *, wait_for_host: bool = False) -> bytes:
        """Makes a call and returns its answer."""
        with _translated():
            answer: bytes = self._channel.unary_unary(method)(request, timeout=timeout_s, wait_for_ready=wait_for_host)
            return answer

    def open_stream(
        self, method: str, requests: Iterator[bytes], timeout_s: float | None = None, *, wait_for_host: bool = False
    ) -> GrpcStream:
        """Opens a stream. A call of one request and one answer is a stream too, and can be cancelled then."""
        with _translated():
            try:
                call = self._channel.stream_stream(method)(requests, timeout=timeout_s, wait_for_ready=wait_for_host)
            except RuntimeError as error:  # No thread can be started: there are too many, or the interpreter ends.
                raise CallFailed(Code.UNAVAILABLE, str(error)) from None
            return GrpcStream(call)

    def close(self) -> None:
        """Ends all calls and closes the channel."""
        self._channel.close()


class GrpcStream:
    """An open stream."""

    def __init__(self, call: Any) -> None:
        self._call = call

    def __iter__(self) -> Iterator[bytes]:
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
        raise CallFailed(CANCELLED, "the connection was closed") from None


def _failure(error: Any) -> CallFailed:
    details = None
    for key, value in error.trailing_metadata() or ():
        if key == status_details.METADATA_KEY:
            details = value
    return CallFailed(error.code().value[0], error.details() or "", details)


@functools.cache
def _warn_of_fork_support() -> None:
    """Says, once, that a setting which promises to help does not."""
    if os.environ.get("GRPC_ENABLE_FORK_SUPPORT", "").lower() in ("1", "true", "yes", "y", "t", "on"):
        _log.warning(
            "GRPC_ENABLE_FORK_SUPPORT is set: each fork of this process may stall for seconds. Loggers do not need it; "
            "unset it if nothing else does"
        )
