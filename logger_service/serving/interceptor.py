"""The one place where exceptions become statuses: nothing leaves the server untranslated."""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from logger_service.contract import status_details
from logger_service.contract.errors import Reason, ServiceError
from logger_service.serving.calls import Context

log = logging.getLogger(__name__)

_STATUS_CODES = {status.value[0]: status for status in grpc.StatusCode}

# The message travels up to three times (percent-encoded as the status message, and within the details), and all
# metadata of a response must stay below 8 KiB, or the client sees another error in its place.
_MAX_MESSAGE_BYTES = 800

# gRPC's own ways to end a call: it was aborted, or the connection is gone.
_OF_GRPC = (grpc.aio.AbortError, grpc.aio.InternalError)


class ErrorInterceptor(grpc.aio.ServerInterceptor):
    """Wraps the handler of every method, so that a call ends in one of three ways.

    A `ServiceError` becomes its status with `google.rpc.Status` details. Cancellation, and what gRPC itself raises,
    pass through. Anything else is logged with the method's name and answered with INTERNAL, without any of its text.

    Messages are parsed within this protection too: what does not parse, or is too large, is refused by reason.

    Args:
        max_message_bytes: The greatest message taken.
    """

    def __init__(self, max_message_bytes: int) -> None:
        self._max_message_bytes = max_message_bytes
        self._wrapped: dict[str, tuple[Any, grpc.RpcMethodHandler[Any, Any]]] = {}

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        """Returns the wrapped handler of a method; None if there is no such method."""
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        method: str = handler_call_details.method
        known = self._wrapped.get(method)
        if known is None or known[0] is not handler:
            known = self._wrapped[method] = (handler, self._wrap(method, handler))
        return known[1]

    def _wrap(self, method: str, handler: Any) -> grpc.RpcMethodHandler[Any, Any]:
        parse = self._parser(handler.request_deserializer)
        serialize = handler.response_serializer
        if handler.request_streaming and handler.response_streaming:
            behavior = _wrap_streaming(method, handler.stream_stream)
            return grpc.stream_stream_rpc_method_handler(behavior, parse, serialize)
        if handler.request_streaming:
            return grpc.stream_unary_rpc_method_handler(_wrap_unary(method, handler.stream_unary), parse, serialize)
        # gRPC parses a single request before it calls the handler: it is handed over as bytes and parsed within.
        if handler.response_streaming:
            behavior = _wrap_streaming(method, handler.unary_stream, parse)
            return grpc.unary_stream_rpc_method_handler(behavior, None, serialize)
        behavior = _wrap_unary(method, handler.unary_unary, parse)
        return grpc.unary_unary_rpc_method_handler(behavior, None, serialize)

    def _parser(self, deserialize: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
        limit = self._max_message_bytes

        def parse(data: bytes) -> Any:
            if len(data) > limit:
                raise ServiceError(
                    Reason.TOO_LARGE, f"the message has {len(data)} bytes; the server's limit is {limit}"
                )
            try:
                return deserialize(data)
            except DecodeError:
                raise ServiceError(Reason.INVALID_FIELD, "the message is not one that this method takes") from None

        return parse


def _as_is(request: Any) -> Any:
    return request


def _wrap_unary(method: str, behavior: Any, parse: Callable[[Any], Any] = _as_is) -> Callable[..., Awaitable[Any]]:
    async def handle(request: Any, context: Context) -> Any:
        try:
            return await behavior(parse(request), context)
        except _OF_GRPC:
            raise
        except Exception as error:  # translated, and logged if it was not foreseen.
            return await _abort(context, method, error)

    return handle


def _wrap_streaming(method: str, behavior: Any, parse: Callable[[Any], Any] = _as_is) -> Callable[..., Any]:
    # gRPC tells handlers that write by themselves from those that yield by their kind of function.
    if inspect.iscoroutinefunction(behavior):
        return _wrap_unary(method, behavior, parse)

    async def handle(request: Any, context: Context) -> AsyncIterator[Any]:
        try:
            async for response in behavior(parse(request), context):
                yield response
        except _OF_GRPC:
            raise
        except Exception as error:  # translated, and logged if it was not foreseen.
            await _abort(context, method, error)

    return handle


async def _abort(context: Context, method: str, error: Exception) -> None:
    """Ends the call with the status of an error; raises gRPC's AbortError."""
    if not isinstance(error, ServiceError) or error.reason is Reason.INTERNAL:
        log.error("a call failed", exc_info=error, extra={"method": method})
    else:
        log.debug("a call was refused: %s", error, extra={"method": method})
    refusal = _clipped(error) if isinstance(error, ServiceError) else ServiceError(Reason.INTERNAL)
    details = ((status_details.METADATA_KEY, status_details.encode(refusal)),)
    await context.abort(_STATUS_CODES[int(refusal.code)], refusal.message, details)


def _clipped(error: ServiceError) -> ServiceError:
    encoded = error.message.encode(errors="replace")
    if len(encoded) <= _MAX_MESSAGE_BYTES:
        return error
    message = encoded[:_MAX_MESSAGE_BYTES].decode(errors="ignore") + " …"
    return ServiceError(error.reason, message, field=error.field, metadata=error.metadata)
