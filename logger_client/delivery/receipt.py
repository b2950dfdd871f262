"""What a caller of `delivery="sync"` waits with until its batch is applied, refused or given up."""

from __future__ import annotations

import threading


class Receipt:
    """The outcome of one batch. Written by the sender, waited for by the caller."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._settled = threading.Event()
        self._abandoned = False
        self._refusals: list[str] = []

    @property
    def waits(self) -> bool:
        """Whether somebody still waits for the outcome."""
        return not self._abandoned and not self._settled.is_set()

    def refuse(self, message: str) -> bool:
        """Adds why something of the batch was refused; returns False if nobody waits for it any more."""
        with self._lock:
            if self.waits:
                self._refusals.append(message)
                return True
            return False

    def settle(self) -> None:
        """The outcome is complete."""
        with self._lock:
            self._settled.set()

    def wait(self, timeout_s: float | None) -> list[str] | None:
        """Waits for the outcome.

        Returns:
            Why what was refused was refused, empty if nothing was; None if the time was up first: the outcome is then
            the business of the next flush.
        """
        try:
            self._settled.wait(timeout_s)
        finally:
            with self._lock:
                settled = self._settled.is_set()
                self._abandoned = not settled
        return self._refusals if settled else None
