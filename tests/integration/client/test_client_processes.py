"""Loggers and processes: how they end, how they are started, and where they may not be used."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal

import pytest

from logger_client.report import plain
from logger_client.transports.grpc import GrpcTransport
from logger_service.v1 import query_service_pb2
from tests.support.run_files import read_csv_run


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
    assert status_of_writers(server) == ["vanished"]


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


def log_as_worker(logger, number: int) -> None:
    logger.log_scalar(f"worker/{number}", number, 0)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
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


FORK = """
import json, os, threading

def use(what):
    try:
        what()
    except RuntimeError as error:
        return str(error)

def child():
    worker = pickle.loads(pickle.dumps(logger.client()))
    said = [
        use(lambda: logger.log_scalar("x", -1.0)),
        use(lambda: logger.log_metrics({"x": -1.0})),
        use(lambda: logger.client().log_str("t", "text")),
        use(logger.flush),
        use(lambda: worker.log_scalar("x", -1.0)),
        use(lambda: GrpcLogger("other", sys.argv[1])),
    ]
    print(json.dumps([said, logger.is_alive]), flush=True)
    logger.shutdown()

import pickle
"""


@pytest.mark.parametrize("ending", ["os._exit(0)", "sys.exit(0)"])
def test_a_forked_child_is_told_and_ends_and_its_parent_goes_on(server, connect, run_python, ending):
    code = f"""
logger.log_scalar("x", 0.0)
pid = os.fork()
if not pid:
    child()
    {ending}
assert os.waitpid(pid, 0)[1] == 0
logger.log_scalar("x", 1.0)
"""
    done = run_python(START + FORK + code, server.address)
    said, alive = json.loads(done.stdout)
    assert alive is False
    assert all("cannot be used in a forked child" in message for message in said)
    connect(server).flush()
    assert scalars(server) == {"x": [(0, 0.0), (1, 1.0)]}


def test_forks_while_the_stream_is_busy(server, connect, run_python):
    code = """
ended = threading.Event()

def work():
    step = 0
    while not ended.is_set() or step < 10_000:
        logger.log_scalar("x", step, step)
        step += 1
    print(step)

worker = threading.Thread(target=work)
worker.start()
for _ in range(20):
    pid = os.fork()
    if not pid:
        os._exit(0 if "forked child" in use(lambda: logger.log_scalar("y", 1.0)) else 1)
    assert os.waitpid(pid, 0)[1] == 0
ended.set()
worker.join()
"""
    done = run_python(START + FORK + code, server.address)
    connect(server).flush()
    assert scalars(server) == expected(int(done.stdout))


def test_a_logger_may_be_made_in_a_forked_child_whose_parent_has_none(server, connect, run_python):
    code = """
import os, sys
import logger_client.grpc_logger
pid = os.fork()
if not pid:
    logger = logger_client.grpc_logger.GrpcLogger("run", sys.argv[1], connect_timeout=60)
    logger.log_scalar("x", 1.0)
    logger.shutdown()
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
"""
    run_python(code, server.address)
    assert scalars(server) == {"x": [(0, 1.0)]}


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
