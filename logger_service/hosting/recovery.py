"""What a recovery found in a run's files: counts go on from their rows, and the run's owner is told."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from logger_service.backends.base import Recovery
from logger_service.hosting.writer import BASELINE_WRITER_ID, WriterState
from logger_service.v1 import query_service_pb2

if TYPE_CHECKING:
    from logger_service.hosting.run import Run

_log = logging.getLogger(__name__)

_NAMED = 5


def take_over(run: Run, found: Recovery, *, adopted: bool) -> int:
    """Makes what a recovery found the run's own.

    Args:
        run: The run.
        found: What was found.
        adopted: Whether the journal knew nothing of the files.

    Returns:
        How many points the files hold that no writer of this journal wrote.
    """
    with run.lock:
        known = {key: run.counters.counts.get(key, 0) for key in found.rows}
        run.counters.raise_to(found.rows)
    beyond = sum(max(0, rows - known[key]) for key, rows in found.rows.items())
    if beyond:
        _count_baseline(run, beyond)
    if adopted and found.rows:
        run.add_notice(
            "RUN_ADOPTED",
            f"the journal did not know the run; its files hold {beyond:,} points more, and were continued",
        )
    elif found.kept:
        run.add_notice("FILES_NEWER", f"files held more than the journal, and were continued: {_named(found.kept)}")
    if found.short:
        run.add_notice("FILES_SHORTER", f"files had lost bytes, and were continued: {_named(found.short)}")
    if found.mended:
        _log.warning(
            "run %s: torn ends of files were cut, and written again from the journal: %s",
            run.name,
            _named(found.mended),
        )
    return beyond


def _count_baseline(run: Run, points: int) -> None:
    """Puts points that the files hold, and no writer of this journal wrote, into the ledger."""
    with run.lock:
        baseline = run.writers.get(BASELINE_WRITER_ID)
        if baseline is None:
            baseline = run.writers[BASELINE_WRITER_ID] = WriterState(BASELINE_WRITER_ID, run.row.epoch)
            baseline.status = query_service_pb2.WRITER_STATUS_FINISHED
        baseline.accepted += points
        baseline.last_seen_ns = time.time_ns()
        run.submit_with_counters([baseline.row(run.run_id)], None)


def _named(files: Mapping[str, int]) -> str:
    """Lists some files with their bytes."""
    shown = ", ".join(f"{path} ({size:,} bytes)" for path, size in sorted(files.items())[:_NAMED])
    return shown if len(files) <= _NAMED else f"{shown} and {len(files) - _NAMED:,} more"
