"""Loggers in forked children, which send through a relay since gRPC does not survive a fork."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

from logger_client import GrpcLogger
from tests.support.run_files import read_csv_run

START = """
import glob, json, logging, os, pickle, signal, sys, threading, time
logging.basicConfig(format="%(levelname)s %(message)s")
from pathlib import Path
from logger_client import GrpcLogger, LoggerClosedError

logger = GrpcLogger("run", sys.argv[1], connect_timeout=60)

def forked(work, end=lambda: os._exit(0)):
    pid = os.fork()
    if not pid:
        work()
        end()
    return pid

def wait(pid):
    status = os.waitpid(pid, 0)[1]
    assert status == 0, f"exit status {os.waitstatus_to_exitcode(status)}"

def relays():
    '''The processes that this one has started, by any of its threads.'''
    return [int(child) for path in glob.glob("/proc/self/task/*/children") for child in Path(path).read_text().split()]
"""


def scalars(server, run: str = "run"):
    """What the files hold of a run, once all that the server has accepted is in them."""
    logger = GrpcLogger(run, server.address, connect_timeout=60)
    logger.flush()
    logger.shutdown()
    return read_csv_run(server.data_dir / "default" / run).scalars


@pytest.mark.parametrize("ending", ["os._exit(0)", "sys.exit(0)"])
@pytest.mark.parametrize("support", [None, "0"], ids=["unset", "0"])
def test_every_way_to_log_works_in_a_forked_child(server, run_python, monkeypatch, ending, support):
    monkeypatch.delenv("GRPC_ENABLE_FORK_SUPPORT", raising=False)
    code = f"""
logger.log_scalar("parent", 0.0)
view, client = logger.with_prefix("view"), logger.client()

def work():
    copy = pickle.loads(pickle.dumps(logger.client()))
    other = GrpcLogger("other", sys.argv[1], connect_timeout=60)
    logger.log_scalar("child", 1.0)
    view.log_metrics({{"x": 2.0, "y": 3.0}})
    client.log_str("note", "text")
    copy.log_scalar("copy", 4.0)
    other.log_scalar("z", 5.0)
    for each in (logger, copy, other):
        each.flush()
    assert logger.is_alive
    assert len(relays()) == 1
    other.shutdown()
    logger.shutdown()
    try:
        logger.log_scalar("child", 1.0)
    except LoggerClosedError:
        print("closed")

wait(forked(work, lambda: {ending}))
logger.log_scalar("parent", 1.0)
logger.shutdown()
"""
    env = {} if support is None else {"GRPC_ENABLE_FORK_SUPPORT": support}
    assert run_python(START + code, server.address, env=env).stdout == "closed\n"
    assert scalars(server) == {
        "parent": [(0, 0.0), (1, 1.0)],
        "child": [(0, 1.0)],
        "view/x": [(0, 2.0)],
        "view/y": [(0, 3.0)],
        "copy": [(0, 4.0)],
    }
    assert scalars(server, "other") == {"z": [(0, 5.0)]}


def test_a_child_leaves_what_its_parent_has_not_sent_to_the_parent(server, run_python):
    code = """
for step in range(1000):
    logger.log_scalar("x", step, step)
pid = forked(logger.flush)
for step in range(1000, 2000):
    logger.log_scalar("x", step, step)
wait(pid)
"""
    run_python(START + code, server.address)
    assert scalars(server) == {"x": [(step, float(step)) for step in range(2000)]}


def test_a_child_that_forks_while_its_relay_starts_delivers_at_once(server, run_python):
    code = """
logger.log_scalar("x", 0.0, 0)

def child():
    logger.log_scalar("x", 1.0, 1)  # Its relay starts in the background.
    begun, end = os.pipe(), os.pipe()
    grandchildren = [forked(lambda: os.read(end[0], 1)) for _ in range(3)]
    try:
        logger.flush(60)
    finally:
        os.write(end[1], b"123")
    for pid in grandchildren:
        wait(pid)

for _ in range(10):
    wait(forked(child))
logger.flush()
"""
    run_python(START + code, server.address)
    assert len(scalars(server)["x"]) == 11


def test_a_child_of_a_child_has_a_relay_of_its_own(server, run_python):
    """gRPC's own handlers are off: what it inherited, it touches where a child forks again, and may abort the child."""
    code = """
logger.log_scalar("x", 0.0, 0)

def grandchild():
    assert relays() == []
    logger.log_scalar("x", 2.0, 2)
    logger.flush()
    assert len(relays()) == 1

def child():
    logger.log_scalar("x", 1.0, 1)
    logger.flush()
    wait(forked(grandchild))
    [relay] = relays()
    logger.log_scalar("x", 3.0, 3)
    logger.flush()
    assert relays() == [relay]

wait(forked(child))
logger.flush()
"""
    run_python(START + code, server.address, env={"GRPC_ENABLE_FORK_SUPPORT": "0"})
    assert sorted(scalars(server)["x"]) == [(0, 0.0), (1, 1.0), (2, 2.0), (3, 3.0)]


def test_a_synchronous_logger_in_a_forked_child(server, run_python):
    code = """
logger = GrpcLogger("sync", sys.argv[1], delivery="sync", connect_timeout=60)
logger.log_scalar("x", 0.0, 0)

def work():
    logger.log_scalar("x", 1.0, 1)
    print(open(sys.argv[2]).read(), flush=True)

wait(forked(work))
"""
    file = server.data_dir / "default" / "sync" / "scalars" / "x.csv"
    assert run_python(START + code, server.address, str(file)).stdout == "0,0.0\n1,1.0\n\n"


def test_a_logger_that_was_shut_down_stays_so_in_a_child(server, run_python):
    code = """
logger.log_scalar("x", 0.0)
logger.shutdown()

def work():
    for call in (lambda: logger.log_scalar("x", 1.0), logger.flush):
        try:
            call()
        except LoggerClosedError:
            print("closed", flush=True)

wait(forked(work))
"""
    assert run_python(START + code, server.address).stdout == "closed\nclosed\n"


@pytest.mark.parametrize("who", ["relay", "child"])
def test_killed_while_it_sends(server, run_python, who):
    """A relay that dies is replaced, and nothing is lost or doubled; of a child that dies, what it flushed is there."""
    code = f"""
logger.log_scalar("parent", 0.0)

def work():
    for step in range(20_000):
        logger.log_scalar("x", step, step)
        if step in (5_000, 15_000):
            logger.flush()
            os.kill(relays()[0] if {who == "relay"} else os.getpid(), signal.SIGKILL)
    logger.flush()

pid = forked(work)
status = os.waitpid(pid, 0)[1]
assert status == {0 if who == "relay" else int(signal.SIGKILL)}, status
"""
    run_python(START + code, server.address)
    expected = 20_000 if who == "relay" else 5_001
    assert scalars(server)["x"] == [(step, float(step)) for step in range(expected)]


def test_a_child_logs_while_its_server_is_killed_and_started_again(start_server, run_python):
    first = start_server()
    code = """
logger.log_scalar("parent", 0.0)

def work():
    for step in range(20_000):
        logger.log_scalar("x", step, step)
        if step == 10_000:
            logger.flush()
            print("kill", flush=True)
            sys.stdin.readline()
    logger.flush()
wait(forked(work))
"""
    with subprocess.Popen(
        [sys.executable, "-c", START + code, first.address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        assert program.stdout.readline() == "kill\n"
        first.kill()
        program.stdin.write("go on\n")
        program.stdin.flush()
        start_server("--listen", first.address)
        assert program.wait(60) == 0
    assert scalars(first)["x"] == [(step, float(step)) for step in range(20_000)]


def test_a_child_behind_a_dead_server_says_what_is_unsent_and_ends(server, run_python):
    code = """
logger.log_scalar("x", 0.0)
logger.flush()
os.kill(int(sys.argv[2]), signal.SIGKILL)

def work():
    logger.log_scalar("x", 1.0)
    try:
        logger.shutdown(timeout=0.5)
    except TimeoutError as error:
        print(error, flush=True)

wait(forked(work))
"""
    assert "1 batch with 1 point" in run_python(START + code, server.address, str(server.pid)).stdout


def test_an_interrupt_of_the_whole_group_loses_nothing_in_parent_or_child(server, run_python):
    """As Ctrl-C in a terminal does."""
    code = """
import multiprocessing
os.setpgid(0, 0)
logger.log_scalar("parent", 0.0, 0)
logger.flush()
ready = multiprocessing.get_context("fork").Barrier(2)

def work(name):
    if name == "child":
        logger.log_scalar("child", 0.0, 0)
    step = 1
    try:
        ready.wait()
        while True:
            logger.log_scalar(name, step, step)
            step += 1
            if step == 1000 and name == "parent":
                os.killpg(0, signal.SIGINT)
    finally:
        os.write(1, json.dumps([name, step]).encode() + b"\\n")

multiprocessing.get_context("fork").Process(target=work, args=["child"]).start()
work("parent")
"""
    done = run_python(START + code, server.address, check=False)
    assert "KeyboardInterrupt" in done.stderr
    counts = dict(json.loads(line) for line in done.stdout.splitlines())
    assert counts.keys() == {"parent", "child"}
    found = scalars(server)
    for name, count in counts.items():
        logged = [step for step, _ in found[name]]
        # An interrupt may come between a call and the line that counts it.
        assert logged in (list(range(count)), list(range(count + 1)))


def test_a_logger_made_in_a_child_whose_parent_never_used_grpc_needs_no_relay(server, run_python):
    code = """
import glob, os, sys
from logger_client import GrpcLogger
pid = os.fork()
if not pid:
    logger = GrpcLogger("run", sys.argv[1], connect_timeout=60)
    logger.log_scalar("x", 1.0)
    logger.flush()
    assert not any(open(path).read() for path in glob.glob("/proc/self/task/*/children"))
    logger.shutdown()
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
"""
    run_python(code, server.address)
    assert scalars(server) == {"x": [(0, 1.0)]}


def test_grpcs_own_fork_support_is_warned_of_once(server, run_python):
    code = """
GrpcLogger("other", sys.argv[1], connect_timeout=60).shutdown()
logger.shutdown()
"""
    done = run_python(START + code, server.address, env={"GRPC_ENABLE_FORK_SUPPORT": "1"})
    assert done.stderr.count("GRPC_ENABLE_FORK_SUPPORT is set") == 1


def test_a_relay_ignores_what_ends_a_whole_job(server, run_python):
    """The child may handle SIGTERM by delivering what it has, so its relay has to stay until then."""
    code = f"""
logger.log_scalar("x", 0.0, 0)

def work():
    logger.log_scalar("x", 1.0, 1)
    logger.flush()
    for number in {[int(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)]}:
        os.kill(relays()[0], number)
    [relay] = relays()
    logger.log_scalar("x", 2.0, 2)
    logger.flush()
    assert relays() == [relay]

wait(forked(work))
logger.flush()
"""
    run_python(START + code, server.address)
    assert sorted(scalars(server)["x"]) == [(0, 0.0), (1, 1.0), (2, 2.0)]


HOSTILE = "raise SystemExit('this is not the queue of the standard library')"


@pytest.mark.parametrize("where", ["working directory", "inserted"])
def test_a_module_of_the_same_name_does_no_harm_to_a_relay(server, tmp_path, where):
    """A `queue.py` where the program runs, or in a directory that it adds once it has loaded what it needs."""
    (tmp_path / "program").mkdir()
    program = tmp_path / "program" / "main.py"
    other = tmp_path / "other"
    other.mkdir()
    (other / "queue.py").write_text(HOSTILE)
    (other / "logging.py").write_text(HOSTILE)
    code = f"""
logger.log_scalar("parent", 0.0)
logger.flush()
if {where == "inserted"}:
    sys.path.insert(0, {str(other)!r})

def work():
    logger.log_scalar("child", 1.0)
    logger.flush(timeout=60)

wait(forked(work, lambda: sys.exit(0)))
logger.shutdown()
"""
    program.write_text(START + code)
    done = subprocess.run(
        [sys.executable, str(program), server.address],
        cwd=other if where == "working directory" else tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "not the queue" not in done.stderr
    assert scalars(server) == {"parent": [(0, 0.0)], "child": [(0, 1.0)]}


def test_a_relay_leaves_nothing_open_in_the_child(server, run_python):
    code = """
import gc
logger.log_scalar("parent", 0.0)
logger.flush()

def work():
    for _ in range(3):
        other = GrpcLogger("other", sys.argv[1], connect_timeout=60)
        other.log_scalar("x", 1.0)
        other.shutdown()
        del other
        gc.collect()
    assert relays() == []

wait(forked(work))
"""
    done = run_python(START + code, server.address, env={"PYTHONDEVMODE": "1"})
    assert "ResourceWarning" not in done.stderr, done.stderr


def test_a_relay_that_has_stopped_holds_a_flush_up_no_longer_than_its_time(server, run_python):
    code = """
logger.log_scalar("parent", 0.0)

def work():
    logger.log_scalar("child", 1.0)
    logger.flush()
    [relay] = relays()
    os.kill(relay, signal.SIGSTOP)
    try:
        logger.flush(timeout=0.2)
    except TimeoutError as error:
        print(error, flush=True)
    os.kill(relay, signal.SIGCONT)
    logger.flush()
    logger.shutdown()

wait(forked(work))
"""
    assert "it has not said in time" in run_python(START + code, server.address).stdout


def test_a_flush_through_a_relay_ends_with_its_logger(scripted, run_python):
    """The relay goes on for another logger; the host answers neither flush."""
    server = scripted()
    server.may_flush.clear()
    code = """
def work():
    other = GrpcLogger("other", sys.argv[1], connect_timeout=60)
    other.log_scalar("x", 1.0)
    logger.log_scalar("x", 1.0)
    ended = threading.Event()

    def flush():
        try:
            logger.flush()
        except LoggerClosedError:
            print("closed", flush=True)
        ended.set()

    flushing = threading.Thread(target=flush)
    flushing.start()
    try:
        logger.shutdown(timeout=1)
    except TimeoutError:
        print("timeout", flush=True)
    assert ended.wait(20)
    [relay] = relays()

wait(forked(work))
"""
    done = run_python(START + code, server.address)
    assert server.flush_arrived.is_set()
    assert sorted(done.stdout.split()) == ["closed", "timeout"]
