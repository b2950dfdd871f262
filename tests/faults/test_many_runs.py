"""Many runs on one server: they share its fsyncs, and every point stands once."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from tests.support.lean_writer import LeanWriter
from tests.support.run_files import read_csv_run
from tests.support.scale import sized
from tests.support.strace import strace_command

RUNS = sized(100, 500)
CALLS = sized(20, 200)
CALLS_PER_S = 10
FSYNC_US = 10_000


async def log(address: str) -> None:
    """One writer in each run, at the pace of training jobs that know nothing of each other."""
    writers = [LeanWriter(address, f"run-{number}") for number in range(RUNS)]
    for writer in writers:
        await writer.connect()
    interval_s = 1 / CALLS_PER_S
    await asyncio.gather(
        *(writer.log(CALLS, interval_s, number / RUNS * interval_s) for number, writer in enumerate(writers))
    )
    for writer in writers:
        await writer.flush()
        await writer.finish()


@pytest.mark.timeout(900)
def test_runs_share_fsyncs(start_server, tmp_path, record_property):
    trace = tmp_path / "trace"
    # On a disk whose fsyncs take as long as a network disk's: on a fast one, nobody has to share.
    slow = f"inject=fsync,fdatasync:delay_exit={FSYNC_US}"
    server = start_server(wrapper=strace_command(trace, "fsync,fdatasync", "-y", "-e", slow))
    pid = int(Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()[0])
    asyncio.run(log(server.address))
    journal_syncs = len(re.findall(r"sync\(\d+<[^>]*-wal>", trace.read_text()))
    status = Path(f"/proc/{pid}/status").read_text()
    files = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    memory = int(status.split("VmHWM:")[1].split()[0]) // 1024

    print(f"{RUNS} runs, {RUNS * CALLS} calls: {journal_syncs} fsyncs of the journal, {memory} MiB, {files} open files")
    record_property("journal_syncs", journal_syncs)
    record_property("memory_mib", memory)
    record_property("open_files", files)
    assert 0 < journal_syncs < RUNS * CALLS / 2
    for number in range(RUNS):
        scalars = read_csv_run(server.data_dir / "default" / f"run-{number}").scalars
        assert scalars == {"loss": [(call, float(call)) for call in range(CALLS)]}
