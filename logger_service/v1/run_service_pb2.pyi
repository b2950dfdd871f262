from logger_service.v1 import errors_pb2 as _errors_pb2
from logger_service.v1 import logging_service_pb2 as _logging_service_pb2
from logger_service.v1 import values_pb2 as _values_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Resume(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RESUME_UNSPECIFIED: _ClassVar[Resume]
    RESUME_ALLOW: _ClassVar[Resume]
    RESUME_NEVER: _ClassVar[Resume]
    RESUME_MUST: _ClassVar[Resume]

class Support(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SUPPORT_UNSPECIFIED: _ClassVar[Support]
    SUPPORT_NATIVE: _ClassVar[Support]
    SUPPORT_FALLBACK: _ClassVar[Support]
    SUPPORT_NONE: _ClassVar[Support]

class FlushLevel(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FLUSH_LEVEL_UNSPECIFIED: _ClassVar[FlushLevel]
    FLUSH_LEVEL_ACCEPTED: _ClassVar[FlushLevel]
    FLUSH_LEVEL_APPLIED: _ClassVar[FlushLevel]

class Durability(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DURABILITY_UNSPECIFIED: _ClassVar[Durability]
    DURABILITY_DISK: _ClassVar[Durability]
    DURABILITY_OS: _ClassVar[Durability]
    DURABILITY_MEMORY: _ClassVar[Durability]
RESUME_UNSPECIFIED: Resume
RESUME_ALLOW: Resume
RESUME_NEVER: Resume
RESUME_MUST: Resume
SUPPORT_UNSPECIFIED: Support
SUPPORT_NATIVE: Support
SUPPORT_FALLBACK: Support
SUPPORT_NONE: Support
FLUSH_LEVEL_UNSPECIFIED: FlushLevel
FLUSH_LEVEL_ACCEPTED: FlushLevel
FLUSH_LEVEL_APPLIED: FlushLevel
DURABILITY_UNSPECIFIED: Durability
DURABILITY_DISK: Durability
DURABILITY_OS: Durability
DURABILITY_MEMORY: Durability

class BackendSpec(_message.Message):
    __slots__ = ("type", "options")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    type: str
    options: _values_pb2.MapValue
    def __init__(self, type: _Optional[str] = ..., options: _Optional[_Union[_values_pb2.MapValue, _Mapping]] = ...) -> None: ...

class Capability(_message.Message):
    __slots__ = ("kind", "support", "note")
    KIND_FIELD_NUMBER: _ClassVar[int]
    SUPPORT_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    kind: str
    support: Support
    note: str
    def __init__(self, kind: _Optional[str] = ..., support: _Optional[_Union[Support, str]] = ..., note: _Optional[str] = ...) -> None: ...

class BackendInfo(_message.Message):
    __slots__ = ("type", "capabilities")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    type: str
    capabilities: _containers.RepeatedCompositeFieldContainer[Capability]
    def __init__(self, type: _Optional[str] = ..., capabilities: _Optional[_Iterable[_Union[Capability, _Mapping]]] = ...) -> None: ...

class OpenRunRequest(_message.Message):
    __slots__ = ("namespace", "exp_name", "backends", "resume", "tags", "notes", "request_id", "attempt_id", "run_id", "epoch")
    class TagsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    EXP_NAME_FIELD_NUMBER: _ClassVar[int]
    BACKENDS_FIELD_NUMBER: _ClassVar[int]
    RESUME_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    exp_name: str
    backends: _containers.RepeatedCompositeFieldContainer[BackendSpec]
    resume: Resume
    tags: _containers.ScalarMap[str, str]
    notes: str
    request_id: str
    attempt_id: str
    run_id: str
    epoch: int
    def __init__(self, namespace: _Optional[str] = ..., exp_name: _Optional[str] = ..., backends: _Optional[_Iterable[_Union[BackendSpec, _Mapping]]] = ..., resume: _Optional[_Union[Resume, str]] = ..., tags: _Optional[_Mapping[str, str]] = ..., notes: _Optional[str] = ..., request_id: _Optional[str] = ..., attempt_id: _Optional[str] = ..., run_id: _Optional[str] = ..., epoch: _Optional[int] = ...) -> None: ...

class OpenRunResponse(_message.Message):
    __slots__ = ("run_id", "epoch", "log_dir", "resumed", "points", "last_write_unix_nano", "backends", "limits")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    LOG_DIR_FIELD_NUMBER: _ClassVar[int]
    RESUMED_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    LAST_WRITE_UNIX_NANO_FIELD_NUMBER: _ClassVar[int]
    BACKENDS_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    epoch: int
    log_dir: str
    resumed: bool
    points: int
    last_write_unix_nano: int
    backends: _containers.RepeatedCompositeFieldContainer[BackendInfo]
    limits: _logging_service_pb2.ServerLimits
    def __init__(self, run_id: _Optional[str] = ..., epoch: _Optional[int] = ..., log_dir: _Optional[str] = ..., resumed: bool = ..., points: _Optional[int] = ..., last_write_unix_nano: _Optional[int] = ..., backends: _Optional[_Iterable[_Union[BackendInfo, _Mapping]]] = ..., limits: _Optional[_Union[_logging_service_pb2.ServerLimits, _Mapping]] = ...) -> None: ...

class UpdateRunRequest(_message.Message):
    __slots__ = ("run_id", "tags", "notes")
    class TagsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    tags: _containers.ScalarMap[str, str]
    notes: str
    def __init__(self, run_id: _Optional[str] = ..., tags: _Optional[_Mapping[str, str]] = ..., notes: _Optional[str] = ...) -> None: ...

class UpdateRunResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class FlushRunRequest(_message.Message):
    __slots__ = ("run_id", "writer_id", "sequence", "level")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    WRITER_ID_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    writer_id: str
    sequence: int
    level: FlushLevel
    def __init__(self, run_id: _Optional[str] = ..., writer_id: _Optional[str] = ..., sequence: _Optional[int] = ..., level: _Optional[_Union[FlushLevel, str]] = ...) -> None: ...

class FlushRunResponse(_message.Message):
    __slots__ = ("ledger",)
    LEDGER_FIELD_NUMBER: _ClassVar[int]
    ledger: Ledger
    def __init__(self, ledger: _Optional[_Union[Ledger, _Mapping]] = ...) -> None: ...

class Ledger(_message.Message):
    __slots__ = ("sent", "accepted", "repeated", "rejected", "rejected_by_reason", "dropped", "backends", "notices")
    class RejectedByReasonEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    SENT_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    REPEATED_FIELD_NUMBER: _ClassVar[int]
    REJECTED_FIELD_NUMBER: _ClassVar[int]
    REJECTED_BY_REASON_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    BACKENDS_FIELD_NUMBER: _ClassVar[int]
    NOTICES_FIELD_NUMBER: _ClassVar[int]
    sent: int
    accepted: int
    repeated: int
    rejected: int
    rejected_by_reason: _containers.ScalarMap[str, int]
    dropped: int
    backends: _containers.RepeatedCompositeFieldContainer[BackendLedger]
    notices: _containers.RepeatedCompositeFieldContainer[Notice]
    def __init__(self, sent: _Optional[int] = ..., accepted: _Optional[int] = ..., repeated: _Optional[int] = ..., rejected: _Optional[int] = ..., rejected_by_reason: _Optional[_Mapping[str, int]] = ..., dropped: _Optional[int] = ..., backends: _Optional[_Iterable[_Union[BackendLedger, _Mapping]]] = ..., notices: _Optional[_Iterable[_Union[Notice, _Mapping]]] = ...) -> None: ...

class BackendLedger(_message.Message):
    __slots__ = ("type", "applied", "rejected", "lag", "problem")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    APPLIED_FIELD_NUMBER: _ClassVar[int]
    REJECTED_FIELD_NUMBER: _ClassVar[int]
    LAG_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    type: str
    applied: int
    rejected: int
    lag: int
    problem: str
    def __init__(self, type: _Optional[str] = ..., applied: _Optional[int] = ..., rejected: _Optional[int] = ..., lag: _Optional[int] = ..., problem: _Optional[str] = ...) -> None: ...

class Notice(_message.Message):
    __slots__ = ("time_unix_nano", "kind", "message")
    TIME_UNIX_NANO_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    time_unix_nano: int
    kind: str
    message: str
    def __init__(self, time_unix_nano: _Optional[int] = ..., kind: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class CloseRunRequest(_message.Message):
    __slots__ = ("run_id",)
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    def __init__(self, run_id: _Optional[str] = ...) -> None: ...

class CloseRunResponse(_message.Message):
    __slots__ = ("ledger",)
    LEDGER_FIELD_NUMBER: _ClassVar[int]
    ledger: Ledger
    def __init__(self, ledger: _Optional[_Union[Ledger, _Mapping]] = ...) -> None: ...

class DeleteRunRequest(_message.Message):
    __slots__ = ("run_id",)
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    def __init__(self, run_id: _Optional[str] = ...) -> None: ...

class DeleteRunResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetServerInfoRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetServerInfoResponse(_message.Message):
    __slots__ = ("version", "limits", "backends", "default_backends", "features", "durability", "reasons")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    BACKENDS_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_BACKENDS_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    DURABILITY_FIELD_NUMBER: _ClassVar[int]
    REASONS_FIELD_NUMBER: _ClassVar[int]
    version: str
    limits: _logging_service_pb2.ServerLimits
    backends: _containers.RepeatedScalarFieldContainer[str]
    default_backends: _containers.RepeatedScalarFieldContainer[str]
    features: _containers.RepeatedScalarFieldContainer[str]
    durability: Durability
    reasons: _containers.RepeatedScalarFieldContainer[_errors_pb2.ErrorReason]
    def __init__(self, version: _Optional[str] = ..., limits: _Optional[_Union[_logging_service_pb2.ServerLimits, _Mapping]] = ..., backends: _Optional[_Iterable[str]] = ..., default_backends: _Optional[_Iterable[str]] = ..., features: _Optional[_Iterable[str]] = ..., durability: _Optional[_Union[Durability, str]] = ..., reasons: _Optional[_Iterable[_Union[_errors_pb2.ErrorReason, str]]] = ...) -> None: ...
