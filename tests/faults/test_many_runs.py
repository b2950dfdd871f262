"""Many runs on one server: they share its fsyncs, and every point stands once."""

from __future__ import annotations

import contextlib
import re
import time
from pathlib import Path

import pytest

from logger_client import GrpcLogger
from tests.support.run_files import read_csv_run
from tests.support.scale import sized
from tests.support.strace import strace_command

RUNS = sized(60, 500)
CALLS = sized(20, 200)
CALLS_PER_S = 10


@pytest.mark.timeout(900)
def test_runs_share_fsyncs(start_server, tmp_path, record_property):
    trace = tmp_path / "trace"
    server = start_server(wrapper=strace_command(trace, "fsync,fdatasync", "-y"))
    pid = int(Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()[0])
    with contextlib.ExitStack() as stack:
        loggers = []
        for number in range(RUNS):
            logger = GrpcLogger(f"run-{number}", server.address, connect_timeout=60)
            loggers.append(stack.enter_context(logger))
        begin = time.monotonic()
        for call in range(CALLS):
            for number, logger in enumerate(loggers):
                logger.log_scalar("loss", call + number / RUNS, call)
            # The pace of a fleet of training jobs; nothing depends on it but how much there is to share.
            time.sleep(max(0.0, begin + (call + 1) / CALLS_PER_S - time.monotonic()))
        for logger in loggers:
            logger.flush(level="accepted")
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
        assert scalars == {"loss": [(call, call + number / RUNS) for call in range(CALLS)]}
