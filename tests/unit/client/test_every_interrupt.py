"""Ctrl-C at every step of what a caller's thread does: no lock stays held, and nobody waits for ever."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from functools import partial
from operator import methodcaller

from logger_client import uninterrupted as uninterrupted_module
from logger_client.delivery.bell import Bell
from logger_client.delivery.receipt import Receipt
from logger_client.delivery.recorder import Recorder
from logger_client.uninterrupted import uninterrupted
from tests.unit.client.stepping import interrupted_at

DEADLINE_S = 60.0


def in_time(work: Callable[[], object]) -> None:
    """Does something on another thread, which must not wait for ever."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(DEADLINE_S)
    assert not thread.is_alive()


def every_step(begin: Callable[[], Callable[[], object]]) -> Iterator[None]:
    """Has Ctrl-C end what `begin` returns, at the first step, then at the second, and so on until it has no more."""
    for step in itertools.count(1):
        if not interrupted_at(step, begin()):
            break
        yield
    assert step > 5


def test_of_waiting_for_an_outcome():
    receipt = Receipt()

    def begin() -> Callable[[], object]:
        nonlocal receipt
        receipt = Receipt()
        return lambda: receipt.wait(0)

    for _ in every_step(begin):
        in_time(receipt.settle)
        assert not receipt.waits


def test_of_waiting_for_a_bell():
    bell, lock = Bell(), threading.Lock()

    def ring() -> None:
        with lock:
            bell.ring()

    for _ in every_step(lambda: lambda: bell.wait_for(lambda: False, 0)):
        in_time(ring)
        assert bell._waiters == {}


def test_of_ringing_a_bell():
    """Who rings again wakes those who were not woken."""
    bell = Bell()
    rung = threading.Event()
    threads: list[threading.Thread] = []

    def begin() -> Callable[[], object]:
        rung.clear()
        asked = threading.Barrier(3)

        def has_rung() -> bool:
            if not rung.is_set():
                asked.wait()
            return rung.is_set()

        threads[:] = [threading.Thread(target=bell.wait_for, args=(has_rung,), daemon=True) for _ in range(2)]
        for thread in threads:
            thread.start()
        asked.wait()
        rung.set()
        return bell.ring

    for _ in every_step(begin):
        in_time(bell.ring)
        for thread in threads:
            thread.join(DEADLINE_S)
            assert not thread.is_alive()
    for thread in threads:
        thread.join()


def test_of_waiting_for_room():
    recorder = Recorder("run", max_record_bytes=1 << 20, max_buffer_bytes=1 << 16, on_full="wait")
    while not recorder._full:
        recorder.add_scalar("x", 1.0, 0)
    fill = methodcaller("add_scalar", "x", 1.0, 0, 1)

    def wait_for_room() -> None:
        try:
            recorder.add_at_once(fill, Receipt(), points=1, size_bytes=0, timeout_s=0.001)
        except TimeoutError:
            pass

    for _ in every_step(lambda: wait_for_room):
        in_time(recorder._room.ring)
        in_time(lambda: recorder.release(0))
    taken = recorder.take()
    recorder.release(sum(sealed.size_bytes for sealed in taken))
    assert recorder.add_at_once(fill, Receipt(), points=1, size_bytes=0, timeout_s=DEADLINE_S)


def test_of_waiting_for_a_helper():
    """What it does is done all the same, once, and it helps others then."""
    done: list[int] = []
    number = 0

    def begin() -> Callable[[], object]:
        nonlocal number
        number += 1
        work = partial(done.append, number)
        return lambda: uninterrupted(work)

    for _ in every_step(begin):
        assert uninterrupted(lambda: 42) == 42
    assert uninterrupted_module._idle
    assert len(done) == len(set(done))
    assert number in done, "the last one was not interrupted"
