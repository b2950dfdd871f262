"""The list of what a journal found damaged, for the log and for the operator."""

from __future__ import annotations

import logging
import threading

_LOGGER = logging.getLogger(__name__)

_MOST = 1_000
"""Findings kept. A disk that lost everything must not fill the memory and the log with it."""


class DamageReport:
    """Findings, each logged once. May be used by several threads.

    Args:
        silent: Not logged: for a look that is followed by another.
    """

    def __init__(self, *, silent: bool = False) -> None:
        self._silent = silent
        self._lock = threading.Lock()
        self._findings: dict[str, None] = {}

    def add(self, text: str) -> None:
        """Adds a finding, a sentence for the operator, unless it was added before."""
        with self._lock:
            if text in self._findings or len(self._findings) > _MOST:
                return
            if len(self._findings) == _MOST:
                text = "more is damaged than is listed"
            self._findings[text] = None
        if not self._silent:
            _LOGGER.error("%s", text)

    def add_batches(self, run_id: str, first: int, last: int) -> None:
        """Adds the batches of a run from one position to another."""
        which = f"batch at position {first} is" if first == last else f"batches at positions {first} to {last} are"
        self.add(f"run {run_id}: the {which} damaged and left out")

    def texts(self) -> list[str]:
        """Returns the findings, oldest first."""
        with self._lock:
            return list(self._findings)
