"""Loggers in the processes and threads that training jobs are made of: no point is lost or doubled, nothing hangs."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.scale import sized

TIMEOUT_S = 240


@pytest.fixture
def run_program(deployment, exp_name, tmp_path: Path) -> Callable[..., dict[str, list[tuple[int, float]]]]:
    """Runs a program with a `logger`, from a file as users do, and returns the scalars that the run's files hold then.

    What stands before `def main():` is done in spawned processes too, in which there is no `logger`.
    """

    def run(code: str, env: dict[str, str] | None = None) -> dict[str, list[tuple[int, float]]]:
        opening = deployment.opening(exp_name).replace("\n", "\n    ")
        program = tmp_path / "program.py"
        program.write_text(f"{code}\n\nif __name__ == '__main__':\n    {opening}\n    main(logger)\n")
        done = subprocess.run(
            [sys.executable, str(program)],
            env=env,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        # Another logger of the run: its flush waits for all that the run has accepted.
        deployment.open(exp_name).flush()
        return deployment.read(exp_name).scalars

    return run


def counted(count: int, value: float = 1.0) -> list[tuple[int, float]]:
    return [(step, value) for step in range(count)]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_a_data_loader(run_program, method):
    """Each logs what it loads, with the logger that its dataset has, while the parent logs too."""
    scalars = run_program(f"""
import torch

class Items(torch.utils.data.Dataset):
    def __init__(self, logger):
        self.logger = logger

    def __len__(self):
        return 200

    def __getitem__(self, index):
        worker = torch.utils.data.get_worker_info().id
        self.logger.log_scalar(f"loaded/{{worker}}", index, index)
        self.logger.log_scalar("loaded/all", 1.0)
        return index

def main(logger):
    logger.log_scalar("begun", 1.0)
    loader = torch.utils.data.DataLoader(
        Items(logger.client()), batch_size=10, num_workers=2, multiprocessing_context={method!r}
    )
    for epoch in range(2):
        for batch in loader:
            logger.log_scalar("trained", batch.float().sum())
    logger.flush()
""")
    assert scalars["begun"] == [(0, 1.0)]
    assert [step for step, _ in scalars["trained"]] == list(range(40))
    by_worker = [scalars["loaded/0"], scalars["loaded/1"]]
    assert [len(loaded) for loaded in by_worker] == [200, 200]
    for loaded in by_worker:
        assert sorted(loaded) == sorted([(step, float(step)) for step, _ in loaded])
        first, second = loaded[:100], loaded[100:]
        assert first == second == sorted(first)
    assert sorted(step for loaded in by_worker for step, _ in loaded) == sorted(2 * list(range(200)))
    assert len(scalars["loaded/all"]) == 400
    assert {value for _, value in scalars["loaded/all"]} == {1.0}


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_worker_that_logs_one_point_and_returns(run_program, method):
    scalars = run_program(f"""
import multiprocessing

def work(client, rank):
    client.log_scalar(f"worker/{{rank}}", rank)

def main(logger):
    logger.log_scalar("parent", 1.0)
    context = multiprocessing.get_context({method!r})
    workers = [context.Process(target=work, args=(logger.client(), rank)) for rank in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    logger.log_scalar("parent", 1.0)
""")
    assert scalars == {"parent": counted(2), **{f"worker/{rank}": [(0, float(rank))] for rank in range(3)}}


@pytest.mark.parametrize("support", [None, "0"], ids=["unset", "0"])
def test_forks_while_the_stream_is_busy(run_program, monkeypatch, support):
    forks = sized(20, 100)
    monkeypatch.delenv("GRPC_ENABLE_FORK_SUPPORT", raising=False)
    if support is not None:
        monkeypatch.setenv("GRPC_ENABLE_FORK_SUPPORT", support)
    scalars = run_program(f"""
import os, sys, threading

def child(logger, number):
    for step in range(10):
        logger.log_scalar(f"child/{{number}}", step, step)
    if number % 2:
        logger.flush()
        os._exit(0)
    sys.exit(0)

def main(logger):
    parent, done = os.getpid(), threading.Event()
    count = 0

    def busy():
        nonlocal count
        while not done.is_set():
            logger.log_scalar("busy", 1.0)
            count += 1
            if count % 1000 == 0:
                done.wait(0.001)

    thread = threading.Thread(target=busy)
    thread.start()
    for begin in range(0, {forks}, 4):
        children = []
        for number in range(begin, begin + 4):
            pid = os.fork()
            if not pid:
                child(logger, number)
            children.append(pid)
        for pid in children:
            assert os.waitpid(pid, 0)[1] == 0
    done.set()
    thread.join()
    logger.log_scalar("count", count)
""")
    count = int(scalars.pop("count")[0][1])
    busy = scalars.pop("busy")
    assert busy == counted(len(busy))
    assert len(busy) == count
    rows = [(step, float(step)) for step in range(10)]
    assert scalars == {f"child/{number}": rows for number in range(forks)}


def test_several_threads_that_fork_at_once(run_program):
    """Each fork lets go of what it held, so that the parent and the children go on."""
    forks = sized(20, 100)
    scalars = run_program(f"""
import os, threading

def main(logger):
    forked, done = threading.Barrier(4), threading.Event()

    def busy():  # Has the forks wait for what the logger is at.
        while not done.wait(0.0001):
            logger.log_metrics(dict.fromkeys(map(str, range(100)), 1.0))

    def fork(number):
        for count in range({forks}):
            forked.wait(60)
            pid = os.fork()
            if not pid:
                try:
                    logger.log_scalar(f"child/{{number}}", count, count)
                    logger.flush()
                finally:
                    os._exit(0)
            logger.log_scalar(f"parent/{{number}}", count, count)
            assert os.waitpid(pid, 0)[1] == 0

    writing = threading.Thread(target=busy)
    threads = [threading.Thread(target=fork, args=(number,)) for number in range(4)]
    for thread in [writing, *threads]:
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    writing.join()
    logger.flush()
""")
    busy = [scalars.pop(str(number)) for number in range(100)]
    assert busy == 100 * [counted(len(busy[0]))]
    rows = [(step, float(step)) for step in range(forks)]
    children = {name: sorted(scalars.pop(name)) for name in list(scalars) if name.startswith("child/")}
    assert children == {f"child/{number}": rows for number in range(4)}
    assert scalars == {f"parent/{number}": rows for number in range(4)}


def test_eight_threads_on_one_logger(logger, read):
    ready = threading.Barrier(8)

    def work(number: int) -> None:
        ready.wait()
        for step in range(1_000):
            logger.log_scalar(f"thread/{number}", step, step)
            logger.log_metrics({"shared/a": 1.0, "shared/b": 2.0})

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = [(step, float(step)) for step in range(1_000)]
    assert read().scalars == {
        "shared/a": counted(8_000),
        "shared/b": counted(8_000, 2.0),
        **{f"thread/{number}": rows for number in range(8)},
    }
