"""The one event loop of the test process, on a thread of its own.

grpc.aio shares its poller among all loops of a process, and events of a loop that was closed get in the way of the
others: so there is only one.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

DEADLINE_S = 120.0


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="event-loop", daemon=True).start()
    return loop


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine on the loop, and returns what it does."""
    return asyncio.run_coroutine_threadsafe(coroutine, _loop()).result(DEADLINE_S)
