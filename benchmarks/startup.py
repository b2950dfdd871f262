"""How long it takes until one can log: importing the client, and a server's start."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from benchmarks.report import Result
from tests.support.server import ServerProcess

_IMPORT = "from time import perf_counter as now; before = now(); import logger_client; print(now() - before)"


def measure(*, quick: bool) -> list[Result]:
    """Returns both, as medians."""
    turns = 4 if quick else 8
    imports, starts = [], []
    for turn in range(turns):
        done = subprocess.run([sys.executable, "-c", _IMPORT], capture_output=True, text=True, check=True)
        with tempfile.TemporaryDirectory() as directory:
            before = perf_counter()
            server = ServerProcess(Path(directory, "data"), Path(directory, "stderr"))
            elapsed = perf_counter() - before
            server.kill()
        if turn:  # The first one warms up.
            imports.append(float(done.stdout))
            starts.append(elapsed)
    return [
        Result("import logger_client", "s", statistics.median(imports), floor=0.2, aim=0.12),
        Result("logger-service serve: from start to SERVING", "s", statistics.median(starts), floor=1.5, aim=0.7),
    ]
