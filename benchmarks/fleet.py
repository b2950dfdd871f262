"""500 writers on one server, each with ten calls a second: in one run, and each in a run of its own."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
from pathlib import Path

from benchmarks.report import Result
from tests.support.lean_writer import LeanWriter
from tests.support.server import ServerProcess

WRITERS = 500
CALLS_PER_S = 10


def measure(*, quick: bool) -> list[Result]:
    """Returns the acknowledgement times, the server's memory and files, and how many calls share an fsync."""
    seconds = 5 if quick else 20
    return [result for own_runs in (False, True) for result in _measure_fleet(seconds, own_runs=own_runs)]


def _measure_fleet(seconds: int, *, own_runs: bool) -> list[Result]:
    with tempfile.TemporaryDirectory() as directory:
        trace = Path(directory, "trace")
        # Only these calls stop at strace: the others run at full speed.
        strace = ("strace", "-f", "--seccomp-bpf", "-e", "trace=fsync,fdatasync", "-qq", "-o", str(trace))
        server = ServerProcess(Path(directory, "data"), Path(directory, "stderr"), wrapper=strace)
        try:
            pid = int(Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()[0])
            waits, syncs, files = asyncio.run(_log(server.address, seconds, own_runs, trace, pid))
            memory = _peak_mib(pid)
        finally:
            server.kill()
    label = f"{WRITERS} writers at {CALLS_PER_S}/s in {f'{WRITERS} runs' if own_runs else 'one run'}"
    p99 = statistics.quantiles(waits, n=100)[98]
    return [
        Result(f"{label}: call until acknowledged, p50", "s", statistics.median(waits)),
        Result(f"{label}: call until acknowledged, p99", "s", p99, floor=0.5, aim=0.2),
        Result(f"{label}: server memory, peak", "MiB", memory, floor=400, aim=250),
        Result(f"{label}: server files and sockets open", "", files),
        Result(f"{label}: calls that share one fsync", "", len(waits) / max(syncs, 1), more_is_better=True),
    ]


async def _log(target: str, seconds: int, own_runs: bool, trace: Path, pid: int) -> tuple[list[float], int, int]:
    """Returns how long each call waited to be acknowledged, how many fsyncs there were, and how many files are open."""
    writers = [LeanWriter(target, f"run-{number}" if own_runs else "run") for number in range(WRITERS)]
    for writer in writers:
        await writer.connect()
    syncs_before = trace.read_bytes().count(b"\n")
    # Spread over the interval, as jobs that know nothing of each other are.
    calls = CALLS_PER_S * seconds
    await asyncio.gather(
        *(writer.log(calls, 1 / CALLS_PER_S, number / WRITERS / CALLS_PER_S) for number, writer in enumerate(writers))
    )
    syncs = trace.read_bytes().count(b"\n") - syncs_before
    files = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    await asyncio.gather(*(writer.finish() for writer in writers))
    return [wait for writer in writers for wait in writer.waits], syncs, files


def _peak_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024
