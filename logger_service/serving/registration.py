"""Which methods there are: exactly those of the contract, each served by a servicer or refused with NOT_SERVED."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import grpc
import grpc.aio
from google.protobuf import message_factory
from google.protobuf.descriptor import ServiceDescriptor

from logger_service.contract.errors import Reason, ServiceError
from logger_service.serving.calls import Context

_MAKE_HANDLER = {
    (False, False): grpc.unary_unary_rpc_method_handler,
    (False, True): grpc.unary_stream_rpc_method_handler,
    (True, False): grpc.stream_unary_rpc_method_handler,
    (True, True): grpc.stream_stream_rpc_method_handler,
}


def add_service(
    server: grpc.aio.Server,
    service: ServiceDescriptor,
    servicer: object = None,
    deserializers: Mapping[str, Callable[[bytes], Any]] | None = None,
) -> None:
    """Serves a service of the contract.

    Args:
        server: The server, not yet started.
        service: The service's descriptor.
        servicer: Has a coroutine function for each method that is served, under the method's name. The others are
            refused.
        deserializers: How requests are parsed, by method, where it is not just their message.
    """
    handlers = {}
    for method in service.methods:
        behavior = getattr(servicer, method.name, None) or _refusal(method.name)
        request = message_factory.GetMessageClass(method.input_type)
        handlers[method.name] = _MAKE_HANDLER[method.client_streaming, method.server_streaming](
            behavior,
            (deserializers or {}).get(method.name, request.FromString),
            message_factory.GetMessageClass(method.output_type).SerializeToString,
        )
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service.full_name, handlers),))


def _refusal(method: str) -> Callable[..., Any]:
    async def refuse(request: Any, context: Context) -> None:
        del request, context
        raise ServiceError(Reason.NOT_SERVED, f"{method} is part of the contract, and not served by this version")

    return refuse
