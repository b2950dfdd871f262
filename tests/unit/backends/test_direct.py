"""The direct CSVLogger: written soon, at flush and at every end, and continued by the next one, whatever happened."""

from __future__ import annotations

import contextlib
import copy
import fcntl
import gc
import json
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from logger_service.backends import CSVLogger
from logger_service.backends.direct import MOST_BYTES
from logger_service.contract.errors import DeliveryError, LoggerClosedError
from tests.support.run_files import read_csv_run


def lines(root: Path, name: str = "a") -> list[str]:
    path = root / "run" / "scalars" / f"{name}.csv"
    return path.read_text().splitlines() if path.exists() else []


def wait_for(condition, seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def in_child(function) -> None:
    """Runs a function in a forked child, which then ends as interpreters do not: without any exit hook."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            function()
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_it_writes_by_itself_within_moments(tmp_path: Path):
    logger = CSVLogger("run", tmp_path)
    logger.log_scalar("a", 0.5)
    wait_for(lambda: lines(tmp_path) == ["0,0.5"])
    logger.log_scalar("a", 1.5)
    wait_for(lambda: lines(tmp_path) == ["0,0.5", "1,1.5"])
    logger.shutdown()


def test_the_layout_and_the_attributes_are_torchrls(tmp_path: Path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    logger = CSVLogger("a/run")
    assert logger.log_dir == "csv_logs"
    assert logger.experiment.log_dir == "csv_logs/a/run"
    assert repr(logger) == "CSVLogger(exp_name=a/run, experiment=CSVExperiment(log_dir=csv_logs/a/run))"
    logger.experiment.add_scalar("x/y", 2, global_step=4)
    logger.experiment.add_text("note", "hello", global_step=4)
    logger.log_hparams({"lr": 1})
    logger.print_log_dir()
    printed = capsys.readouterr().out
    assert "y.csv  6\n" in printed
    run = tmp_path / "csv_logs/a/run"
    assert (run / "scalars/x/y.csv").read_text() == "4,2.0\n"
    assert json.loads((run / "texts/note.jsonl").read_text())["value"] == "hello"
    assert (run / "texts/hparams0.txt").read_text() == "lr: 1"
    logger.shutdown()
    with pytest.raises(LoggerClosedError):
        logger.experiment.add_scalar("x/y", 2)


def test_a_second_logger_continues(tmp_path: Path):
    for turn in range(3):
        with CSVLogger("run", tmp_path) as logger:
            logger.log_scalar("a", turn)
            logger.log_metrics({"a": turn, "b": turn})
            logger.log_str("note", "x")
            logger.log_hparams({"turn": turn})
    assert [int(line.split(",")[0]) for line in lines(tmp_path)] == list(range(6))
    assert [int(line.split(",")[0]) for line in lines(tmp_path, "b")] == list(range(3))
    notes = (tmp_path / "run/texts/note.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in notes] == [0, 1, 2]
    assert [record["turn"] for record in json.loads((tmp_path / "run/hparams.json").read_text())] == [0, 1, 2]


@pytest.mark.parametrize("note", ["kept", "removed", "torn", "of another version"])
def test_a_logger_after_a_killed_one_mends_and_continues(tmp_path: Path, note: str):
    with CSVLogger("run", tmp_path) as logger:
        for _ in range(3):
            logger.log_scalar("a", 0.5)
    code = """if True:
        import os, signal, sys
        from logger_service.backends import CSVLogger
        logger = CSVLogger("run", sys.argv[1])
        for _ in range(4):
            logger.log_scalar("a", 0.25)
        logger.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    """
    died = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert died.returncode == -signal.SIGKILL
    with (tmp_path / "run/scalars/a.csv").open("ab") as file:
        file.write(b"7,0.1")
    state = tmp_path / "run/.direct.json"
    if note == "removed":
        state.unlink()
    elif note == "torn":
        state.write_bytes(state.read_bytes()[:-20])
    elif note == "of another version":
        state.write_text(json.dumps({**json.loads(state.read_text()), "version": 99}))
    with CSVLogger("run", tmp_path) as logger:
        logger.log_scalar("a", 0.125)
    assert lines(tmp_path) == ["0,0.5", "1,0.5", "2,0.5", "3,0.25", "4,0.25", "5,0.25", "6,0.25", "7,0.125"]


@pytest.mark.parametrize("how", ["end", "exception", "sys.exit"])
def test_the_end_of_the_interpreter_writes_the_rest(tmp_path: Path, run_python, how: str):
    code = """if True:
        import sys
        from logger_service.backends import CSVLogger
        logger = CSVLogger("run", sys.argv[1])
        logger.log_scalar("a", 0.5)
        if sys.argv[2] == "exception":
            raise ValueError
        if sys.argv[2] == "sys.exit":
            sys.exit(3)
    """
    run_python(code, str(tmp_path), how, check=False)
    assert lines(tmp_path) == ["0,0.5"]
    assert json.loads((tmp_path / "run/.direct.json").read_text())["counts"] == [["metrics", "a", 1]]


def test_a_forked_child_writes_its_own_rows_and_not_its_parents(tmp_path: Path):
    logger = CSVLogger("run", tmp_path)
    logger.log_scalar("a", 1.0, 0)
    logger.flush()
    logger.log_scalar("a", 2.0, 1)  # May still be in memory when the child begins.

    def child() -> None:
        for step in range(100):
            logger.log_scalar("a", 3.0, step)
            logger.log_scalar("child", 3.0, step)
        logger.flush()

    in_child(child)
    in_child(logger.shutdown)
    logger.log_scalar("a", 4.0, 2)
    logger.shutdown()
    found = lines(tmp_path)
    assert sorted(found) == sorted(["0,1.0", "1,2.0", "2,4.0", *(f"{step},3.0" for step in range(100))])
    assert lines(tmp_path, "child") == [f"{step},3.0" for step in range(100)]
    with CSVLogger("run", tmp_path) as logger:
        logger.log_scalar("a", 5.0)
        logger.log_scalar("child", 5.0)
    assert lines(tmp_path)[-1] == "103,5.0"
    assert lines(tmp_path, "child")[-1] == "100,5.0"


def test_a_child_forked_while_others_log_can_log(tmp_path: Path):
    logger = CSVLogger("run", tmp_path)
    stop = threading.Event()

    def busy() -> None:
        step = 0
        while not stop.is_set():
            logger.log_scalar("busy", 0.0, step)
            step += 1

    threads = [threading.Thread(target=busy) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for index in range(20):

            def child(index: int = index) -> None:
                logger.log_scalar("children", index, index)
                logger.flush()

            in_child(child)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    logger.shutdown()
    assert lines(tmp_path, "children") == [f"{index},{index}.0" for index in range(20)]


@pytest.mark.parametrize("moment", ["before it writes", "while it writes"])
def test_a_fork_during_shutdown_leaves_the_rest_to_the_parent(tmp_path: Path, run_python, moment: str):
    code = """if True:
        import os, sys, threading
        from logger_service.backends import CSVLogger
        logger = CSVLogger("run", sys.argv[1])
        for step in range(5):
            logger.log_scalar("a", 1.0, step)
        sink = logger._direct
        write, writing, go_on = sink._backend.write, threading.Event(), threading.Event()
        def slow():
            writing.set()
            go_on.wait(30)
            write()
        sink._backend.write = slow
        early = sys.argv[2] == "before it writes"
        if early:
            sink._writing.acquire()
            go_on.set()
        ending = threading.Thread(target=logger.shutdown)
        ending.start()
        while not (sink._ended if early else writing.is_set()):
            pass
        threading.Timer(0.2, go_on.set).start()  # The fork waits for it.
        child = os.fork()
        if not child:
            sys.exit(0)  # With exit hooks.
        if early:
            sink._writing.release()
        ending.join(30)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    assert run_python(code, str(tmp_path), moment).stdout == "0\n"
    assert lines(tmp_path) == [f"{step},1.0" for step in range(5)]


def test_ctrl_c_while_a_fork_waits_breaks_nothing(tmp_path: Path, run_python):
    code = """if True:
        import os, signal, sys, threading
        from logger_service.backends import CSVLogger
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        logger = CSVLogger("run", sys.argv[1])
        writing, backend = threading.Event(), logger._direct._backend
        write = backend.write
        def slow():
            writing.set()
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            interrupted.wait(30)
            write()
        backend.write = slow
        interrupted = threading.Event()
        # The alarm comes while the fork waits; the write ends after it.
        threading.Timer(1.0, interrupted.set).start()
        logger.log_scalar("a", 1.0, 0)
        flushing = threading.Thread(target=logger.flush)
        flushing.start()
        writing.wait(30)
        try:
            if os.fork() == 0:
                os._exit(0)
            os.wait()
            while True:
                signal.pause()
        except KeyboardInterrupt:
            print("interrupted")
        backend.write = write
        flushing.join(30)
        def others():
            with CSVLogger("run2", sys.argv[1]) as other:
                other.log_scalar("a", 2.0, 0)
                if os.fork() == 0:
                    os._exit(0)
                os.wait()
        thread = threading.Thread(target=others)
        thread.start()
        thread.join(30)
        print(thread.is_alive(), flushing.is_alive())
        logger.log_scalar("a", 3.0, 1)
    """
    assert run_python(code, str(tmp_path)).stdout == "interrupted\nFalse False\n"
    assert lines(tmp_path) == ["0,1.0", "1,3.0"]


@pytest.mark.parametrize("first", ["direct", "handles"])
def test_forks_take_locks_in_one_order_whatever_was_imported_first(tmp_path: Path, run_python, first: str):
    code = """if True:
        import importlib, os, sys, threading
        importlib.import_module("logger_service.backends." + sys.argv[2])
        from logger_service.backends import CSVLogger
        logger = CSVLogger("run", sys.argv[1])
        stop = threading.Event()
        def busy():
            while not stop.is_set():
                logger.log_metrics({str(index): 1.0 for index in range(300)})
                logger.flush()
        thread = threading.Thread(target=busy)
        thread.start()
        for _ in range(100):
            if os.fork() == 0:
                os._exit(0)
            os.wait()
        stop.set()
        thread.join()
    """
    run_python(code, str(tmp_path), first)


def test_automatic_steps_count_the_rows_of_all_processes(tmp_path: Path):
    logger = CSVLogger("run", tmp_path)
    long_name = "x" * 300

    def log(count: int) -> None:
        for _ in range(count):
            logger.log_scalar("a", 1.0)
            logger.log_metrics({long_name: 1.0, "text": "x"})
            logger.log_histogram("h", [1.0])
        logger.log_scalar("given", 1.0, 100)
        logger.flush()

    log(3)
    in_child(lambda: log(2))
    log(4)
    in_child(lambda: log(1))
    with CSVLogger("run", tmp_path) as other:
        other.log_scalar("given", 1.0)
        other.log_scalar("a", 1.0)
    logger.log_scalar("given", 1.0)
    log(1)
    logger.shutdown()
    assert [int(line.split(",")[0]) for line in lines(tmp_path)] == list(range(12))
    assert [int(line.split(",")[0]) for line in lines(tmp_path, "given")] == [100] * 4 + [4, 5, 100]
    run = read_csv_run(tmp_path / "run")
    assert [step for step, _ in run.texts["text"]] == list(range(11))
    assert [row["step"] for row in run.histograms["h"]] == list(range(11))
    (long,) = (rows for name, rows in run.scalars.items() if name.startswith("x"))
    assert [step for step, _ in long] == list(range(11))


def test_what_cannot_be_read_costs_nothing(tmp_path: Path):
    logger = CSVLogger("run", tmp_path)
    (tmp_path / "run/hparams.json").mkdir()
    for _ in range(3):
        logger.log_scalar("a", 0.5)
    logger.log_hparams({"lr": 1})
    for _ in range(2):
        with pytest.raises(OSError):
            logger.flush()
    assert lines(tmp_path) == [f"{step},0.5" for step in range(3)]
    (tmp_path / "run/hparams.json").rmdir()
    logger.flush()
    logger.log_scalar("a", 0.5)
    logger.shutdown()
    assert lines(tmp_path) == [f"{step},0.5" for step in range(4)]
    assert json.loads((tmp_path / "run/hparams.json").read_text()) == [{"lr": 1}]
    assert (tmp_path / "run/texts/hparams0.txt").read_text() == "lr: 1"


def test_a_fault_is_told_by_the_next_flush_also_if_the_thread_met_it(tmp_path: Path, monkeypatch):
    logger = CSVLogger("run", tmp_path)
    backend = logger._direct._backend
    apply = backend.apply
    met = threading.Event()

    def faulty(batch):
        met.set()
        raise ZeroDivisionError("of the test")

    monkeypatch.setattr(backend, "apply", faulty)
    logger.log_scalar("a", 1.0)
    assert met.wait(30)
    monkeypatch.setattr(backend, "apply", apply)
    logger.log_scalar("a", 2.0)
    with pytest.raises(DeliveryError, match="ZeroDivisionError: of the test"):
        logger.flush()
    logger.shutdown()
    assert lines(tmp_path) == ["1,2.0"]


@pytest.mark.parametrize("call", ["flush", "shutdown"])
def test_waiting_ends_with_the_time_given(tmp_path: Path, call: str):
    logger = CSVLogger("run", tmp_path)
    logger.log_scalar("a", 1.0)
    other = os.open(tmp_path / "run", os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    with pytest.raises(TimeoutError, match=r"0\.1 s"):
        getattr(logger, call)(timeout=0.1)
    os.close(other)
    wait_for(lambda: lines(tmp_path) == ["0,1.0"])
    logger.shutdown()


def test_a_logger_that_nobody_has_any_more_writes_the_rest_and_ends(tmp_path: Path):
    before = set(os.listdir("/proc/self/task"))
    for number in range(10):
        logger = CSVLogger(f"run{number}", tmp_path)
        logger.log_scalar("a", 1.0)
        del logger
    gc.collect()
    wait_for(lambda: set(os.listdir("/proc/self/task")) <= before)
    for number in range(10):
        assert read_csv_run(tmp_path / f"run{number}").scalars == {"a": [(0, 1.0)]}
        assert (tmp_path / f"run{number}" / ".direct.json").exists()


def test_flushes_while_it_is_shut_down_leave_nothing_open(tmp_path: Path):
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        logger = CSVLogger("run", tmp_path)
        start = threading.Barrier(3)

        def flush(logger=logger, start=start) -> None:
            start.wait()
            with contextlib.suppress(LoggerClosedError):
                for _ in range(10):
                    logger.flush()

        threads = [threading.Thread(target=flush) for _ in range(2)]
        for thread in threads:
            thread.start()
        logger.log_scalar("a", 1.0)
        start.wait()
        logger.shutdown()
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive()
    assert len(lines(tmp_path)) == 20
    assert len(os.listdir("/proc/self/fd")) == before


def test_workers_of_multiprocessing_write_the_rest_when_they_end(tmp_path: Path, run_python):
    code = """if True:
        import multiprocessing, sys
        from logger_service.backends import CSVLogger
        def work(logger, name):
            logger.log_scalar(name, 1.0)
        if __name__ == "__main__":
            logger = CSVLogger("run", sys.argv[1])
            context = multiprocessing.get_context("fork")
            workers = [context.Process(target=work, args=(logger, f"worker{index}")) for index in range(3)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
    """
    run_python(code, str(tmp_path))
    assert [lines(tmp_path, f"worker{index}") for index in range(3)] == [["0,1.0"]] * 3


def test_two_loggers_of_one_run_keep_each_others_hparams(tmp_path: Path):
    first, second = CSVLogger("run", tmp_path), CSVLogger("run", tmp_path)
    for number, logger in enumerate((first, second, first, second)):
        logger.log_hparams({"number": number})
        logger.flush()
    first.log_hparams({"number": 4})
    second.shutdown()
    first.shutdown()
    with CSVLogger("run", tmp_path) as third:
        third.log_hparams({"number": 5})
    held = json.loads((tmp_path / "run" / "hparams.json").read_text())
    assert held == [{"number": number} for number in range(6)]
    for number in range(6):
        assert (tmp_path / "run" / "texts" / f"hparams{number}.txt").read_text() == f"number: {number}"


def test_a_pickled_copy_is_another_logger_of_the_run(tmp_path: Path):
    logger = CSVLogger("run", tmp_path)
    copies = [pickle.loads(pickle.dumps(logger)), copy.deepcopy(logger)]  # noqa: S301
    for step in range(50):
        for each in (logger, *copies):
            each.log_metrics({"a": 1.0, "b": 2.0}, step)
            each.flush()
    for each in (*copies, logger):
        each.shutdown()
    assert lines(tmp_path) == [f"{step},1.0" for step in range(50) for _ in range(3)]
    assert lines(tmp_path, "b") == [f"{step},2.0" for step in range(50) for _ in range(3)]
    with CSVLogger("run", tmp_path) as again:
        again.log_metrics({"a": 1.0})
    assert lines(tmp_path)[-1] == "150,1.0"


def test_a_closed_logger_cannot_be_copied(tmp_path: Path):
    logger = CSVLogger("run", tmp_path)
    logger.shutdown()
    for make in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(LoggerClosedError):
            make(logger)


def test_a_full_disk_is_told_and_costs_nothing(tmp_path: Path, run_python):
    code = """if True:
        import resource, sys
        from logger_service.backends import CSVLogger
        logger = CSVLogger("run", sys.argv[1])
        resource.setrlimit(resource.RLIMIT_FSIZE, (50, resource.RLIM_INFINITY))
        for step in range(100):
            logger.log_scalar("a", 0.5, step)
        for _ in range(2):
            try:
                logger.flush()
            except OSError as error:
                print(type(error).__name__)
        logger.log_scalar("a", 0.5, 100)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        logger.flush()
    """
    assert run_python(code, str(tmp_path)).stdout == "OSError\nOSError\n"
    assert lines(tmp_path) == [f"{step},0.5" for step in range(101)]


def test_memory_is_bounded_when_the_disk_is_full(tmp_path: Path):
    logger = CSVLogger("run", tmp_path)
    (tmp_path / "run/scalars/a.csv").mkdir()
    logged = 0

    def log_until_it_raises() -> None:
        nonlocal logged
        while logged * 26 < 4 * MOST_BYTES:
            logger.log_scalar("a", 0.5, logged)
            logged += 1

    with pytest.raises(OSError):
        log_until_it_raises()
    (tmp_path / "run/scalars/a.csv").rmdir()
    logger.log_scalar("a", 0.5, logged)  # The call that raised had not taken its row.
    logger.shutdown()
    assert lines(tmp_path) == [f"{step},0.5" for step in range(logged + 1)]


def test_a_shutdown_that_cannot_write_says_so_and_ends(tmp_path: Path):
    logger = CSVLogger("run", tmp_path)
    (tmp_path / "run/scalars/a.csv").mkdir()
    logger.log_scalar("a", 0.5)
    with pytest.raises(DeliveryError, match="directory"):
        logger.shutdown()
    assert not logger.is_alive
    logger.shutdown()


def test_nothing_stays_open_or_running_after_shutdown(tmp_path: Path):
    before, threads = set(os.listdir("/proc/self/fd")), os.listdir("/proc/self/task")
    logger = CSVLogger("run", tmp_path)
    logger.log_metrics({f"name{index}": 1.0 for index in range(20)})
    logger.shutdown()
    wait_for(lambda: set(os.listdir("/proc/self/task")) <= set(threads))
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_many_threads_lose_nothing(tmp_path: Path):
    logger = CSVLogger("run", tmp_path)

    def work(index: int) -> None:
        for step in range(5000):
            logger.log_scalar(f"own{index}", step, step)
            logger.log_scalar("shared", index)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    logger.shutdown()
    for index in range(4):
        assert lines(tmp_path, f"own{index}") == [f"{step},{step}.0" for step in range(5000)]
    shared = [line.split(",") for line in lines(tmp_path, "shared")]
    assert [int(step) for step, _ in shared] == list(range(20_000))
    assert sorted(value for _, value in shared) == sorted([f"{index}.0" for index in range(4)] * 5000)


def test_an_interrupt_of_writing_loses_and_doubles_nothing(tmp_path: Path):
    logger = CSVLogger("run", str(tmp_path))
    began = ended = 0
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for _ in range(100):
            with contextlib.suppress(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, random.uniform(0.0005, 0.003))
                while True:
                    began += 1
                    logger.log_scalar("x", 1.0)
                    ended += 1
                    logger.flush()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    logger.shutdown()
    found = read_csv_run(tmp_path / "run").scalars["x"]
    assert ended <= len(found) <= began
    assert found == [(step, 1.0) for step in range(len(found))]


def test_an_interrupt_of_the_first_call_leaves_a_logger_that_works(tmp_path: Path, run_python):
    code = """if True:
        import random, signal, sys
        from logger_service.backends import CSVLogger
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        loggers = [CSVLogger(f"run{number}", sys.argv[1]) for number in range(300)]
        for number, logger in enumerate(loggers):
            began = ended = 0
            try:
                signal.setitimer(signal.ITIMER_REAL, random.uniform(0.00002, 0.0006))
                while True:
                    began += 1
                    logger.log_scalar("a", 1.0)
                    ended += 1
                    if began == 3:
                        logger.flush()
            except KeyboardInterrupt:
                pass
            logger.log_scalar("b", 1.0)
            logger.shutdown()
            path = f"{sys.argv[1]}/run{number}/scalars/"
            assert len(open(path + "b.csv").readlines()) == 1
            if ended:
                assert ended <= len(open(path + "a.csv").readlines()) <= began
    """
    done = run_python(code, str(tmp_path))
    assert done.stderr == ""


def test_the_end_of_the_interpreter_goes_on_with_an_interrupted_shutdown(tmp_path: Path, run_python):
    code = """
import signal, sys
from logger_service.backends import CSVLogger
signal.signal(signal.SIGALRM, signal.default_int_handler)
logger = CSVLogger("run", sys.argv[1])
for step in range(1_000):
    logger.log_scalar("x", 1.0)
try:
    signal.setitimer(signal.ITIMER_REAL, 0.0002)
    logger.shutdown()
except KeyboardInterrupt:
    print("interrupted")
"""
    run_python(code, str(tmp_path))
    assert read_csv_run(tmp_path / "run").scalars["x"] == [(step, 1.0) for step in range(1_000)]
