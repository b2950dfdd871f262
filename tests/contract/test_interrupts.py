"""Signals: Ctrl-C at any place of any call, and handlers that log."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable, Iterator

import pytest


@pytest.fixture
def interrupted() -> Iterator[Callable[[Callable[[], None]], None]]:
    """Calls something again and again until KeyboardInterrupt ends it, as Ctrl-C in a notebook does."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)

    def run(work: Callable[[], None]) -> None:
        try:  # Not `suppress`, whose own code would be interrupted too.
            signal.setitimer(signal.ITIMER_REAL, random.uniform(0.0005, 0.003))
            while True:
                work()
        except KeyboardInterrupt:
            pass

    yield run
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_an_interrupt_at_any_place_loses_and_doubles_nothing(logger, read, interrupted):
    began = ended = 0

    def work() -> None:
        nonlocal began, ended
        began += 1
        logger.log_scalar("x", 1.0)
        logger.log_metrics({"a": 2.0, "b": 3.0})
        ended += 1

    for _ in range(100):
        interrupted(work)
    scalars = read().scalars
    for name, value in (("x", 1.0), ("a", 2.0), ("b", 3.0)):
        found = scalars[name]
        assert ended <= len(found) <= began
        assert found == [(step, value) for step in range(len(found))]


def test_a_handler_that_interrupts_a_call_is_refused(logger, read):
    outcomes: list[str] = []

    def handler(*_: object) -> None:
        for call in (
            lambda: logger.log_scalar("handler", 1.0),
            lambda: logger.log_metrics({"handler": 1.0}),
            lambda: logger.log_str("handler", "x"),
            logger.flush,
        ):
            try:
                call()
                outcomes.append("done")
            except RuntimeError as error:
                outcomes.append(str(error))

    buffer = logger._sink._buffer
    add = buffer.add_scalar

    def interrupted(*arguments: object) -> None:
        signal.raise_signal(signal.SIGALRM)
        add(*arguments)

    before = signal.signal(signal.SIGALRM, handler)
    try:
        logger.log_scalar("x", 0.0)
        buffer.add_scalar = interrupted
        logger.log_scalar("x", 1.0)
        del buffer.add_scalar
    finally:
        signal.signal(signal.SIGALRM, before)
    assert len(outcomes) == 4
    assert all("interrupted a call of the same logger" in outcome for outcome in outcomes)
    logger.log_scalar("x", 2.0)
    files = read()
    assert files.scalars == {"x": [(0, 0.0), (1, 1.0), (2, 2.0)]}
    assert files.texts == {}


def test_a_handler_between_calls_logs(logger, read):
    logged = 0
    refused = 0

    def handler(*_: object) -> None:
        nonlocal logged, refused
        try:
            logger.log_scalar("handler", 1.0)
            logged += 1
        except RuntimeError:
            refused += 1
        signal.setitimer(signal.ITIMER_REAL, 0.0005)

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0005)
        for step in range(100_000):
            logger.log_scalar("x", float(step), step)
            if logged >= 10:
                break
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert logged
    scalars = read().scalars
    assert scalars["handler"] == [(count, 1.0) for count in range(logged)]
    assert scalars["x"] == [(number, float(number)) for number in range(step + 1)]
