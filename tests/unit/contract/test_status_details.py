"""Refusals survive the way over the wire, and are what `google.rpc` says."""

from __future__ import annotations

import pytest

from logger_service.contract import status_details
from logger_service.contract.errors import CATALOGUE, DOMAIN, Reason, ServiceError


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_round_trips(reason: Reason) -> None:
    error = ServiceError(reason, "what is wrong", field="hello.run_id", metadata={"first_sequence": "3", "ключ": "ü"})
    back = status_details.decode(int(error.code), status_details.encode(error), "what is wrong")
    assert back is not None
    assert (back.reason, back.message, back.field, back.metadata) == (
        reason,
        "what is wrong",
        "hello.run_id",
        {"first_sequence": "3", "ключ": "ü"},
    )
    assert back.code == CATALOGUE[reason].code


def test_without_field_and_metadata() -> None:
    error = ServiceError(Reason.SHUTTING_DOWN)
    back = status_details.decode(14, status_details.encode(error), "")
    assert back is not None
    assert (back.message, back.field, back.metadata) == ("the server is ending", "", {})


@pytest.mark.parametrize(
    ("code", "details"),
    [
        (14, None),
        (14, b""),
        (14, b"\xff\xff\xff"),
        (13, status_details.encode(ServiceError(Reason.SHUTTING_DOWN))),
        (14, status_details.encode(ServiceError(Reason.SHUTTING_DOWN)).replace(b"SHUTTING_DOWN", b"SHUTTING_DAWN")),
        (14, status_details.encode(ServiceError(Reason.SHUTTING_DOWN)).replace(DOMAIN.encode(), b"other_service.v1.")),
        (14, status_details.encode(ServiceError(Reason.SHUTTING_DOWN)).replace(b"ErrorInfo", b"HelpInfoX")),
    ],
    ids=["none", "empty", "garbage", "other code", "unknown reason", "foreign domain", "no ErrorInfo"],
)
def test_what_is_not_ours_is_none(code: int, details: bytes | None) -> None:
    assert status_details.decode(code, details, "text") is None


def test_a_broken_detail_is_none() -> None:
    encoded = status_details.encode(ServiceError(Reason.SHUTTING_DOWN, "x"))
    # The first field of ErrorInfo (`reason`, length 13) claims more bytes than there are.
    broken = encoded.replace(b"\n\x0dSHUTTING_DOWN", b"\n\x7dSHUTTING_DOWN")
    assert broken != encoded
    assert status_details.decode(14, broken, "x") is None


def test_the_bytes_are_those_of_googleapis() -> None:
    error_details_pb2 = pytest.importorskip("google.rpc.error_details_pb2")
    status_pb2 = pytest.importorskip("google.rpc.status_pb2")
    error = ServiceError(Reason.JOURNAL_FULL, "full", field="batch", metadata={"run": "r"})
    status = status_pb2.Status.FromString(status_details.encode(error))
    assert (status.code, status.message) == (8, "full")
    info, bad_request, retry = (
        error_details_pb2.ErrorInfo(),
        error_details_pb2.BadRequest(),
        error_details_pb2.RetryInfo(),
    )
    for detail, into in zip(status.details, (info, bad_request, retry), strict=True):
        assert detail.Unpack(into)
    assert (info.reason, info.domain, dict(info.metadata)) == ("JOURNAL_FULL", "logger_service.v1", {"run": "r"})
    assert [(v.field, v.description) for v in bad_request.field_violations] == [("batch", "full")]
    assert retry.retry_delay.ToTimedelta().total_seconds() == 1.0

    rewritten = status_pb2.Status(code=8, message="full")
    for detail in (retry, info, bad_request):
        rewritten.details.add().Pack(detail)
    back = status_details.decode(8, rewritten.SerializeToString(), "full")
    assert back is not None
    assert (back.reason, back.field, back.metadata) == (Reason.JOURNAL_FULL, "batch", {"run": "r"})
