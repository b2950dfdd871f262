"""Rules that the requests of several methods share."""

from __future__ import annotations

from typing import TypeAlias

from logger_service.contract.errors import Reason, ServiceError
from logger_service.v1 import logging_service_pb2, records_pb2

RowRequest: TypeAlias = logging_service_pb2.LogScalarRequest | logging_service_pb2.LogMetricsRequest
UnaryLogRequest: TypeAlias = (
    RowRequest
    | logging_service_pb2.LogHistogramRequest
    | logging_service_pb2.LogTextRequest
    | logging_service_pb2.LogHparamsRequest
)


def require(given: object, field: str) -> None:
    """Refuses a call whose field is not given."""
    if not given:
        raise ServiceError(Reason.INVALID_FIELD, f"{field}: is required", field=field)


def check_length(text: str, limit_bytes: int, field: str) -> None:
    """Refuses a text that is too long in UTF-8."""
    if len(text) > limit_bytes or len(text.encode()) > limit_bytes:
        raise ServiceError(Reason.INVALID_FIELD, f"{field}: at most {limit_bytes} bytes are allowed", field=field)


def set_row(rows: records_pb2.MetricRows, request: RowRequest) -> None:
    """Gives a single row its step and its time, where the request has them."""
    if request.HasField("step"):
        rows.steps.append(request.step)
    if request.time_unix_nano:
        rows.time_unix_nano.append(request.time_unix_nano)
