from logger_service.v1 import errors_pb2 as _errors_pb2
from logger_service.v1 import values_pb2 as _values_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FrameOrder(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FRAME_ORDER_UNSPECIFIED: _ClassVar[FrameOrder]
    FRAME_ORDER_TCHW: _ClassVar[FrameOrder]
    FRAME_ORDER_THWC: _ClassVar[FrameOrder]
FRAME_ORDER_UNSPECIFIED: FrameOrder
FRAME_ORDER_TCHW: FrameOrder
FRAME_ORDER_THWC: FrameOrder

class MetricRows(_message.Message):
    __slots__ = ("names", "steps", "time_unix_nano", "values", "first_steps")
    NAMES_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    TIME_UNIX_NANO_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    FIRST_STEPS_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    steps: _containers.RepeatedScalarFieldContainer[int]
    time_unix_nano: _containers.RepeatedScalarFieldContainer[int]
    values: _containers.RepeatedScalarFieldContainer[float]
    first_steps: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, names: _Optional[_Iterable[str]] = ..., steps: _Optional[_Iterable[int]] = ..., time_unix_nano: _Optional[_Iterable[int]] = ..., values: _Optional[_Iterable[float]] = ..., first_steps: _Optional[_Iterable[int]] = ...) -> None: ...

class HistogramRecord(_message.Message):
    __slots__ = ("name", "step", "time_unix_nano", "bins", "raw")
    NAME_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    TIME_UNIX_NANO_FIELD_NUMBER: _ClassVar[int]
    BINS_FIELD_NUMBER: _ClassVar[int]
    RAW_FIELD_NUMBER: _ClassVar[int]
    name: str
    step: int
    time_unix_nano: int
    bins: HistogramBins
    raw: RawValues
    def __init__(self, name: _Optional[str] = ..., step: _Optional[int] = ..., time_unix_nano: _Optional[int] = ..., bins: _Optional[_Union[HistogramBins, _Mapping]] = ..., raw: _Optional[_Union[RawValues, _Mapping]] = ...) -> None: ...

class HistogramBins(_message.Message):
    __slots__ = ("edges", "counts", "min", "max", "sum", "sum_squares", "count", "nan_count", "positive_infinity_count", "negative_infinity_count")
    EDGES_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    MIN_FIELD_NUMBER: _ClassVar[int]
    MAX_FIELD_NUMBER: _ClassVar[int]
    SUM_FIELD_NUMBER: _ClassVar[int]
    SUM_SQUARES_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    NAN_COUNT_FIELD_NUMBER: _ClassVar[int]
    POSITIVE_INFINITY_COUNT_FIELD_NUMBER: _ClassVar[int]
    NEGATIVE_INFINITY_COUNT_FIELD_NUMBER: _ClassVar[int]
    edges: _containers.RepeatedScalarFieldContainer[float]
    counts: _containers.RepeatedScalarFieldContainer[int]
    min: float
    max: float
    sum: float
    sum_squares: float
    count: int
    nan_count: int
    positive_infinity_count: int
    negative_infinity_count: int
    def __init__(self, edges: _Optional[_Iterable[float]] = ..., counts: _Optional[_Iterable[int]] = ..., min: _Optional[float] = ..., max: _Optional[float] = ..., sum: _Optional[float] = ..., sum_squares: _Optional[float] = ..., count: _Optional[int] = ..., nan_count: _Optional[int] = ..., positive_infinity_count: _Optional[int] = ..., negative_infinity_count: _Optional[int] = ...) -> None: ...

class RawValues(_message.Message):
    __slots__ = ("values", "bin_count")
    VALUES_FIELD_NUMBER: _ClassVar[int]
    BIN_COUNT_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedScalarFieldContainer[float]
    bin_count: int
    def __init__(self, values: _Optional[_Iterable[float]] = ..., bin_count: _Optional[int] = ...) -> None: ...

class TextRecord(_message.Message):
    __slots__ = ("name", "step", "time_unix_nano", "text")
    NAME_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    TIME_UNIX_NANO_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    name: str
    step: int
    time_unix_nano: int
    text: str
    def __init__(self, name: _Optional[str] = ..., step: _Optional[int] = ..., time_unix_nano: _Optional[int] = ..., text: _Optional[str] = ...) -> None: ...

class HparamsRecord(_message.Message):
    __slots__ = ("hparams", "time_unix_nano")
    HPARAMS_FIELD_NUMBER: _ClassVar[int]
    TIME_UNIX_NANO_FIELD_NUMBER: _ClassVar[int]
    hparams: _values_pb2.MapValue
    time_unix_nano: int
    def __init__(self, hparams: _Optional[_Union[_values_pb2.MapValue, _Mapping]] = ..., time_unix_nano: _Optional[int] = ...) -> None: ...

class VideoRecord(_message.Message):
    __slots__ = ("name", "step", "time_unix_nano", "blob_id", "format")
    NAME_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    TIME_UNIX_NANO_FIELD_NUMBER: _ClassVar[int]
    BLOB_ID_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    name: str
    step: int
    time_unix_nano: int
    blob_id: str
    format: VideoFormat
    def __init__(self, name: _Optional[str] = ..., step: _Optional[int] = ..., time_unix_nano: _Optional[int] = ..., blob_id: _Optional[str] = ..., format: _Optional[_Union[VideoFormat, _Mapping]] = ...) -> None: ...

class VideoFormat(_message.Message):
    __slots__ = ("raw", "container", "fps", "video_codec", "options", "file_format")
    class OptionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    RAW_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_FIELD_NUMBER: _ClassVar[int]
    FPS_FIELD_NUMBER: _ClassVar[int]
    VIDEO_CODEC_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    FILE_FORMAT_FIELD_NUMBER: _ClassVar[int]
    raw: RawFrames
    container: str
    fps: float
    video_codec: str
    options: _containers.ScalarMap[str, str]
    file_format: str
    def __init__(self, raw: _Optional[_Union[RawFrames, _Mapping]] = ..., container: _Optional[str] = ..., fps: _Optional[float] = ..., video_codec: _Optional[str] = ..., options: _Optional[_Mapping[str, str]] = ..., file_format: _Optional[str] = ...) -> None: ...

class RawFrames(_message.Message):
    __slots__ = ("frames", "channels", "height", "width", "order")
    FRAMES_FIELD_NUMBER: _ClassVar[int]
    CHANNELS_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    frames: int
    channels: int
    height: int
    width: int
    order: FrameOrder
    def __init__(self, frames: _Optional[int] = ..., channels: _Optional[int] = ..., height: _Optional[int] = ..., width: _Optional[int] = ..., order: _Optional[_Union[FrameOrder, str]] = ...) -> None: ...

class ImageRecord(_message.Message):
    __slots__ = ("name", "step", "time_unix_nano", "png")
    NAME_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    TIME_UNIX_NANO_FIELD_NUMBER: _ClassVar[int]
    PNG_FIELD_NUMBER: _ClassVar[int]
    name: str
    step: int
    time_unix_nano: int
    png: bytes
    def __init__(self, name: _Optional[str] = ..., step: _Optional[int] = ..., time_unix_nano: _Optional[int] = ..., png: _Optional[bytes] = ...) -> None: ...

class Record(_message.Message):
    __slots__ = ("metrics", "histogram", "text", "hparams", "video", "image")
    METRICS_FIELD_NUMBER: _ClassVar[int]
    HISTOGRAM_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    HPARAMS_FIELD_NUMBER: _ClassVar[int]
    VIDEO_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    metrics: MetricRows
    histogram: HistogramRecord
    text: TextRecord
    hparams: HparamsRecord
    video: VideoRecord
    image: ImageRecord
    def __init__(self, metrics: _Optional[_Union[MetricRows, _Mapping]] = ..., histogram: _Optional[_Union[HistogramRecord, _Mapping]] = ..., text: _Optional[_Union[TextRecord, _Mapping]] = ..., hparams: _Optional[_Union[HparamsRecord, _Mapping]] = ..., video: _Optional[_Union[VideoRecord, _Mapping]] = ..., image: _Optional[_Union[ImageRecord, _Mapping]] = ...) -> None: ...

class Batch(_message.Message):
    __slots__ = ("sequence", "first_held", "dropped", "wait_applied", "records")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    FIRST_HELD_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    WAIT_APPLIED_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    first_held: int
    dropped: int
    wait_applied: bool
    records: _containers.RepeatedCompositeFieldContainer[Record]
    def __init__(self, sequence: _Optional[int] = ..., first_held: _Optional[int] = ..., dropped: _Optional[int] = ..., wait_applied: bool = ..., records: _Optional[_Iterable[_Union[Record, _Mapping]]] = ...) -> None: ...

class Rejection(_message.Message):
    __slots__ = ("record", "names", "reason", "message", "points")
    RECORD_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    record: int
    names: _containers.RepeatedScalarFieldContainer[str]
    reason: _errors_pb2.ErrorReason
    message: str
    points: int
    def __init__(self, record: _Optional[int] = ..., names: _Optional[_Iterable[str]] = ..., reason: _Optional[_Union[_errors_pb2.ErrorReason, str]] = ..., message: _Optional[str] = ..., points: _Optional[int] = ...) -> None: ...

class BatchRejections(_message.Message):
    __slots__ = ("sequence", "rejections", "backend")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    REJECTIONS_FIELD_NUMBER: _ClassVar[int]
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    rejections: _containers.RepeatedCompositeFieldContainer[Rejection]
    backend: str
    def __init__(self, sequence: _Optional[int] = ..., rejections: _Optional[_Iterable[_Union[Rejection, _Mapping]]] = ..., backend: _Optional[str] = ...) -> None: ...
