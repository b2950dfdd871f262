"""What a caller of `delivery="sync"` waits with until its batch is applied, refused or given up."""

from __future__ import annotations

import threading


class Receipt:
    """The outcome of one batch. Written by the sender, waited for by the caller.

    The caller may be the main thread, which Ctrl-C interrupts: so it waits with a plain lock, and an `Event`, which is
    Python code, would not do.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._unsettled = threading.Lock()
        self._unsettled.acquire()
        self._settled = False
        self._abandoned = False
        self._refusals: list[str] = []

    @property
    def waits(self) -> bool:
        """Whether somebody still waits for the outcome."""
        return not self._abandoned and not self._settled

    def refuse(self, message: str) -> bool:
        """Adds why something of the batch was refused; returns False if nobody waits for it any more."""
        with self._lock:
            if self.waits:
                self._refusals.append(message)
                return True
            return False

    def settle(self) -> None:
        """The outcome is complete. May be called again."""
        with self._lock:
            if not self._settled:
                self._settled = True
                self._unsettled.release()

    def wait(self, timeout_s: float | None) -> list[str] | None:
        """Waits for the outcome, with None as long as it takes. To be called once.

        Returns:
            Why what was refused was refused, empty if nothing was; None if the time was up first: the outcome is then
            the business of the next flush.
        """
        try:
            self._unsettled.acquire(timeout=-1.0 if timeout_s is None else min(timeout_s, threading.TIMEOUT_MAX))
        finally:
            with self._lock:
                settled = self._settled
                self._abandoned = not settled
        return self._refusals if settled else None

    def abandon(self) -> None:
        """Nobody waits for it, if anybody did: Ctrl-C may have come before the waiting began."""
        self._abandoned = True
