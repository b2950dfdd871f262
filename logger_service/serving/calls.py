"""Calls from the event loop into the host, which is plain threads and Futures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeAlias, TypeVar

import grpc.aio

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]
"""gRPC's context of a call."""

P = ParamSpec("P")
T = TypeVar("T")


async def result(future: Future[T]) -> T:
    """Waits for a Future of the host. A caller that goes away does not cancel it: the host still resolves it."""
    return await asyncio.shield(asyncio.wrap_future(future))


class HostCalls:
    """Runs the host's blocking calls on threads.

    Calls that wait for backends have threads of their own, so that a hung backend holds up no other call.
    """

    def __init__(self) -> None:
        self._short = ThreadPoolExecutor(16, thread_name_prefix="host-call")
        self._long = ThreadPoolExecutor(8, thread_name_prefix="host-long-call")

    def submit(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Starts a call that waits for the journal at most."""
        return self._short.submit(call, *args, **kwargs)

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs a call that waits for the journal at most."""
        return await result(self._short.submit(call, *args, **kwargs))

    async def run_long(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs a call that waits for backends."""
        return await result(self._long.submit(call, *args, **kwargs))

    def close(self) -> None:
        """Takes no more calls. Those that run go on to their end."""
        self._short.shutdown(wait=False, cancel_futures=True)
        self._long.shutdown(wait=False, cancel_futures=True)
