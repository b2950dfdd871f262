"""Whatever a handler raises, in whatever kind of method, the client gets a status of the catalogue or gRPC's own."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
import grpc.aio
import pytest

from logger_service.contract import status_details
from logger_service.contract.errors import CATALOGUE, Reason, ServiceError
from logger_service.serving.interceptor import ErrorInterceptor
from logger_service.v1 import logging_service_pb2
from tests.support.event_loop import run

KINDS = ("unary_unary", "unary_stream", "stream_unary", "stream_stream")
KINDS += ("unary_stream_writing", "stream_stream_writing")
LIMIT = 100


def _handlers(fail: Callable[[Any], Any]) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
    """A method of each kind, which answers what it was sent, and then fails; `fail` gets the context."""

    async def answer_one(request: Any, context: Any) -> Any:
        await fail(context)
        return request

    async def answer_one_of_many(requests: Any, context: Any) -> Any:
        request = await context.read()
        await fail(context)
        return request

    async def yield_many(request: Any, context: Any) -> AsyncIterator[Any]:
        yield request
        await fail(context)

    async def yield_many_of_many(requests: Any, context: Any) -> AsyncIterator[Any]:
        async for request in requests:
            yield request
            await fail(context)

    async def write_many(request: Any, context: Any) -> None:
        await context.write(request)
        await fail(context)

    async def write_many_of_many(requests: Any, context: Any) -> None:
        await context.write(await context.read())
        await fail(context)

    parse = logging_service_pb2.Hello.FromString
    serialize = logging_service_pb2.Hello.SerializeToString
    return {
        "unary_unary": grpc.unary_unary_rpc_method_handler(answer_one, parse, serialize),
        "unary_stream": grpc.unary_stream_rpc_method_handler(yield_many, parse, serialize),
        "stream_unary": grpc.stream_unary_rpc_method_handler(answer_one_of_many, parse, serialize),
        "stream_stream": grpc.stream_stream_rpc_method_handler(yield_many_of_many, parse, serialize),
        "unary_stream_writing": grpc.unary_stream_rpc_method_handler(write_many, parse, serialize),
        "stream_stream_writing": grpc.stream_stream_rpc_method_handler(write_many_of_many, parse, serialize),
    }


@contextlib.asynccontextmanager
async def _serving(fail: Callable[[Any], Any]) -> AsyncIterator[grpc.aio.Channel]:
    server = grpc.aio.server(interceptors=(ErrorInterceptor(LIMIT),))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Test", _handlers(fail)),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield channel
    await server.stop(None)


def _call(kind: str, fail: Callable[[Any], Any], request: bytes) -> grpc.aio.AioRpcError | None:
    """Calls a method and reads to its end; returns the error that it ended with."""

    async def call() -> None:
        async with _serving(fail) as channel:
            path = f"/test.Test/{kind}"
            if kind == "unary_unary":
                assert await channel.unary_unary(path)(request) == request
            elif kind.startswith("unary_stream"):
                assert [answer async for answer in channel.unary_stream(path)(request)] == [request]
            elif kind == "stream_unary":
                assert await channel.stream_unary(path)(iter([request])) == request
            else:
                assert [answer async for answer in channel.stream_stream(path)(iter([request]))] == [request]

    try:
        run(call())
    except grpc.aio.AioRpcError as error:
        return error
    return None


def _refusal(error: grpc.aio.AioRpcError | None) -> ServiceError:
    assert error is not None
    details = dict(error.trailing_metadata()).get(status_details.METADATA_KEY)
    refusal = status_details.decode(error.code().value[0], details, error.details())
    assert refusal is not None, error
    return refusal


HELLO = logging_service_pb2.Hello(run_id="r").SerializeToString()


async def _succeed(context: Any) -> None:
    del context


@pytest.mark.parametrize("kind", KINDS)
def test_what_succeeds_is_untouched(kind: str) -> None:
    assert _call(kind, _succeed, HELLO) is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_refusal_arrives_whole(kind: str) -> None:
    async def fail(context: Any) -> None:
        raise ServiceError(Reason.JOURNAL_LOST, "gone — weg", field="hello", metadata={"first_sequence": "3"})

    refusal = _refusal(_call(kind, fail, HELLO))
    assert (refusal.reason, refusal.message, refusal.field, refusal.metadata) == (
        Reason.JOURNAL_LOST,
        "gone — weg",
        "hello",
        {"first_sequence": "3"},
    )


@pytest.mark.parametrize("kind", KINDS)
def test_anything_else_is_internal_and_its_text_stays_in_the_log(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    async def fail(context: Any) -> None:
        raise RuntimeError("secret of /srv/data")

    error = _call(kind, fail, HELLO)
    refusal = _refusal(error)
    assert (refusal.reason, refusal.message) == (Reason.INTERNAL, CATALOGUE[Reason.INTERNAL].message)
    assert "secret" not in repr(error)
    (record,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert vars(record)["method"] == f"/test.Test/{kind}"
    assert "secret of /srv/data" in caplog.text


@pytest.mark.parametrize("kind", KINDS)
def test_an_abort_passes_through(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    async def fail(context: Any) -> None:
        await context.abort(grpc.StatusCode.NOT_FOUND, "as it was")

    error = _call(kind, fail, HELLO)
    assert error is not None
    assert (error.code(), error.details()) == (grpc.StatusCode.NOT_FOUND, "as it was")
    assert caplog.text == ""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("request_", "reason"), [(b"\xff\xff\xff", Reason.INVALID_FIELD), (b"\x0a\x70" + b"x" * 112, Reason.TOO_LARGE)]
)
def test_what_cannot_be_taken_is_refused(
    kind: str, request_: bytes, reason: Reason, caplog: pytest.LogCaptureFixture
) -> None:
    assert _refusal(_call(kind, _succeed, request_)).reason == reason
    assert caplog.text == ""


@pytest.mark.parametrize("kind", KINDS)
def test_a_cancelled_call_is_not_an_error(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    async def call() -> None:
        entered, left = asyncio.Event(), asyncio.Event()

        async def wait(context: Any) -> None:
            entered.set()
            try:
                await asyncio.Event().wait()
            finally:
                left.set()

        async with _serving(wait) as channel:
            streams = kind.startswith("stream")
            method = getattr(channel, kind.removesuffix("_writing"))(f"/test.Test/{kind}")
            ongoing = method(iter([HELLO]) if streams else HELLO)
            await entered.wait()
            ongoing.cancel()
            await left.wait()

    run(call())
    assert caplog.text == ""


def test_a_long_message_is_cut_before_it_breaks_the_response() -> None:
    async def fail(context: Any) -> None:
        raise ServiceError(Reason.INVALID_NAME, "ü" * 10_000, field="name")

    refusal = _refusal(_call("unary_unary", fail, HELLO))
    assert refusal.reason == Reason.INVALID_NAME
    assert refusal.message == "ü" * 400 + " …"
