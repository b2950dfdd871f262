"""Runs the benchmarks and prints one table."""

from __future__ import annotations

import argparse
import platform
import sys
import tempfile
import time
import warnings
from importlib.metadata import version
from pathlib import Path

from benchmarks import call_times, fleet, startup, throughput
from benchmarks.report import Result, table
from benchmarks.subjects import Subjects
from tests.support.server import ServerProcess

_REFERENCE_US = 5.4


def main() -> None:
    """Measures everything, or what is asked for."""
    parts = ("calls", "round-trip", "throughput", "fleet", "startup")
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions: a look, not a measurement")
    parser.add_argument(
        "--only", nargs="+", choices=parts, default=parts, metavar="PART", help=f"of {', '.join(parts)}"
    )
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")

    begin = time.perf_counter()
    results: list[Result] = []
    with tempfile.TemporaryDirectory() as directory:
        server = ServerProcess(Path(directory, "data"), Path(directory, "stderr"))
        subjects = Subjects(Path(directory), server)
        try:
            for part in arguments.only:
                print(f"{time.perf_counter() - begin:5.0f} s  {part}", file=sys.stderr, flush=True)
                match part:
                    case "calls":
                        results += call_times.measure(subjects, quick=arguments.quick)
                    case "round-trip":
                        results += call_times.measure_round_trip(subjects, quick=arguments.quick)
                    case "throughput":
                        results += throughput.measure(subjects, quick=arguments.quick)
                    case "fleet":
                        results += fleet.measure(quick=arguments.quick)
                    case "startup":
                        results += startup.measure(quick=arguments.quick)
        finally:
            server.kill()
    ours, theirs = version("logger-service"), version("torchrl")
    print(f"logger-service {ours} beside TorchRL {theirs}, Python {platform.python_version()}")
    print(table(results))
    print(f"{_scale(results)}took {time.perf_counter() - begin:.0f} s")


def _scale(results: list[Result]) -> str:
    """Says how this machine compares with the one on which the floors that are figures and no ratios were set."""
    here = next((result.theirs for result in results if result.what.startswith("log_scalar: call")), None)
    if here is None:
        return ""
    return f"figures without a ratio were set where TorchRL's log_scalar takes {_REFERENCE_US} us; here {here:.3g} us\n"


if __name__ == "__main__":
    main()
