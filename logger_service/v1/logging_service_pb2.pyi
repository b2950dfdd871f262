from logger_service.v1 import records_pb2 as _records_pb2
from logger_service.v1 import values_pb2 as _values_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class LogStreamRequest(_message.Message):
    __slots__ = ("hello", "batch", "finish")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    FINISH_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    batch: _records_pb2.Batch
    finish: Finish
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ..., batch: _Optional[_Union[_records_pb2.Batch, _Mapping]] = ..., finish: _Optional[_Union[Finish, _Mapping]] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("run_id", "writer_id", "epoch", "first_held", "client")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    WRITER_ID_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    FIRST_HELD_FIELD_NUMBER: _ClassVar[int]
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    writer_id: str
    epoch: int
    first_held: int
    client: str
    def __init__(self, run_id: _Optional[str] = ..., writer_id: _Optional[str] = ..., epoch: _Optional[int] = ..., first_held: _Optional[int] = ..., client: _Optional[str] = ...) -> None: ...

class Finish(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class LogStreamResponse(_message.Message):
    __slots__ = ("welcome", "acknowledgement", "reconnect")
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    ACKNOWLEDGEMENT_FIELD_NUMBER: _ClassVar[int]
    RECONNECT_FIELD_NUMBER: _ClassVar[int]
    welcome: Welcome
    acknowledgement: Acknowledgement
    reconnect: Reconnect
    def __init__(self, welcome: _Optional[_Union[Welcome, _Mapping]] = ..., acknowledgement: _Optional[_Union[Acknowledgement, _Mapping]] = ..., reconnect: _Optional[_Union[Reconnect, _Mapping]] = ...) -> None: ...

class Welcome(_message.Message):
    __slots__ = ("last_sequence", "epoch", "limits")
    LAST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    last_sequence: int
    epoch: int
    limits: ServerLimits
    def __init__(self, last_sequence: _Optional[int] = ..., epoch: _Optional[int] = ..., limits: _Optional[_Union[ServerLimits, _Mapping]] = ...) -> None: ...

class ServerLimits(_message.Message):
    __slots__ = ("max_message_bytes", "max_record_bytes", "max_stream_bytes")
    MAX_MESSAGE_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_RECORD_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_STREAM_BYTES_FIELD_NUMBER: _ClassVar[int]
    max_message_bytes: int
    max_record_bytes: int
    max_stream_bytes: int
    def __init__(self, max_message_bytes: _Optional[int] = ..., max_record_bytes: _Optional[int] = ..., max_stream_bytes: _Optional[int] = ...) -> None: ...

class Acknowledgement(_message.Message):
    __slots__ = ("accepted", "applied", "rejections")
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    APPLIED_FIELD_NUMBER: _ClassVar[int]
    REJECTIONS_FIELD_NUMBER: _ClassVar[int]
    accepted: int
    applied: int
    rejections: _containers.RepeatedCompositeFieldContainer[_records_pb2.BatchRejections]
    def __init__(self, accepted: _Optional[int] = ..., applied: _Optional[int] = ..., rejections: _Optional[_Iterable[_Union[_records_pb2.BatchRejections, _Mapping]]] = ...) -> None: ...

class Reconnect(_message.Message):
    __slots__ = ("after_ms",)
    AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    after_ms: int
    def __init__(self, after_ms: _Optional[int] = ...) -> None: ...

class LogScalarRequest(_message.Message):
    __slots__ = ("run_id", "name", "value", "step", "time_unix_nano", "epoch", "request_id")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    TIME_UNIX_NANO_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    name: str
    value: float
    step: int
    time_unix_nano: int
    epoch: int
    request_id: str
    def __init__(self, run_id: _Optional[str] = ..., name: _Optional[str] = ..., value: _Optional[float] = ..., step: _Optional[int] = ..., time_unix_nano: _Optional[int] = ..., epoch: _Optional[int] = ..., request_id: _Optional[str] = ...) -> None: ...

class LogScalarResponse(_message.Message):
    __slots__ = ("step",)
    STEP_FIELD_NUMBER: _ClassVar[int]
    step: int
    def __init__(self, step: _Optional[int] = ...) -> None: ...

class LogMetricsRequest(_message.Message):
    __slots__ = ("run_id", "metrics", "step", "time_unix_nano", "epoch", "request_id")
    class MetricsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    TIME_UNIX_NANO_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    metrics: _containers.ScalarMap[str, float]
    step: int
    time_unix_nano: int
    epoch: int
    request_id: str
    def __init__(self, run_id: _Optional[str] = ..., metrics: _Optional[_Mapping[str, float]] = ..., step: _Optional[int] = ..., time_unix_nano: _Optional[int] = ..., epoch: _Optional[int] = ..., request_id: _Optional[str] = ...) -> None: ...

class LogMetricsResponse(_message.Message):
    __slots__ = ("steps",)
    class StepsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    STEPS_FIELD_NUMBER: _ClassVar[int]
    steps: _containers.ScalarMap[str, int]
    def __init__(self, steps: _Optional[_Mapping[str, int]] = ...) -> None: ...

class LogHistogramRequest(_message.Message):
    __slots__ = ("run_id", "histogram", "epoch", "request_id")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    HISTOGRAM_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    histogram: _records_pb2.HistogramRecord
    epoch: int
    request_id: str
    def __init__(self, run_id: _Optional[str] = ..., histogram: _Optional[_Union[_records_pb2.HistogramRecord, _Mapping]] = ..., epoch: _Optional[int] = ..., request_id: _Optional[str] = ...) -> None: ...

class LogHistogramResponse(_message.Message):
    __slots__ = ("step",)
    STEP_FIELD_NUMBER: _ClassVar[int]
    step: int
    def __init__(self, step: _Optional[int] = ...) -> None: ...

class LogTextRequest(_message.Message):
    __slots__ = ("run_id", "name", "text", "step", "time_unix_nano", "epoch", "request_id")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    TIME_UNIX_NANO_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    name: str
    text: str
    step: int
    time_unix_nano: int
    epoch: int
    request_id: str
    def __init__(self, run_id: _Optional[str] = ..., name: _Optional[str] = ..., text: _Optional[str] = ..., step: _Optional[int] = ..., time_unix_nano: _Optional[int] = ..., epoch: _Optional[int] = ..., request_id: _Optional[str] = ...) -> None: ...

class LogTextResponse(_message.Message):
    __slots__ = ("step",)
    STEP_FIELD_NUMBER: _ClassVar[int]
    step: int
    def __init__(self, step: _Optional[int] = ...) -> None: ...

class LogHparamsRequest(_message.Message):
    __slots__ = ("run_id", "hparams", "time_unix_nano", "epoch", "request_id")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    HPARAMS_FIELD_NUMBER: _ClassVar[int]
    TIME_UNIX_NANO_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    hparams: _values_pb2.MapValue
    time_unix_nano: int
    epoch: int
    request_id: str
    def __init__(self, run_id: _Optional[str] = ..., hparams: _Optional[_Union[_values_pb2.MapValue, _Mapping]] = ..., time_unix_nano: _Optional[int] = ..., epoch: _Optional[int] = ..., request_id: _Optional[str] = ...) -> None: ...

class LogHparamsResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class LogImageRequest(_message.Message):
    __slots__ = ("run_id", "image", "epoch", "request_id")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    image: _records_pb2.ImageRecord
    epoch: int
    request_id: str
    def __init__(self, run_id: _Optional[str] = ..., image: _Optional[_Union[_records_pb2.ImageRecord, _Mapping]] = ..., epoch: _Optional[int] = ..., request_id: _Optional[str] = ...) -> None: ...

class LogImageResponse(_message.Message):
    __slots__ = ("step",)
    STEP_FIELD_NUMBER: _ClassVar[int]
    step: int
    def __init__(self, step: _Optional[int] = ...) -> None: ...

class LogVideoRequest(_message.Message):
    __slots__ = ("header", "chunk")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    header: VideoHeader
    chunk: bytes
    def __init__(self, header: _Optional[_Union[VideoHeader, _Mapping]] = ..., chunk: _Optional[bytes] = ...) -> None: ...

class VideoHeader(_message.Message):
    __slots__ = ("run_id", "name", "step", "time_unix_nano", "format", "size_bytes", "request_id", "blob_id", "epoch")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    TIME_UNIX_NANO_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    BLOB_ID_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    name: str
    step: int
    time_unix_nano: int
    format: _records_pb2.VideoFormat
    size_bytes: int
    request_id: str
    blob_id: str
    epoch: int
    def __init__(self, run_id: _Optional[str] = ..., name: _Optional[str] = ..., step: _Optional[int] = ..., time_unix_nano: _Optional[int] = ..., format: _Optional[_Union[_records_pb2.VideoFormat, _Mapping]] = ..., size_bytes: _Optional[int] = ..., request_id: _Optional[str] = ..., blob_id: _Optional[str] = ..., epoch: _Optional[int] = ...) -> None: ...

class LogVideoResponse(_message.Message):
    __slots__ = ("step",)
    STEP_FIELD_NUMBER: _ClassVar[int]
    step: int
    def __init__(self, step: _Optional[int] = ...) -> None: ...
