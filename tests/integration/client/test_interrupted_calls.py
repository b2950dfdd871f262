"""Ctrl-C at any place of calls that wait, as in a notebook, where it ends a cell and not the program; and handlers."""

from __future__ import annotations

import pytest

from tests.support.run_files import read_csv_run

START = """
import os, random, signal, sys, threading
from logger_client import GrpcLogger
signal.signal(signal.SIGALRM, signal.default_int_handler)

def interrupted(trials, work, most_s=0.004):
    '''Calls something again and again until Ctrl-C ends it, some times; returns how many calls began, and ended.'''
    began = ended = 0
    for trial in range(trials):
        try:  # Not `suppress`, whose own code would be interrupted too.
            signal.setitimer(signal.ITIMER_REAL, random.uniform(0.0005, most_s))
            for call in range(50):  # Not for ever: an interrupt amid a finalizer is printed, and ends nothing.
                began += 1
                work()
                ended += 1
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            pass
    return began, ended

def in_a_child(work):
    '''Does something in a forked child, which sends through a relay.'''
    pid = os.fork()
    if not pid:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0

def here(work):
    work()
"""

WHERE = pytest.mark.parametrize("where", ["here", "in_a_child"])


def files(server, run: str = "run"):
    return read_csv_run(server.data_dir / "default" / run)


@WHERE
def test_interrupts_of_synchronous_calls(server, run_python, where):
    code = f"""
logger = GrpcLogger("run", sys.argv[1], delivery="sync", connect_timeout=60)

def work():
    print(*interrupted(200, lambda: logger.log_scalar("x", 1.0)), flush=True)
    logger.log_scalar("last", 1.0)
    logger.shutdown()

logger.flush()
{where}(work)
"""
    began, ended = map(int, run_python(START + code, server.address).stdout.split())
    scalars = files(server).scalars
    assert scalars["last"] == [(0, 1.0)]
    assert scalars["x"] == [(step, 1.0) for step in range(len(scalars["x"]))]
    assert ended <= len(scalars["x"]) <= began


@pytest.mark.parametrize("delivery", ["async", "sync"])
def test_interrupts_while_calls_wait_for_room(server, run_python, delivery):
    """Other threads log too, so that the buffer is full in either way of delivery."""
    code = f"""
logger = GrpcLogger(
    "run", sys.argv[1], delivery={delivery!r}, max_buffer_bytes=1 << 16, on_full="wait", connect_timeout=60
)
ended = threading.Event()

def crowd(number):
    while not ended.is_set():
        logger.log_str(f"crowd/{{number}}", 30_000 * "x")

threads = [threading.Thread(target=crowd, args=(number,)) for number in range(3)]
for thread in threads:
    thread.start()
print(*interrupted(200, lambda: logger.log_str("x", 30_000 * "y")), flush=True)
ended.set()
for thread in threads:
    thread.join()
logger.log_str("last", "text")
logger.shutdown()
"""
    began, ended = map(int, run_python(START + code, server.address).stdout.split())
    texts = files(server).texts
    assert texts["last"] == [(0, "text")]
    assert [step for step, _ in texts["x"]] == list(range(len(texts["x"])))
    assert ended <= len(texts["x"]) <= began


@WHERE
def test_interrupts_of_flush(server, run_python, where):
    code = f"""
logger = GrpcLogger("run", sys.argv[1], connect_timeout=60)

def work():
    def log_and_flush():
        logger.log_scalar("x", 1.0)
        logger.flush()

    print(*interrupted(200, log_and_flush), flush=True)
    logger.flush()
    logger.shutdown()

logger.flush()
{where}(work)
"""
    began, ended = map(int, run_python(START + code, server.address).stdout.split())
    found = files(server).scalars["x"]
    assert found == [(step, 1.0) for step in range(len(found))]
    assert ended <= len(found) <= began


@pytest.mark.parametrize(("where", "trials"), [("here", 100), ("in_a_child", 25)])
def test_interrupts_of_constructor_first_call_and_shutdown(server, run_python, where, trials):
    """What Ctrl-C left behind does no harm to those that come after it, nor to the end of the program.

    In a child, each logger that is interrupted may have started a relay.
    """
    code = f"""
import logging
logging.disable()
logger = GrpcLogger("run", sys.argv[1], connect_timeout=60)

def open_log_and_shut_down():
    other = GrpcLogger("run", sys.argv[1], connect_timeout=60)
    other.log_scalar("x", 1.0)
    other.shutdown()

def work():
    interrupted({trials}, open_log_and_shut_down, most_s=0.02 if {where} is here else 0.3)
    open_log_and_shut_down()
    logger.log_scalar("last", 1.0)
    logger.shutdown()

logger.flush()
{where}(work)
"""
    run_python(START + code, server.address)
    scalars = files(server).scalars
    assert scalars["last"] == [(0, 1.0)]
    assert scalars["x"] == [(step, 1.0) for step in range(len(scalars["x"]))]


@pytest.mark.parametrize("delivery", ["async", "sync"])
def test_handlers_that_log_and_flush_amid_any_call(server, run_python, delivery):
    """They are refused where they interrupt a call that logs, and nowhere wait for ever."""
    code = f"""
logger = GrpcLogger("run", sys.argv[1], delivery={delivery!r}, connect_timeout=60)
done = refused = 0

def handler(number, frame):
    global done, refused
    try:
        logger.log_scalar("handler", 1.0)
        logger.flush()
        done += 1
    except RuntimeError as error:
        assert "interrupted a call of the same logger" in str(error), error
        refused += 1
    signal.setitimer(signal.ITIMER_REAL, random.uniform(0.0002, 0.002))

signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.001)
steps = 0
while done < 200:
    logger.log_scalar("x", steps, steps)
    logger.flush()
    steps += 1
signal.signal(signal.SIGALRM, signal.SIG_IGN)
logger.shutdown()
print(steps, done, refused)
"""
    steps, done, refused = map(int, run_python(START + code, server.address).stdout.split())
    scalars = files(server).scalars
    assert scalars["x"] == [(step, float(step)) for step in range(steps)]
    # One whose flush was refused had logged.
    assert done <= len(scalars["handler"]) <= done + refused
