"""Many notifications, few wake-ups, none lost."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

from logger_service.serving.wakeups import Wakeups


class _CountingLoop:
    """The running loop, counting how often it is told."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.told = 0

    def call_soon_threadsafe(self, callback: Callable[..., Any]) -> None:
        self.told += 1
        self._loop.call_soon_threadsafe(callback)


def test_what_comes_before_the_loop_does_costs_one_wake_up() -> None:
    async def body() -> None:
        loop = _CountingLoop()
        wakeups = Wakeups(loop)  # type: ignore[arg-type]
        woken: list[int] = []
        for round_ in range(2):
            for number in range(500):
                wakeups.notify(lambda number=number: woken.append(number))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert woken == [*range(500)] * (round_ + 1)
            assert loop.told == round_ + 1

    asyncio.run(body())


def test_none_is_lost_among_threads() -> None:
    async def body() -> None:
        wakeups = Wakeups(asyncio.get_running_loop())
        woken: list[int] = []
        done = asyncio.Event()

        def wake() -> None:
            woken.append(1)
            if len(woken) == 4 * 5_000:
                done.set()

        def notify() -> None:
            for _ in range(5_000):
                wakeups.notify(wake)

        threads = [threading.Thread(target=notify) for _ in range(4)]
        for thread in threads:
            thread.start()
        await asyncio.wait_for(done.wait(), 60)
        for thread in threads:
            thread.join()

    asyncio.run(body())


def test_after_the_loop_is_closed_it_does_nothing() -> None:
    async def body() -> Wakeups:
        return Wakeups(asyncio.get_running_loop())

    wakeups = asyncio.run(body())
    wakeups.notify(lambda: None)
    wakeups.notify(lambda: None)
