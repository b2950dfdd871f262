"""How much one client gets through: until it is acknowledged on disk, and until it stands in the files."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from time import perf_counter
from typing import Any

from benchmarks.call_times import METRICS
from benchmarks.report import Result
from benchmarks.subjects import Subjects


def _log_metrics(logger: Any, calls: int) -> int:
    for step in range(calls):
        logger.log_metrics(METRICS, step)
    return calls * len(METRICS)


def _log_scalars(logger: Any, calls: int) -> int:
    log_scalar = logger.log_scalar
    for step in range(calls):
        log_scalar("loss", 0.123456789, step)
    return calls


def measure(subjects: Subjects, *, quick: bool) -> list[Result]:
    """Returns scalars a second of GrpcLogger and of the direct CSVLogger beside TorchRL's."""
    share = 5 if quick else 1
    turns = 2 if quick else 3

    def rates(log: Callable[[Any, int], int], calls: dict[tuple[str, str], int]) -> dict[tuple[str, str], float]:
        found: dict[tuple[str, str], list[float]] = {subject: [] for subject in calls}
        for turn in range(turns):
            for (kind, level), count in calls.items():
                with subjects.open(kind) as logger:
                    log(logger, count // share // 10)
                    logger.flush()
                    before = perf_counter()
                    points = log(logger, count // share)
                    logger.flush(**({"level": level} if level else {}))
                    if turn:  # The first one warms up.
                        found[kind, level].append(points / (perf_counter() - before))
        return {subject: statistics.median(values) for subject, values in found.items()}

    rows = rates(
        _log_metrics,
        {
            ("grpc", "accepted"): 40_000,
            ("grpc", "applied"): 40_000,
            ("direct", ""): 20_000,
            ("torchrl", ""): 1_000,
            ("torchrl-process", ""): 200,
        },
    )
    scalars = rates(
        _log_scalars,
        {
            ("grpc", "accepted"): 1_000_000,
            ("grpc", "applied"): 1_000_000,
            ("direct", ""): 500_000,
            ("torchrl", ""): 50_000,
            ("torchrl-process", ""): 300,
        },
    )
    process, local = ("torchrl-process", ""), ("torchrl", "")

    def result(
        what: str,
        found: dict[tuple[str, str], float],
        ours: tuple[str, str],
        theirs: tuple[str, str],
        floor: float | None = None,
        aim: float | None = None,
    ) -> Result:
        versus = "process service" if theirs is process else "local CSVLogger"
        return Result(
            what, "/s", found[ours], found[theirs], versus, floor, aim, more_is_better=True, absolute=floor is not None
        )

    return [
        result("log_metrics of 100: acknowledged on disk", rows, ("grpc", "accepted"), process, 3e6, 6e6),
        result("log_metrics of 100: in the CSV files", rows, ("grpc", "applied"), process, 2e6, 5e6),
        result("log_metrics of 100: direct, in the CSV files", rows, ("direct", ""), local),
        result("log_scalar in a loop: acknowledged on disk", scalars, ("grpc", "accepted"), process, 0.7e6, 1.5e6),
        result("log_scalar in a loop: in the CSV files", scalars, ("grpc", "applied"), process),
        result("log_scalar in a loop: direct, in the CSV files", scalars, ("direct", ""), local),
    ]
