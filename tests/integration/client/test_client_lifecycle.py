"""The end of a logger: by shutdown, by the garbage collector, behind a dead server."""

from __future__ import annotations

import gc
import pickle
import queue
import socket
import threading

import pytest

from logger_client import DeliveryError, LoggerClosedError
from logger_service.contract.errors import Reason
from tests.integration.client.scripted_server import accept_all, acknowledge, refuse, welcome

DEADLINE_S = 60.0


def client_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("logger-client-")]


def join_client_threads() -> None:
    for thread in client_threads():
        thread.join()


def test_shutdown_delivers_says_finish_and_leaves_no_thread(scripted, connect):
    server = scripted()
    logger = connect(server)
    logger.log_scalar("x", 1.0, 0)
    assert client_threads()
    logger.shutdown()
    assert server.values == [1.0]
    assert server.finished.is_set()
    assert server.flushed[-1].sequence == 1
    assert server.flushed[-1].writer_id == server.hellos[0].writer_id
    assert client_threads() == []


def test_shutdown_of_a_logger_that_logged_nothing_asks_for_nothing(scripted, connect):
    server = scripted()
    logger = connect(server)
    assert client_threads() == []
    logger.shutdown()
    assert server.hellos == server.flushed == []


def test_flush_without_anything_logged_is_for_the_whole_run(scripted, connect):
    server = scripted()
    assert connect(server).flush().accepted == 7
    assert server.flushed[0].writer_id == ""


@pytest.mark.parametrize("timeout", [0, 0.2])
def test_shutdown_behind_a_host_that_acknowledges_nothing_says_what_is_unsent(scripted, connect, timeout):
    def takes_and_says_nothing(hello, requests, context):
        yield welcome()
        for _ in requests:
            pass

    logger = connect(scripted(takes_and_says_nothing))
    for step in range(3):
        logger.log_str("t", "x" * 300_000, step)
    with pytest.raises(TimeoutError, match="3 batches with 3 points"):
        logger.shutdown(timeout)
    assert client_threads() == []
    logger.shutdown()
    with pytest.raises(LoggerClosedError):
        logger.log_scalar("x", 1.0, 0)


def test_shutdown_behind_a_host_that_is_gone_and_one_that_never_answers(server, connect, tmp_path):
    logger = connect(server)
    copy = pickle.loads(pickle.dumps(logger))  # noqa: S301
    server.kill()
    logger.log_scalar("x", 1.0, 0)
    with pytest.raises(TimeoutError, match=rf"{server.address}.*1 batch with 1 point$"):
        logger.shutdown(timeout=0.2)
    host, port = server.address.split(":")
    with socket.create_server((host, int(port))):  # Takes connections and never says a word.
        copy.log_scalar("x", 1.0, 0)
        with pytest.raises(TimeoutError, match="1 batch with"):
            copy.flush(timeout=0.2)
        with pytest.raises(TimeoutError, match="1 batch with"):
            copy.shutdown(timeout=0.2)
    assert client_threads() == []


def test_a_logger_that_is_dropped_still_delivers_and_says_finish(scripted, connect):
    server = scripted()
    worker = pickle.loads(pickle.dumps(connect(server).client()))  # noqa: S301
    worker.log_scalar("x", 1.0, 0)
    del worker
    gc.collect()
    server.finished.wait()
    join_client_threads()
    assert server.values == [1.0]


def test_a_logger_that_is_dropped_does_not_wait_for_ever_to_say_finish(scripted, connect):
    server = scripted()
    worker = pickle.loads(pickle.dumps(connect(server).client()))  # noqa: S301
    worker.log_scalar("x", 1.0, 0)
    worker.flush()
    server.stop()
    del worker
    gc.collect()
    join_client_threads()


def test_a_failed_logger_that_is_dropped_leaves_no_thread(scripted, connect):
    server = scripted(lambda hello, requests, context: refuse(context, Reason.RUN_CLOSED))
    worker = pickle.loads(pickle.dumps(connect(server).client()))  # noqa: S301
    worker.log_scalar("x", 1.0, 0)
    with pytest.raises(DeliveryError):
        worker.flush()
    del worker
    gc.collect()
    join_client_threads()


def test_a_worker_has_the_calls_of_a_worker_and_no_others(scripted, connect):
    logger = connect(scripted())
    worker = logger.client()
    assert (worker.exp_name, worker.log_dir, worker.service_backend) == ("run", "default/run", "grpc")
    assert "run" in repr(worker)
    worker.with_prefix("a").client().log_scalar("x", 1.0, 0)
    assert worker.flush().accepted == 7
    for name in ("shutdown", "close", "start", "is_alive", "state_dict", "load_state_dict", "experiment", "run_id"):
        with pytest.raises(AttributeError):
            getattr(worker, name)
    with pytest.raises(ValueError, match="level must be one of"):
        worker.flush(level="sent")
    logger.shutdown()
    with pytest.raises(LoggerClosedError):
        worker.log_scalar("x", 1.0, 0)
    with pytest.raises(LoggerClosedError):
        worker.flush()


def test_every_copy_is_a_writer_of_its_own(scripted, connect):
    server = scripted(accept_all)
    owner = connect(server)
    copies = [pickle.loads(pickle.dumps(original)) for original in (owner, owner.client())]  # noqa: S301
    copies += [pickle.loads(pickle.dumps(copy)) for copy in copies]  # noqa: S301
    for number, logger in enumerate([owner, owner.client(), *copies]):
        logger.log_scalar("x", number, number)
        logger.flush()
    assert len(server.opened) == 1
    assert {hello.run_id for hello in server.hellos} == {"a-run"}
    assert {hello.epoch for hello in server.hellos} == {3}
    assert len({hello.writer_id for hello in server.hellos}) == len(server.hellos) == 5
    assert all(len(hello.writer_id) == 32 for hello in server.hellos)
    assert type(copies[0]) is type(owner)
    copies[0].shutdown()
    owner.shutdown()
    with pytest.raises(LoggerClosedError):
        pickle.dumps(owner)


def test_flush_that_is_not_acknowledged_in_time_says_so_and_works_later(scripted, connect):
    late = threading.Event()

    def acknowledges_late(hello, requests, context):
        yield welcome()
        sequence = next(requests).batch.sequence
        late.wait()
        yield acknowledge(sequence)
        for request in requests:
            yield acknowledge(request.batch.sequence)

    logger = connect(scripted(acknowledges_late))
    logger.log_metrics({"x": 1.0, "y": 2.0}, 0)
    with pytest.raises(TimeoutError, match="1 batch with 2 points"):
        logger.flush(timeout=0.05)
    late.set()
    assert logger.flush().accepted == 7


def flushing(logger, timeout: float | None):
    """Flushes on another thread; returns the outcome once asked."""
    outcome: queue.SimpleQueue[object] = queue.SimpleQueue()

    def flush() -> None:
        try:
            outcome.put(logger.flush(timeout))
        except Exception as error:
            outcome.put(error)

    threading.Thread(target=flush).start()
    return lambda: outcome.get(timeout=DEADLINE_S)


@pytest.mark.parametrize("timeout", [None, 600.0])
def test_a_flush_that_waits_for_acknowledgements_ends_with_a_shutdown(scripted, connect, timeout):
    arrived = threading.Event()

    def takes_and_says_nothing(hello, requests, context):
        yield welcome()
        for _ in requests:
            arrived.set()

    logger = connect(scripted(takes_and_says_nothing))
    logger.log_scalar("x", 1.0, 0)
    outcome = flushing(logger, timeout)
    assert arrived.wait(DEADLINE_S)
    with pytest.raises(TimeoutError):
        logger.shutdown(timeout=0)
    assert isinstance(outcome(), LoggerClosedError)


@pytest.mark.parametrize("timeout", [None, 600.0])
def test_a_flush_that_waits_for_the_files_ends_with_a_shutdown(scripted, connect, timeout):
    server = scripted()
    server.may_flush.clear()
    logger = connect(server)
    logger.log_scalar("x", 1.0, 0)
    outcome = flushing(logger, timeout)
    assert server.flush_arrived.wait(DEADLINE_S)
    with pytest.raises(TimeoutError):
        logger.shutdown(timeout=0.2)
    assert isinstance(outcome(), LoggerClosedError)


@pytest.mark.parametrize("refused", ["logger-client-encoder", "logger-client-stream"])
def test_the_first_call_raises_where_no_thread_can_be_started_and_the_next_one_starts_it(
    scripted, connect, monkeypatch, refused
):
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name == refused:
            raise RuntimeError("can't start new thread")
        start(thread)

    server = scripted()
    logger = connect(server)
    others = client_threads()  # Of loggers that other tests have dropped.
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            logger.log_scalar("x", 1.0, 0)
    logger.log_scalar("x", 2.0, 1)
    started = set(client_threads()) - set(others)
    assert sorted(thread.name for thread in started) == ["logger-client-encoder", "logger-client-stream"]
    logger.shutdown()
    assert server.values == [2.0]
