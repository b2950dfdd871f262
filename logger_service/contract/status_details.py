"""`ServiceError` <-> `google.rpc.Status`: how a refusal travels in the trailing metadata of a failed call.

The few messages of `google.rpc` in use are declared here, in a pool of their own: the same bytes on the wire as
`googleapis-common-protos` writes, without depending on it and without touching the default pool, where an application
may have registered the real ones.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from logger_service.contract.errors import DOMAIN, Reason, ServiceError

METADATA_KEY = "grpc-status-details-bin"
"""The key of the trailing metadata that holds the serialized `google.rpc.Status`."""

_TYPE_URL = "type.googleapis.com/google.rpc."

_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "string": _Field.TYPE_STRING,
    "bytes": _Field.TYPE_BYTES,
    "int32": _Field.TYPE_INT32,
    "int64": _Field.TYPE_INT64,
}

# Message -> its fields as (number, name, type); a type in brackets is repeated. A map is a repeated entry with a key
# and a value, an Any a type's URL and its bytes: on the wire there is no difference.
_MESSAGES: dict[str, list[tuple[int, str, str]]] = {
    "Any": [(1, "type_url", "string"), (2, "value", "bytes")],
    "Duration": [(1, "seconds", "int64"), (2, "nanos", "int32")],
    "Status": [(1, "code", "int32"), (2, "message", "string"), (3, "details", "[Any]")],
    "Entry": [(1, "key", "string"), (2, "value", "string")],
    "ErrorInfo": [(1, "reason", "string"), (2, "domain", "string"), (3, "metadata", "[Entry]")],
    "FieldViolation": [(1, "field", "string"), (2, "description", "string")],
    "BadRequest": [(1, "field_violations", "[FieldViolation]")],
    "RetryInfo": [(1, "retry_delay", "Duration")],
}


def _declare() -> dict[str, Any]:
    """Makes the message classes by name."""
    file = descriptor_pb2.FileDescriptorProto(
        name="logger_service/contract/status_details", package="google.rpc", syntax="proto3"
    )
    for message_name, fields in _MESSAGES.items():
        message = file.message_type.add(name=message_name)
        for number, name, type_name in fields:
            label = _Field.LABEL_REPEATED if type_name.startswith("[") else _Field.LABEL_OPTIONAL
            field = message.field.add(name=name, number=number, label=label)
            if (scalar := _SCALARS.get(type_name)) is not None:
                field.type = scalar
            else:
                field.type = _Field.TYPE_MESSAGE
                field.type_name = ".google.rpc." + type_name.strip("[]")
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName("google.rpc." + name)) for name in _MESSAGES
    }


_CLASSES = _declare()


def encode(error: ServiceError) -> bytes:
    """Returns the serialized `google.rpc.Status` of an error.

    It carries exactly one `ErrorInfo`, a `BadRequest` where a field is at fault, and a `RetryInfo` where a retry is
    worth it.
    """
    status = _CLASSES["Status"](code=int(error.code), message=error.message)
    info = _CLASSES["ErrorInfo"](reason=error.reason.name, domain=DOMAIN)
    for key, value in error.metadata.items():
        info.metadata.add(key=key, value=value)
    _attach(status, "ErrorInfo", info)
    if error.field:
        violations = [{"field": error.field, "description": error.message}]
        _attach(status, "BadRequest", _CLASSES["BadRequest"](field_violations=violations))
    if error.retry_after_s is not None:
        seconds, nanos = divmod(round(error.retry_after_s * 1_000_000_000), 1_000_000_000)
        delay = {"seconds": seconds, "nanos": nanos}
        _attach(status, "RetryInfo", _CLASSES["RetryInfo"](retry_delay=delay))
    encoded: bytes = status.SerializeToString()
    return encoded


def decode(code: int, details: bytes | None, message: str) -> ServiceError | None:
    """Returns the error that a failed call carries.

    Args:
        code: The number of the call's status code.
        details: The value of `grpc-status-details-bin` in the trailing metadata; None: there is none.
        message: The call's status message; empty: the one in `details` is taken.

    Returns:
        The error; None if it is not one of this contract: no or foreign details, a reason that this version does not
        know, or details that belong to another status code. It is then to be treated by its status code alone.
    """
    if details is None:
        return None
    try:
        status = _CLASSES["Status"].FromString(details)
        if status.code != code:
            return None
        info = _find(status, "ErrorInfo")
        if info is None or info.domain != DOMAIN or info.reason not in Reason.__members__:
            return None
        bad_request = _find(status, "BadRequest")
    except DecodeError:
        return None
    field = bad_request.field_violations[0].field if bad_request and bad_request.field_violations else ""
    metadata = {entry.key: entry.value for entry in info.metadata}
    return ServiceError(Reason[info.reason], message or status.message, field=field, metadata=metadata)


def _attach(status: Any, type_name: str, detail: Any) -> None:
    status.details.add(type_url=_TYPE_URL + type_name, value=detail.SerializeToString())


def _find(status: Any, type_name: str) -> Any | None:
    for detail in status.details:
        if detail.type_url == _TYPE_URL + type_name:
            return _CLASSES[type_name].FromString(detail.value)
    return None
