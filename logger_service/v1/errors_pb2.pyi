from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from typing import ClassVar as _ClassVar

DESCRIPTOR: _descriptor.FileDescriptor

class ErrorReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ERROR_REASON_UNSPECIFIED: _ClassVar[ErrorReason]
    ERROR_REASON_INVALID_NAME: _ClassVar[ErrorReason]
    ERROR_REASON_INVALID_FIELD: _ClassVar[ErrorReason]
    ERROR_REASON_INVALID_SHAPE: _ClassVar[ErrorReason]
    ERROR_REASON_DUPLICATE_NAME: _ClassVar[ErrorReason]
    ERROR_REASON_TOO_LARGE: _ClassVar[ErrorReason]
    ERROR_REASON_UNKNOWN_BACKEND: _ClassVar[ErrorReason]
    ERROR_REASON_INVALID_OPTION: _ClassVar[ErrorReason]
    ERROR_REASON_NOT_SERVED: _ClassVar[ErrorReason]
    ERROR_REASON_RUN_NOT_FOUND: _ClassVar[ErrorReason]
    ERROR_REASON_RUN_MISSING: _ClassVar[ErrorReason]
    ERROR_REASON_RUN_EXISTS: _ClassVar[ErrorReason]
    ERROR_REASON_RUN_MISMATCH: _ClassVar[ErrorReason]
    ERROR_REASON_RUN_CLOSED: _ClassVar[ErrorReason]
    ERROR_REASON_WRITER_FENCED: _ClassVar[ErrorReason]
    ERROR_REASON_JOURNAL_LOST: _ClassVar[ErrorReason]
    ERROR_REASON_SEQUENCE_GAP: _ClassVar[ErrorReason]
    ERROR_REASON_JOURNAL_FULL: _ClassVar[ErrorReason]
    ERROR_REASON_JOURNAL_UNAVAILABLE: _ClassVar[ErrorReason]
    ERROR_REASON_SHUTTING_DOWN: _ClassVar[ErrorReason]
    ERROR_REASON_NOT_YET_APPLIED: _ClassVar[ErrorReason]
    ERROR_REASON_INTERNAL: _ClassVar[ErrorReason]
ERROR_REASON_UNSPECIFIED: ErrorReason
ERROR_REASON_INVALID_NAME: ErrorReason
ERROR_REASON_INVALID_FIELD: ErrorReason
ERROR_REASON_INVALID_SHAPE: ErrorReason
ERROR_REASON_DUPLICATE_NAME: ErrorReason
ERROR_REASON_TOO_LARGE: ErrorReason
ERROR_REASON_UNKNOWN_BACKEND: ErrorReason
ERROR_REASON_INVALID_OPTION: ErrorReason
ERROR_REASON_NOT_SERVED: ErrorReason
ERROR_REASON_RUN_NOT_FOUND: ErrorReason
ERROR_REASON_RUN_MISSING: ErrorReason
ERROR_REASON_RUN_EXISTS: ErrorReason
ERROR_REASON_RUN_MISMATCH: ErrorReason
ERROR_REASON_RUN_CLOSED: ErrorReason
ERROR_REASON_WRITER_FENCED: ErrorReason
ERROR_REASON_JOURNAL_LOST: ErrorReason
ERROR_REASON_SEQUENCE_GAP: ErrorReason
ERROR_REASON_JOURNAL_FULL: ErrorReason
ERROR_REASON_JOURNAL_UNAVAILABLE: ErrorReason
ERROR_REASON_SHUTTING_DOWN: ErrorReason
ERROR_REASON_NOT_YET_APPLIED: ErrorReason
ERROR_REASON_INTERNAL: ErrorReason
