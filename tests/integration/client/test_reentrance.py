"""Handlers that log while the very thread is in a call of the same logger: an error, never a hang."""

from __future__ import annotations

import signal
import time
import types

import pytest

from logger_client import DeliveryError, DeliveryPending, GrpcLogger
from tests.support.run_files import read_csv_run
from tests.support.server import ServerProcess


def test_a_signal_handler_that_interrupts_a_call_gets_an_error_and_nothing_hangs(server: ServerProcess) -> None:
    logger = GrpcLogger("run", server.address)
    logger.log_scalar("loss", 0.0, 0)
    recorder = logger._sink
    outcomes: list[str] = []

    def handler(number: int, frame: types.FrameType | None) -> None:
        for call in (lambda: logger.log_scalar("handler", 1.0, 0), logger.flush):
            try:
                call()
                outcomes.append("logged")
            except RuntimeError as error:
                outcomes.append(str(error))

    class Interrupted:
        """A step whose addition is interrupted, with the lock held."""

        def __init__(self, buffer) -> None:
            self._add = buffer.add_scalar

        def __call__(self, *arguments) -> None:
            signal.raise_signal(signal.SIGUSR1)
            self._add(*arguments)

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        recorder._buffer.add_scalar = Interrupted(recorder._buffer)
        logger.log_scalar("loss", 1.0, 1)
        del recorder._buffer.add_scalar
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(outcomes) == 2
    assert all("interrupted a call of the same logger" in outcome for outcome in outcomes)
    logger.log_scalar("loss", 2.0, 2)
    logger.shutdown()
    assert read_csv_run(server.data_dir / logger.log_dir).scalars["loss"] == [(0, 0.0), (1, 1.0), (2, 2.0)]


def test_a_finalizer_that_finds_the_lock_held_does_not_wait(server: ServerProcess) -> None:
    logger = GrpcLogger("run", server.address)
    logger.log_scalar("loss", 0.0, 0)
    logger.flush()
    sender = logger._writer._sender
    recorder = sender._recorder
    with recorder._lock:
        begun = time.monotonic()
        sender.leave_later()
        assert time.monotonic() - begun < 5
    recorder.seal()
    assert sender.join(30)


def test_a_dropped_point_is_not_a_logged_one(server: ServerProcess) -> None:
    logger = GrpcLogger(
        "run", server.address, delivery="sync", on_full="drop", max_buffer_bytes=65536, sync_timeout=0.2
    )
    server.kill()
    for step in range(2):
        with pytest.raises(DeliveryPending):
            logger.log_str("text", "x" * 30_000, step)
    with pytest.raises(DeliveryError, match="not logged: the buffer is full"):
        logger.log_str("text", "x" * 30_000, 2)
    with pytest.raises((TimeoutError, DeliveryError)):
        logger.shutdown(0.1)
