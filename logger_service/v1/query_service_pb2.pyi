from logger_service.v1 import records_pb2 as _records_pb2
from logger_service.v1 import run_service_pb2 as _run_service_pb2
from logger_service.v1 import values_pb2 as _values_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RunStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RUN_STATUS_UNSPECIFIED: _ClassVar[RunStatus]
    RUN_STATUS_RUNNING: _ClassVar[RunStatus]
    RUN_STATUS_FINISHED: _ClassVar[RunStatus]
    RUN_STATUS_INTERRUPTED: _ClassVar[RunStatus]
    RUN_STATUS_CLOSED: _ClassVar[RunStatus]

class WriterStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WRITER_STATUS_UNSPECIFIED: _ClassVar[WriterStatus]
    WRITER_STATUS_WRITING: _ClassVar[WriterStatus]
    WRITER_STATUS_FINISHED: _ClassVar[WriterStatus]
    WRITER_STATUS_VANISHED: _ClassVar[WriterStatus]
RUN_STATUS_UNSPECIFIED: RunStatus
RUN_STATUS_RUNNING: RunStatus
RUN_STATUS_FINISHED: RunStatus
RUN_STATUS_INTERRUPTED: RunStatus
RUN_STATUS_CLOSED: RunStatus
WRITER_STATUS_UNSPECIFIED: WriterStatus
WRITER_STATUS_WRITING: WriterStatus
WRITER_STATUS_FINISHED: WriterStatus
WRITER_STATUS_VANISHED: WriterStatus

class Run(_message.Message):
    __slots__ = ("run_id", "namespace", "exp_name", "status", "epoch", "log_dir", "backends", "created_unix_nano", "last_write_unix_nano", "points", "tags", "notes")
    class TagsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    EXP_NAME_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    LOG_DIR_FIELD_NUMBER: _ClassVar[int]
    BACKENDS_FIELD_NUMBER: _ClassVar[int]
    CREATED_UNIX_NANO_FIELD_NUMBER: _ClassVar[int]
    LAST_WRITE_UNIX_NANO_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    namespace: str
    exp_name: str
    status: RunStatus
    epoch: int
    log_dir: str
    backends: _containers.RepeatedScalarFieldContainer[str]
    created_unix_nano: int
    last_write_unix_nano: int
    points: int
    tags: _containers.ScalarMap[str, str]
    notes: str
    def __init__(self, run_id: _Optional[str] = ..., namespace: _Optional[str] = ..., exp_name: _Optional[str] = ..., status: _Optional[_Union[RunStatus, str]] = ..., epoch: _Optional[int] = ..., log_dir: _Optional[str] = ..., backends: _Optional[_Iterable[str]] = ..., created_unix_nano: _Optional[int] = ..., last_write_unix_nano: _Optional[int] = ..., points: _Optional[int] = ..., tags: _Optional[_Mapping[str, str]] = ..., notes: _Optional[str] = ...) -> None: ...

class Writer(_message.Message):
    __slots__ = ("writer_id", "status", "last_sequence", "last_seen_unix_nano", "client")
    WRITER_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    LAST_SEEN_UNIX_NANO_FIELD_NUMBER: _ClassVar[int]
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    writer_id: str
    status: WriterStatus
    last_sequence: int
    last_seen_unix_nano: int
    client: str
    def __init__(self, writer_id: _Optional[str] = ..., status: _Optional[_Union[WriterStatus, str]] = ..., last_sequence: _Optional[int] = ..., last_seen_unix_nano: _Optional[int] = ..., client: _Optional[str] = ...) -> None: ...

class ListRunsRequest(_message.Message):
    __slots__ = ("namespace", "page_size", "page_token")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    page_size: int
    page_token: str
    def __init__(self, namespace: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListRunsResponse(_message.Message):
    __slots__ = ("runs", "next_page_token")
    RUNS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    runs: _containers.RepeatedCompositeFieldContainer[Run]
    next_page_token: str
    def __init__(self, runs: _Optional[_Iterable[_Union[Run, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetRunRequest(_message.Message):
    __slots__ = ("run_id", "namespace", "exp_name")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    EXP_NAME_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    namespace: str
    exp_name: str
    def __init__(self, run_id: _Optional[str] = ..., namespace: _Optional[str] = ..., exp_name: _Optional[str] = ...) -> None: ...

class GetRunResponse(_message.Message):
    __slots__ = ("run", "ledger", "writers")
    RUN_FIELD_NUMBER: _ClassVar[int]
    LEDGER_FIELD_NUMBER: _ClassVar[int]
    WRITERS_FIELD_NUMBER: _ClassVar[int]
    run: Run
    ledger: _run_service_pb2.Ledger
    writers: _containers.RepeatedCompositeFieldContainer[Writer]
    def __init__(self, run: _Optional[_Union[Run, _Mapping]] = ..., ledger: _Optional[_Union[_run_service_pb2.Ledger, _Mapping]] = ..., writers: _Optional[_Iterable[_Union[Writer, _Mapping]]] = ...) -> None: ...

class ListMetricsRequest(_message.Message):
    __slots__ = ("run_id", "page_size", "page_token")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    page_size: int
    page_token: str
    def __init__(self, run_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListMetricsResponse(_message.Message):
    __slots__ = ("metrics", "next_page_token")
    METRICS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    metrics: _containers.RepeatedCompositeFieldContainer[MetricInfo]
    next_page_token: str
    def __init__(self, metrics: _Optional[_Iterable[_Union[MetricInfo, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class MetricInfo(_message.Message):
    __slots__ = ("name", "points")
    NAME_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    name: str
    points: int
    def __init__(self, name: _Optional[str] = ..., points: _Optional[int] = ...) -> None: ...

class ReadScalarsRequest(_message.Message):
    __slots__ = ("run_id", "names", "offset", "limit")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    names: _containers.RepeatedScalarFieldContainer[str]
    offset: int
    limit: int
    def __init__(self, run_id: _Optional[str] = ..., names: _Optional[_Iterable[str]] = ..., offset: _Optional[int] = ..., limit: _Optional[int] = ...) -> None: ...

class ScalarChunk(_message.Message):
    __slots__ = ("name", "steps", "values", "time_unix_nano")
    NAME_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    TIME_UNIX_NANO_FIELD_NUMBER: _ClassVar[int]
    name: str
    steps: _containers.RepeatedScalarFieldContainer[int]
    values: _containers.RepeatedScalarFieldContainer[float]
    time_unix_nano: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, name: _Optional[str] = ..., steps: _Optional[_Iterable[int]] = ..., values: _Optional[_Iterable[float]] = ..., time_unix_nano: _Optional[_Iterable[int]] = ...) -> None: ...

class ReadScalarsResponse(_message.Message):
    __slots__ = ("chunk",)
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    chunk: ScalarChunk
    def __init__(self, chunk: _Optional[_Union[ScalarChunk, _Mapping]] = ...) -> None: ...

class WatchScalarsRequest(_message.Message):
    __slots__ = ("run_id", "names")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, run_id: _Optional[str] = ..., names: _Optional[_Iterable[str]] = ...) -> None: ...

class WatchScalarsResponse(_message.Message):
    __slots__ = ("chunk",)
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    chunk: ScalarChunk
    def __init__(self, chunk: _Optional[_Union[ScalarChunk, _Mapping]] = ...) -> None: ...

class ReadHparamsRequest(_message.Message):
    __slots__ = ("run_id",)
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    def __init__(self, run_id: _Optional[str] = ...) -> None: ...

class ReadHparamsResponse(_message.Message):
    __slots__ = ("hparams",)
    HPARAMS_FIELD_NUMBER: _ClassVar[int]
    hparams: _containers.RepeatedCompositeFieldContainer[_values_pb2.MapValue]
    def __init__(self, hparams: _Optional[_Iterable[_Union[_values_pb2.MapValue, _Mapping]]] = ...) -> None: ...

class ReadHistogramsRequest(_message.Message):
    __slots__ = ("run_id", "name")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    name: str
    def __init__(self, run_id: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class ReadHistogramsResponse(_message.Message):
    __slots__ = ("histogram",)
    HISTOGRAM_FIELD_NUMBER: _ClassVar[int]
    histogram: _records_pb2.HistogramRecord
    def __init__(self, histogram: _Optional[_Union[_records_pb2.HistogramRecord, _Mapping]] = ...) -> None: ...

class ReadTextsRequest(_message.Message):
    __slots__ = ("run_id", "name")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    name: str
    def __init__(self, run_id: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class ReadTextsResponse(_message.Message):
    __slots__ = ("text",)
    TEXT_FIELD_NUMBER: _ClassVar[int]
    text: _records_pb2.TextRecord
    def __init__(self, text: _Optional[_Union[_records_pb2.TextRecord, _Mapping]] = ...) -> None: ...

class ListVideosRequest(_message.Message):
    __slots__ = ("run_id",)
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    def __init__(self, run_id: _Optional[str] = ...) -> None: ...

class ListVideosResponse(_message.Message):
    __slots__ = ("videos",)
    VIDEOS_FIELD_NUMBER: _ClassVar[int]
    videos: _containers.RepeatedCompositeFieldContainer[VideoInfo]
    def __init__(self, videos: _Optional[_Iterable[_Union[VideoInfo, _Mapping]]] = ...) -> None: ...

class VideoInfo(_message.Message):
    __slots__ = ("name", "step", "size_bytes", "file_format")
    NAME_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    FILE_FORMAT_FIELD_NUMBER: _ClassVar[int]
    name: str
    step: int
    size_bytes: int
    file_format: str
    def __init__(self, name: _Optional[str] = ..., step: _Optional[int] = ..., size_bytes: _Optional[int] = ..., file_format: _Optional[str] = ...) -> None: ...

class ReadVideoRequest(_message.Message):
    __slots__ = ("run_id", "name", "step")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    name: str
    step: int
    def __init__(self, run_id: _Optional[str] = ..., name: _Optional[str] = ..., step: _Optional[int] = ...) -> None: ...

class ReadVideoResponse(_message.Message):
    __slots__ = ("chunk",)
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    chunk: bytes
    def __init__(self, chunk: _Optional[bytes] = ...) -> None: ...
