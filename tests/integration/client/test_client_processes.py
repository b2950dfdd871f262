"""Loggers and processes: how they end, and workers that are given one."""

from __future__ import annotations

import copy
import gc
import multiprocessing
import os
import signal
import time

import pytest

from logger_client.report import plain
from logger_client.transports.grpc import GrpcTransport
from logger_service.v1 import query_service_pb2
from tests.support.run_files import read_csv_run

DEADLINE_S = 60.0


def scalars(server):
    return read_csv_run(server.data_dir / "default" / "run").scalars


def status_of_writers(server) -> list[str]:
    transport = GrpcTransport(server.address)
    shown = plain(transport.get_run(query_service_pb2.GetRunRequest(exp_name="run"), 60))
    transport.close()
    return [writer["status"] for writer in shown["writers"]]


START = """
import sys
from logger_client import GrpcLogger
logger = GrpcLogger("run", sys.argv[1], connect_timeout=60)
"""

LOG = """
for step in range(10_000):
    logger.log_scalar("x", step, step)
"""


def expected(count: int = 10_000):
    return {"x": [(step, float(step)) for step in range(count)]}


@pytest.mark.parametrize("ending", ["", "sys.exit(0)", "logger = None"])
def test_a_program_that_ends_without_shutdown_has_logged_everything(server, connect, run_python, ending):
    run_python(START + LOG + ending, server.address)
    assert connect(server).flush().accepted == 10_000
    assert scalars(server) == expected()
    assert status_of_writers(server) == ["finished"]


def test_a_program_that_an_exception_ends_has_logged_everything_and_counts_as_interrupted(server, connect, run_python):
    done = run_python(START + LOG + "raise SystemError('on purpose')", server.address, check=False)
    assert done.returncode == 1
    assert "on purpose" in done.stderr
    assert connect(server).flush().accepted == 10_000
    # The server learns that the connection broke; no acknowledgement says when, as it does after a Finish.
    deadline = time.monotonic() + DEADLINE_S
    while (statuses := status_of_writers(server)) == ["writing"]:
        assert time.monotonic() < deadline
    assert statuses == ["vanished"]


def test_a_program_whose_threads_go_on_logging_after_its_main_thread(server, connect, run_python):
    code = """
import threading

def work():
    threading.main_thread().join()
    for step in range(10_000):
        logger.log_scalar("x", step, step)

threading.Thread(target=work).start()
"""
    run_python(START + code, server.address)
    connect(server).flush()
    assert scalars(server) == expected()


def test_a_program_behind_a_dead_server_ends_and_says_what_is_lost(server, run_python):
    code = """
import os, signal
logger.log_scalar("x", 1.0)
logger.flush()
os.kill(int(sys.argv[2]), signal.SIGKILL)
logger.log_metrics({"x": 2.0, "y": 3.0})
"""
    done = run_python(START + code, server.address, str(server.pid))
    assert "the process ends before this was delivered: 1 batch with 2 points" in done.stderr


@pytest.mark.parametrize(
    "make", [lambda logger: logger, lambda logger: logger.client(), lambda logger: logger.with_prefix("p")]
)
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_that_goes_takes_nothing_from_the_original(server, connect, make, copied):
    logger = connect(server)
    original = make(logger)
    original.log_scalar("x", 0.0, 0)
    logger.flush()
    other = copied(original)
    other.log_scalar("x", 1.0, 1)
    other.flush()
    del other
    gc.collect()
    original.log_scalar("x", 2.0, 2)
    logger.flush(60)
    [rows] = scalars(server).values()
    assert rows == [(0, 0.0), (1, 1.0), (2, 2.0)]


def log_as_worker(logger, number: int) -> None:
    logger.log_scalar(f"worker/{number}", number, 0)


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_workers_with_a_pickled_client_deliver_though_they_do_not_flush(server, connect, method):
    context = multiprocessing.get_context(method)
    logger = connect(server)
    logger.log_scalar("owner", 1.0, 0)
    workers = [context.Process(target=log_as_worker, args=(logger.client(), number)) for number in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    # One that has logged nothing flushes the whole run: the others' batches too are in the files then.
    assert connect(server).flush().accepted == 3
    assert scalars(server) == {"owner": [(0, 1.0)], "worker/0": [(0, 0.0)], "worker/1": [(0, 1.0)]}
    assert sorted(status_of_writers(server)) == ["finished", "finished", "writing"]


def test_an_interrupt_ends_waiting_for_room(server, run_python):
    code = """
import os, signal, threading
logger = GrpcLogger("run", sys.argv[1], max_buffer_bytes=1 << 16, connect_timeout=60)
os.kill(int(sys.argv[2]), signal.SIGKILL)
logger.log_str("t", "x" * (1 << 16))
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    logger.log_scalar("x", 1.0)
except KeyboardInterrupt:
    print("interrupted")
try:
    logger.shutdown(timeout=0)
except TimeoutError as error:
    print(error)
"""
    done = run_python(START + code, server.address, str(server.pid))
    first, second = done.stdout.splitlines()
    assert first == "interrupted"
    assert "1 batch with 1 point" in second


def test_interrupts_amid_calls_leave_the_logger_usable(server, connect, run_python):
    """As of Ctrl-C in a notebook, which ends a cell at any place of any call, and not the program."""
    code = """
import random, signal, sys
signal.signal(signal.SIGALRM, signal.default_int_handler)
began = ended = 0
for trial in range(300):
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(0.0005, 0.002))
        while True:
            began += 1
            logger.log_scalar("x", 0.0)
            ended += 1
    except KeyboardInterrupt:
        pass
logger.flush()
print(began, ended, flush=True)
"""
    done = run_python(START + code, server.address)
    began, ended = map(int, done.stdout.split())
    assert ended <= connect(server).flush().accepted <= began
    assert "no connection" not in done.stderr
    steps = [step for step, _ in scalars(server)["x"]]
    assert steps == list(range(len(steps)))
    assert ended <= len(steps) <= began


def test_a_stopped_server_holds_nobody_up(server, run_python):
    code = """
import os, signal
logger.log_scalar("x", 0.0)
logger.flush()
os.kill(int(sys.argv[2]), signal.SIGSTOP)
for step in range(1000):
    logger.log_scalar("x", step, step)
try:
    logger.shutdown(timeout=0.5)
except TimeoutError as error:
    print(error)
"""
    try:
        done = run_python(START + code, server.address, str(server.pid))
        assert "1000 points" in done.stdout.replace(",", "")
    finally:
        os.kill(server.pid, signal.SIGCONT)
