"""What is tried again, and when."""

from __future__ import annotations

import pytest

from logger_client.delivery.retry import Backoff, asked_delay_s, call_may_be_retried, stream_may_be_retried
from logger_client.transports.base import CallFailed
from logger_service.contract import status_details
from logger_service.contract.errors import Reason, ServiceError

RETRIED = {Reason.JOURNAL_FULL, Reason.JOURNAL_UNAVAILABLE, Reason.SHUTTING_DOWN, Reason.NOT_YET_APPLIED}


def refusal(reason: Reason) -> CallFailed:
    error = ServiceError(reason)
    return CallFailed(error.code, error.message, status_details.encode(error))


@pytest.mark.parametrize("reason", Reason)
def test_refusals_are_retried_where_the_catalogue_says_so(reason):
    failure = refusal(reason)
    assert call_may_be_retried(failure) is (reason in RETRIED)
    assert stream_may_be_retried(failure) is (reason in RETRIED | {Reason.SEQUENCE_GAP, Reason.INTERNAL})
    assert (asked_delay_s(failure) > 0) is (reason in RETRIED)


@pytest.mark.parametrize(
    ("code", "call", "stream"),
    [
        (1, False, True),  # CANCELLED
        (2, False, True),  # UNKNOWN
        (3, False, False),  # INVALID_ARGUMENT
        (4, True, True),  # DEADLINE_EXCEEDED
        (5, False, False),  # NOT_FOUND
        (7, False, False),  # PERMISSION_DENIED
        (8, False, False),  # RESOURCE_EXHAUSTED, which is retried only with RetryInfo
        (12, False, False),  # UNIMPLEMENTED
        (13, False, True),  # INTERNAL
        (14, True, True),  # UNAVAILABLE
        (15, False, False),  # DATA_LOSS
        (16, False, False),  # UNAUTHENTICATED
    ],
)
def test_what_is_not_of_the_contract_is_judged_by_its_code(code, call, stream):
    failure = CallFailed(code, "whatever")
    assert call_may_be_retried(failure) is call
    assert stream_may_be_retried(failure) is stream
    assert asked_delay_s(failure) == 0


def test_waits_grow_to_the_cap_with_jitter():
    backoff = Backoff(initial_s=0.1, factor=2, cap_s=10)
    for attempt in (*range(12), 10_000):
        longest = min(10, 0.1 * 2 ** min(attempt, 100))
        waits = {backoff.delay_s(attempt) for _ in range(50)}
        assert all(longest / 2 <= wait <= longest for wait in waits)
        assert len(waits) > 1
    assert backoff.delay_s(0, least_s=3) >= 3
