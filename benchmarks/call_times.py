"""How long a call takes its caller: the median over many calls, the loggers taking turns."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

import torch
from tensordict import TensorDict

from benchmarks.report import Result
from benchmarks.subjects import Subjects

METRICS = {f"train/metric_{index}": index / 7 for index in range(100)}


def _scalar(logger: Any) -> Callable[[int], None]:
    def call(step: int) -> None:
        logger.log_scalar("loss", 0.123456789, step)

    return call


def _metrics(logger: Any) -> Callable[[int], None]:
    def call(step: int) -> None:
        logger.log_metrics(METRICS, step)

    return call


def _tensordict(logger: Any) -> Callable[[int], None]:
    metrics = TensorDict({name.replace("/", "_"): torch.tensor(value) for name, value in METRICS.items()})

    def call(step: int) -> None:
        logger.log_metrics(metrics, step)

    return call


# What, how to call it, calls timed together, calls of one of our turns and of TorchRL's, floor, aim.
_CASES: list[tuple[str, Callable[[Any], Callable[[int], None]], int, int, int, float, float]] = [
    ("log_scalar", _scalar, 10, 20_000, 5_000, 5, 10),
    ("log_metrics, 100 floats", _metrics, 1, 2_000, 200, 50, 100),
    ("log_metrics, TensorDict of 100 CPU scalars", _tensordict, 1, 1_000, 200, 15, 30),
]


def measure(subjects: Subjects, *, quick: bool) -> list[Result]:
    """Returns the call times of GrpcLogger and of the direct CSVLogger beside TorchRL's local one."""
    results = []
    for what, make, together, our_calls, their_calls, floor, aim in _CASES:
        medians = _medians(
            subjects, make, together, {"grpc": our_calls, "direct": our_calls, "torchrl": their_calls}, quick
        )
        theirs = medians["torchrl"]
        results.append(
            Result(f"{what}: call, gRPC, p50", "us", medians["grpc"], theirs, "local CSVLogger", floor=floor, aim=aim)
        )
        results.append(Result(f"{what}: call, direct, p50", "us", medians["direct"], theirs, "local CSVLogger"))
    return results


def measure_round_trip(subjects: Subjects, *, quick: bool) -> list[Result]:
    """Returns the time of a scalar that is waited for, beside TorchRL's process service."""
    medians = _medians(subjects, _scalar, 1, {"grpc-sync": 300, "torchrl-process": 300}, quick)
    return [
        Result(
            "log_scalar, delivery='sync': on disk and in the file, p50",
            "us",
            medians["grpc-sync"],
            medians["torchrl-process"],
            "process service",
            floor=1,
            aim=2,
        )
    ]


def _medians(
    subjects: Subjects, make: Callable[[Any], Callable[[int], None]], together: int, calls: dict[str, int], quick: bool
) -> dict[str, float]:
    """Returns the median microseconds of a call by kind of logger."""
    times: dict[str, list[float]] = {kind: [] for kind in calls}
    for turn in range(2 if quick else 5):
        for kind, count in calls.items():
            with subjects.open(kind) as logger:
                call = make(logger)
                for step in range(count // 10):
                    call(step)
                for begin in range(0, count, together):
                    before = perf_counter_ns()
                    for step in range(begin, begin + together):
                        call(step)
                    elapsed = perf_counter_ns() - before
                    if turn:  # The first one warms up.
                        times[kind].append(elapsed / together / 1000)
    return {kind: statistics.median(values) for kind, values in times.items()}
