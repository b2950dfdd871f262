"""Health: NOT_SERVING before and after, and every watcher told."""

from __future__ import annotations

import asyncio
from typing import Any

from grpc_health.v1 import health_pb2

from logger_service.serving.health import NOT_SERVING, SERVING, HealthServicer


def _check(health: HealthServicer, service: str) -> Any:
    return health.Check(health_pb2.HealthCheckRequest(service=service), None)  # type: ignore[arg-type]


def test_not_serving_until_told_and_after_the_end() -> None:
    async def body() -> None:
        health = HealthServicer(["a.A"])
        for change, expected in ((None, NOT_SERVING), (health.set_serving, SERVING), (health.end, NOT_SERVING)):
            if change is not None:
                change()
            assert [(await _check(health, name)).status for name in ("", "a.A")] == [expected] * 2
            listed = await health.List(health_pb2.HealthListRequest(), None)  # type: ignore[arg-type]
            assert {name: answer.status for name, answer in listed.statuses.items()} == {"": expected, "a.A": expected}

    asyncio.run(body())


def test_every_watcher_is_told_though_others_leave() -> None:
    async def body() -> None:
        health = HealthServicer(["a.A"])
        request = health_pb2.HealthCheckRequest(service="a.A")
        staying, leaving = (health.Watch(request, None) for _ in range(2))  # type: ignore[arg-type]
        assert [(await anext(watch)).status for watch in (staying, leaving)] == [NOT_SERVING] * 2
        await leaving.aclose()  # type: ignore[attr-defined]
        health.set_serving()
        assert (await anext(staying)).status == SERVING
        health.end()
        assert [answer.status async for answer in staying] == [NOT_SERVING]

    asyncio.run(body())


def test_an_unknown_service_is_watched_as_such() -> None:
    async def body() -> None:
        watch = HealthServicer([]).Watch(health_pb2.HealthCheckRequest(service="b.B"), None)  # type: ignore[arg-type]
        assert (await anext(watch)).status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN

    asyncio.run(body())
