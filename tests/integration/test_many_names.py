"""10,000 names in a process that may open 256 files: each file is exact, over gRPC and in the process that logs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from logger_client import GrpcLogger
from tests.support.run_files import read_csv_run

OPEN_FILES = 256
LIMITED = ("bash", "-c", f'ulimit -n {OPEN_FILES} && exec "$@"', "bash")
"""A command that runs another one in its own process, with so many descriptors at most."""
NAMES = [f"group {index % 100}/metric.{index}" for index in range(10_000)]
TEXTS = NAMES[::20]
ROW = 500
"""How many names are logged in one call."""


def log_rounds(logger: Any) -> None:
    """Logs two values to each name, and texts to some, in between; each round is flushed."""
    for round in range(2):
        for begin in range(0, len(NAMES), ROW):
            logger.log_metrics({NAMES[index]: index + round / 4 for index in range(begin, begin + ROW)}, round)
            for name in TEXTS[begin // 20 : (begin + ROW) // 20]:
                logger.log_str(name, f"{name} in round {round}", round)
        logger.flush()


def log_more(logger: Any) -> None:
    """Logs on to some names, at the steps that follow from the rows that they have."""
    for name in TEXTS:
        logger.log_scalar(name, 0.5)
    logger.flush()


def check(run_dir: Path) -> None:
    """Each file has what was logged to its name, and there are no others."""
    files = read_csv_run(run_dir)
    expected = {name: [(0, index), (1, index + 0.25)] for index, name in enumerate(NAMES)}
    for name in TEXTS:
        expected[name].append((2, 0.5))
    assert files.scalars == expected
    assert files.texts == {name: [(round, f"{name} in round {round}") for round in range(2)] for name in TEXTS}


def open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def test_over_grpc(start_server, data_dir: Path) -> None:
    server = start_server(wrapper=LIMITED)
    assert f"{OPEN_FILES}" in Path(f"/proc/{server.pid}/limits").read_text().split("Max open files")[1].split("\n")[0]
    with GrpcLogger("run", server.address, connect_timeout=60) as logger:
        log_rounds(logger)
        assert open_files(server.pid) < OPEN_FILES
        server.restart()  # Killed: what was written is found again and gone on with.
        log_more(logger)
        assert open_files(server.pid) < OPEN_FILES
    assert server.terminate() == 0
    assert "Too many open files" not in server.stderr
    check(data_dir / "default" / "run")


def log_directly(log_dir: str) -> None:
    """What the limited process does; prints how many files it had open."""
    import os

    from logger_service.backends import CSVLogger

    counts = []
    for log in (log_rounds, log_more):  # The second logger finds the files of the first one.
        with CSVLogger("run", log_dir) as logger:
            log(logger)
            counts.append(open_files(os.getpid()))
    print(json.dumps(counts))


def test_direct(tmp_path: Path) -> None:
    code = "import sys; from tests.integration.test_many_names import log_directly; log_directly(sys.argv[1])"
    done = subprocess.run(
        [*LIMITED, sys.executable, "-c", code, str(tmp_path)],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        timeout=240,
        check=True,
    )
    assert all(count < OPEN_FILES for count in json.loads(done.stdout))
    check(tmp_path / "run")
