"""What did not arrive, for good: logged at once, and kept until `flush` or `shutdown` raises it, once."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter

from logger_client.delivery import words
from logger_service.contract.errors import Reason
from logger_service.v1 import records_pb2

_log = logging.getLogger("logger_client")

_LOG_INTERVAL_S = 10.0
_MESSAGES_KEPT = 10
_KNOWN_REASONS = frozenset(reason.value for reason in Reason)


class Failures:
    """Collects what failed. Thread-safe.

    Args:
        run_name: What the run is called, for messages.
    """

    def __init__(self, run_name: str) -> None:
        self._run_name = run_name
        # Reentrant, as the handler of a signal may flush on the thread that it interrupts.
        self._lock = threading.RLock()
        self._unreported: Counter[str] = Counter()
        self._logged_at: dict[str, float] = {}

    def add(self, what: str, points: int) -> None:
        """Adds points that failed for the same reason."""
        with self._lock:
            kept = what in self._unreported or len(self._unreported) < _MESSAGES_KEPT
            self._unreported[what if kept else "other reasons"] += points
            due = self._may_log(what)
        if due:
            _log.error("run %s: not delivered: %s: %s", self._run_name, words.points(points), what)

    def _may_log(self, what: str) -> bool:
        """Whether it is time: each reason at most once in 10 s, and only so many reasons."""
        now = time.monotonic()
        self._logged_at = {known: at for known, at in self._logged_at.items() if now - at < _LOG_INTERVAL_S}
        if what in self._logged_at or len(self._logged_at) >= _MESSAGES_KEPT:
            return False
        self._logged_at[what] = now
        return True

    def add_rejections(self, told: records_pb2.BatchRejections) -> None:
        """Adds what the host, or a backend of it, refused."""
        for message, points in explain(told):
            self.add(message, points)

    def add_lost(self, writer_id: str, first_sequence: int, last_sequence: int) -> None:
        """Adds batches that a host had acknowledged to a writer and then lost, together with its journal."""
        message = (
            f"the server lost its journal, and with it batches {first_sequence} to {last_sequence} "
            f"that it had acknowledged to writer {writer_id}; what stands in files is still there"
        )
        with self._lock:
            self._unreported[message] += 0
        _log.error("run %s: %s", self._run_name, message)

    def take(self) -> str:
        """Returns in words what is new since the last call; empty: nothing."""
        with self._lock:
            unreported, self._unreported = self._unreported, Counter()
        parts = [f"{words.points(points)}: {what}" if points else what for what, points in unreported.items()]
        return "not delivered: " + "; ".join(parts) if parts else ""


def explain(told: records_pb2.BatchRejections) -> list[tuple[str, int]]:
    """Returns the message and the number of points of each rejection."""
    by = f"the {told.backend} backend" if told.backend else "the server"
    explained = []
    for rejection in told.rejections:
        name = Reason(rejection.reason).name if rejection.reason in _KNOWN_REASONS else "UNKNOWN"
        explained.append((f"refused by {by} ({name}): {rejection.message}", rejection.points))
    return explained
