"""The one catalogue of errors: every reason with its status code, whether to retry, and its public message.

The exceptions that users see, all of them made here:

    ServiceError(Exception)               a refusal with a reason of the catalogue; what travels over the wire
    DeliveryError(RuntimeError)           something that was logged did not arrive; carries the ledger
    DeliveryPending(TimeoutError)         queued and not yet there; do not log it again
    LoggerClosedError(RuntimeError)       a call after `shutdown`
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from logger_service.v1 import errors_pb2

if TYPE_CHECKING:
    from logger_service.v1 import run_service_pb2

DOMAIN = "logger_service.v1"


class Code(enum.IntEnum):
    """The canonical gRPC status codes in use, by number, so that this package does not import grpc."""

    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15


class Reason(enum.IntEnum):
    """`ErrorReason` of the contract, without its prefix."""

    INVALID_NAME = errors_pb2.ERROR_REASON_INVALID_NAME
    INVALID_FIELD = errors_pb2.ERROR_REASON_INVALID_FIELD
    INVALID_SHAPE = errors_pb2.ERROR_REASON_INVALID_SHAPE
    DUPLICATE_NAME = errors_pb2.ERROR_REASON_DUPLICATE_NAME
    TOO_LARGE = errors_pb2.ERROR_REASON_TOO_LARGE
    UNKNOWN_BACKEND = errors_pb2.ERROR_REASON_UNKNOWN_BACKEND
    INVALID_OPTION = errors_pb2.ERROR_REASON_INVALID_OPTION
    NOT_SERVED = errors_pb2.ERROR_REASON_NOT_SERVED
    RUN_NOT_FOUND = errors_pb2.ERROR_REASON_RUN_NOT_FOUND
    RUN_MISSING = errors_pb2.ERROR_REASON_RUN_MISSING
    RUN_EXISTS = errors_pb2.ERROR_REASON_RUN_EXISTS
    RUN_MISMATCH = errors_pb2.ERROR_REASON_RUN_MISMATCH
    RUN_CLOSED = errors_pb2.ERROR_REASON_RUN_CLOSED
    WRITER_FENCED = errors_pb2.ERROR_REASON_WRITER_FENCED
    JOURNAL_LOST = errors_pb2.ERROR_REASON_JOURNAL_LOST
    SEQUENCE_GAP = errors_pb2.ERROR_REASON_SEQUENCE_GAP
    JOURNAL_FULL = errors_pb2.ERROR_REASON_JOURNAL_FULL
    JOURNAL_UNAVAILABLE = errors_pb2.ERROR_REASON_JOURNAL_UNAVAILABLE
    SHUTTING_DOWN = errors_pb2.ERROR_REASON_SHUTTING_DOWN
    NOT_YET_APPLIED = errors_pb2.ERROR_REASON_NOT_YET_APPLIED
    INTERNAL = errors_pb2.ERROR_REASON_INTERNAL


@dataclass(frozen=True)
class ReasonSpec:
    """What a reason means on the wire."""

    code: Code
    """The status code of a call that fails for it."""
    message: str
    """What is said where the place that refuses has nothing more precise to say."""
    retry_after_s: float | None = None
    """When a retry is worth it; None: the same call will fail again."""


CATALOGUE: Mapping[Reason, ReasonSpec] = {
    Reason.INVALID_NAME: ReasonSpec(Code.INVALID_ARGUMENT, "the name breaks the rules of names"),
    Reason.INVALID_FIELD: ReasonSpec(Code.INVALID_ARGUMENT, "a field is missing, malformed or out of range"),
    Reason.INVALID_SHAPE: ReasonSpec(Code.INVALID_ARGUMENT, "the columns of the metric rows do not fit together"),
    Reason.DUPLICATE_NAME: ReasonSpec(Code.INVALID_ARGUMENT, "a name stands twice in one group of rows"),
    Reason.TOO_LARGE: ReasonSpec(Code.INVALID_ARGUMENT, "larger than the server's limit"),
    Reason.UNKNOWN_BACKEND: ReasonSpec(Code.INVALID_ARGUMENT, "the server does not have this backend"),
    Reason.INVALID_OPTION: ReasonSpec(Code.INVALID_ARGUMENT, "the backend does not take this option"),
    Reason.NOT_SERVED: ReasonSpec(Code.UNIMPLEMENTED, "this server does not serve it"),
    Reason.RUN_NOT_FOUND: ReasonSpec(Code.NOT_FOUND, "the host does not know the run"),
    Reason.RUN_MISSING: ReasonSpec(Code.NOT_FOUND, "there is no run of this name to resume"),
    Reason.RUN_EXISTS: ReasonSpec(Code.ALREADY_EXISTS, "there is a run of this name already"),
    Reason.RUN_MISMATCH: ReasonSpec(Code.FAILED_PRECONDITION, "the run is not what the call takes it for"),
    Reason.RUN_CLOSED: ReasonSpec(Code.FAILED_PRECONDITION, "the run was closed; open it again to write to it"),
    Reason.WRITER_FENCED: ReasonSpec(Code.ABORTED, "the run was rewound since this writer opened it"),
    Reason.JOURNAL_LOST: ReasonSpec(Code.DATA_LOSS, "the journal no longer has batches that it acknowledged"),
    Reason.SEQUENCE_GAP: ReasonSpec(Code.FAILED_PRECONDITION, "a batch does not follow the one before it"),
    Reason.JOURNAL_FULL: ReasonSpec(Code.RESOURCE_EXHAUSTED, "the run's share of the journal is full", 1.0),
    Reason.JOURNAL_UNAVAILABLE: ReasonSpec(Code.UNAVAILABLE, "the journal cannot be written at present", 1.0),
    Reason.SHUTTING_DOWN: ReasonSpec(Code.UNAVAILABLE, "the server is ending", 0.5),
    Reason.NOT_YET_APPLIED: ReasonSpec(Code.DEADLINE_EXCEEDED, "still queued when the time was up", 1.0),
    Reason.INTERNAL: ReasonSpec(Code.INTERNAL, "internal error; the server's log says more"),
}


class ServiceError(Exception):
    """A refusal, with a reason of the catalogue. Its text is public: never a path, never an exception's text.

    Args:
        reason: The reason.
        message: A sentence for the user that names the field and the rule; empty: the catalogue's.
        field: The field at fault, for INVALID_ARGUMENT.
        metadata: More for programs, such as the lost range of JOURNAL_LOST.
    """

    def __init__(
        self, reason: Reason, message: str = "", *, field: str = "", metadata: Mapping[str, str] | None = None
    ) -> None:
        self.reason = reason
        self.message = message or CATALOGUE[reason].message
        self.field = field
        self.metadata: dict[str, str] = dict(metadata or {})
        super().__init__(f"{reason.name}: {self.message}")

    @property
    def code(self) -> Code:
        """The status code."""
        return CATALOGUE[self.reason].code

    @property
    def retry_after_s(self) -> float | None:
        """Seconds after which a retry is worth it; None: it is not."""
        return CATALOGUE[self.reason].retry_after_s


class LoggerClosedError(RuntimeError):
    """A call after `shutdown`."""

    def __init__(self) -> None:
        super().__init__("the logger was shut down; make a new one to log more")


class DeliveryError(RuntimeError):
    """Something that was logged did not arrive, for good.

    Attributes:
        ledger: What became of the run's points as the server counts them; None if it could not be asked.
    """

    def __init__(self, message: str, ledger: run_service_pb2.Ledger | None = None) -> None:
        super().__init__(message)
        self.ledger = ledger


class DeliveryPending(TimeoutError):
    """Queued, and not where it was to be within the time. It will get there: do not log it again."""
