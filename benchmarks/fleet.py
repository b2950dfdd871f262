"""500 writers on one server, each with ten calls a second: in one run, and each in a run of its own."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from benchmarks.report import Result
from logger_client import GrpcLogger
from tests.support.server import ServerProcess

PROCESSES = 5
WRITERS_PER_PROCESS = 100
CALLS_PER_S = 10


def measure(*, quick: bool) -> list[Result]:
    """Returns the acknowledgement times, the server's memory and files, and how many writers share an fsync."""
    seconds = 5 if quick else 20
    return [result for runs in ("one", "own") for result in _measure_fleet(runs, seconds)]


def _measure_fleet(runs: str, seconds: int) -> list[Result]:
    with tempfile.TemporaryDirectory() as directory:
        trace = Path(directory, "trace")
        # Only these calls stop at strace: the others run at full speed.
        strace = ("strace", "-f", "--seccomp-bpf", "-e", "trace=fsync,fdatasync", "-qq", "-o", str(trace))
        server = ServerProcess(Path(directory, "data"), Path(directory, "stderr"), wrapper=strace)
        try:
            pid = int(Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()[0])
            command = [sys.executable, "-m", "benchmarks.fleet", server.address, runs, str(seconds)]
            workers = [
                subprocess.Popen([*command, str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                for number in range(PROCESSES)
            ]
            for worker in workers:
                assert worker.stdout is not None
                assert worker.stdout.readline() == "ready\n"
            syncs_before = _lines(trace)
            for worker in workers:
                assert worker.stdin is not None
                print("go", file=worker.stdin, flush=True)
            outputs = []
            for worker in workers:
                assert worker.stdout is not None
                outputs.append(worker.stdout.readline())
            syncs = _lines(trace) - syncs_before
            memory = _peak_mib(pid)
            files = len(list(Path(f"/proc/{pid}/fd").iterdir()))
            for worker in workers:
                worker.communicate("end\n")
        finally:
            server.kill()
    waits = sorted(float(wait) for output in outputs for wait in output.split())
    writers = PROCESSES * WRITERS_PER_PROCESS
    label = f"{writers} writers at {CALLS_PER_S}/s in {'one run' if runs == 'one' else f'{writers} runs'}"
    calls = writers * CALLS_PER_S * seconds
    p99 = statistics.quantiles(waits, n=100)[98]
    return [
        Result(f"{label}: logged until acknowledged, p50", "s", statistics.median(waits)),
        Result(f"{label}: logged until acknowledged, p99", "s", p99, floor=0.5, aim=0.2),
        Result(f"{label}: server memory, peak", "MiB", memory, floor=400, aim=250),
        Result(f"{label}: server files and sockets open", "", files),
        Result(f"{label}: calls that share one fsync", "", calls / max(syncs, 1), more_is_better=True),
    ]


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def _peak_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def work(target: str, runs: str, seconds: int, number: int) -> None:
    """One process of writers: is ready, waits for a line, logs, prints the waits, waits for a line, ends."""
    names = [f"run-{number}-{index}" if runs == "own" else "run" for index in range(WRITERS_PER_PROCESS)]
    loggers = [GrpcLogger(name, target, connect_timeout=60) for name in names]
    for logger in loggers:
        logger.log_scalar(f"loss/{number}", 0.0)
        logger.flush()
    print("ready", flush=True)
    sys.stdin.readline()

    waits: list[float] = []
    end = time.perf_counter() + seconds

    def probe() -> None:
        turn = 0
        while time.perf_counter() < end:
            logger = loggers[turn % len(loggers)]
            before = time.perf_counter()
            logger.log_scalar(f"probe/{number}", 0.5)
            logger.flush(level="accepted")
            waits.append(time.perf_counter() - before)
            turn += 1
            time.sleep(0.05)

    prober = threading.Thread(target=probe)
    prober.start()
    begin = time.perf_counter()
    for call in range(CALLS_PER_S * seconds * len(loggers)):
        loggers[call % len(loggers)].log_scalar(f"loss/{number}", 0.123456789)
        ahead = begin + call / (CALLS_PER_S * len(loggers)) - time.perf_counter()
        if ahead > 0.002:
            time.sleep(ahead)
    prober.join()
    print(*waits, flush=True)
    sys.stdin.readline()
    for logger in loggers:
        logger.shutdown()


if __name__ == "__main__":
    work(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
