"""When to try again, as plain data: which failures pass, and how long to wait."""

from __future__ import annotations

import random
from dataclasses import dataclass

from logger_client.transports.base import CANCELLED, UNKNOWN, CallFailed
from logger_service.contract.errors import Code, Reason

# Batches are numbered and sending one again changes nothing, so a stream may be opened again after whatever says that
# the connection broke rather than that we were refused: proxies and gRPC itself use all of these for it.
_BROKEN_STREAM = frozenset({CANCELLED, UNKNOWN, Code.DEADLINE_EXCEEDED, Code.INTERNAL, Code.UNAVAILABLE})


@dataclass(frozen=True)
class Backoff:
    """How long to wait before the next attempt: exponential, with jitter, so that clients do not come back together."""

    initial_s: float = 0.1
    """The longest wait before the first attempt that follows a failure."""
    factor: float = 2.0
    """How much longer each wait may be than the one before."""
    cap_s: float = 10.0
    """The longest wait."""

    def delay_s(self, attempt: int, least_s: float = 0.0) -> float:
        """Returns how long to wait, between a half of the longest wait and all of it.

        Args:
            attempt: How many attempts have failed since the last success, less one.
            least_s: What the other side asked for; never waited less.
        """
        longest = min(self.cap_s, self.initial_s * self.factor ** min(attempt, 32))
        return max(least_s, 0.0) + longest * random.uniform(0.5, 1.0)


def stream_may_be_retried(failure: CallFailed) -> bool:
    """Whether a stream that ended so may be opened again as it is."""
    if failure.error is None:
        return failure.code in _BROKEN_STREAM
    # A fault of the server may pass; giving up would lose what the client still holds.
    return failure.error.retry_after_s is not None or failure.error.reason in (Reason.SEQUENCE_GAP, Reason.INTERNAL)


def call_may_be_retried(failure: CallFailed) -> bool:
    """Whether a call that failed so, and that may be repeated, is worth another attempt."""
    if failure.error is None:
        return failure.code in (Code.DEADLINE_EXCEEDED, Code.UNAVAILABLE)
    return failure.error.retry_after_s is not None


def asked_delay_s(failure: CallFailed) -> float:
    """How long the other side asked to wait, in seconds; 0: it did not."""
    return 0.0 if failure.error is None else failure.error.retry_after_s or 0.0
