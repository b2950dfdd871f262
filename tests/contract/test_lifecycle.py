"""A logger's life: flush, shutdown, what works afterwards, and the loggers that workers get."""

from __future__ import annotations

import threading

import pytest

from logger_service.contract.errors import LoggerClosedError
from logger_service.contract.logger import Logger


def test_what_a_logger_says_of_itself(logger, exp_name, deployment):
    assert isinstance(logger, Logger)
    assert logger.exp_name == exp_name
    assert logger.is_alive
    assert logger.service_backend in ("direct", "grpc")
    assert str(logger.log_dir)
    assert exp_name in repr(logger)
    assert logger.start() is logger


def test_flush_makes_it_readable(logger, deployment, exp_name):
    for step in range(1000):
        logger.log_scalar("loss", step, step)
        if step % 250 == 0:
            logger.flush()
            assert len(deployment.read(exp_name).scalars["loss"]) == step + 1


def test_flush_without_anything_logged(logger):
    logger.flush()
    logger.flush(timeout=5)


def test_context_manager_delivers_and_ends(deployment, exp_name):
    with deployment.open(exp_name) as logger:
        logger.log_scalar("loss", 1.0, 0)
    assert not logger.is_alive
    assert deployment.read(exp_name).scalars == {"loss": [(0, 1.0)]}


@pytest.mark.parametrize("ending", ["shutdown", "close"])
def test_after_shutdown_every_call_raises_the_same_clear_error(logger, ending):
    view = logger.with_prefix("eval")
    getattr(logger, ending)()
    assert not logger.is_alive
    messages = set()
    for call in (
        lambda: logger.log_scalar("loss", 1.0),
        lambda: logger.log_metrics({"loss": 1.0}),
        lambda: logger.log_str("notes", "text"),
        lambda: logger.log_hparams({"a": 1}),
        lambda: view.log_scalar("loss", 1.0),
        logger.flush,
        logger.start,
        logger.client,
    ):
        with pytest.raises(LoggerClosedError) as raised:
            call()
        messages.add(str(raised.value))
    assert len(messages) == 1
    assert "shut down" in messages.pop()


def test_shutdown_twice_is_fine(logger):
    logger.shutdown()
    logger.shutdown(timeout=1)
    logger.close()


def test_kinds_that_are_not_taken_say_so(logger):
    for call in (
        lambda: logger.log_video("v", None),
        lambda: logger.log_image("i", None),
    ):
        with pytest.raises(NotImplementedError):
            call()


def test_threads_share_a_logger(logger, read):
    def write(thread: int) -> None:
        for step in range(500):
            logger.log_scalar(f"own/{thread}", step, step)
            logger.log_metrics({"shared": thread, f"row/{thread}": step}, step)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    scalars = read().scalars
    for number in range(4):
        expected = [(step, float(step)) for step in range(500)]
        assert scalars[f"own/{number}"] == scalars[f"row/{number}"] == expected
        assert [step for step, value in scalars["shared"] if value == number] == list(range(500))


def test_workers_write_to_the_run_of_their_owner(logger, read):
    worker = logger.client()
    assert worker.exp_name == logger.exp_name
    assert worker.log_dir == logger.log_dir
    assert worker.service_backend == logger.service_backend
    worker.log_scalar("worker", 1.0, 0)
    worker.with_prefix("eval").log_metrics({"loss": 2.0}, 0)
    worker.client().log_str("notes", "text", 0)
    worker.flush()
    logger.log_scalar("owner", 3.0, 0)
    files = read()
    assert files.scalars == {"worker": [(0, 1.0)], "eval/loss": [(0, 2.0)], "owner": [(0, 3.0)]}
    assert files.texts == {"notes": [(0, "text")]}
