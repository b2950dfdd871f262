"""The `log_*` calls, in terms of a sink: what every logger of this project shares, owner, worker client or direct."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar, overload

from logger_service.contract.deferred import DeferredMetrics
from logger_service.contract.errors import LoggerClosedError
from logger_service.contract.histograms import bin_data
from logger_service.contract.names import check_name
from logger_service.contract.sanitize import Sanitizer, scalar
from logger_service.contract.sink import RecordSink
from logger_service.contract.steps import MAX_STEP, MIN_STEP, check_step, check_walltime
from logger_service.contract.values import to_map
from logger_service.contract.wire import histogram_record, hparams_record, text_record
from logger_service.v1 import records_pb2

if TYPE_CHECKING:
    from logger_service.contract.late import Late
    from logger_service.contract.prefix import PrefixLogger

RecordingT = TypeVar("RecordingT", bound="Recording")


class ClosedSink:
    """The sink of a logger that was shut down: refuses everything."""

    def add_scalar(self, name: str, value: float, step: int | None) -> NoReturn:
        """Raises LoggerClosedError."""
        raise LoggerClosedError

    def add_row(
        self,
        names: tuple[str, ...],
        values: list[float],
        step: int | None,
        texts: Sequence[tuple[str, str]] = (),
        late: Late | None = None,
    ) -> NoReturn:
        """Raises LoggerClosedError."""
        raise LoggerClosedError

    def add_record(self, record: records_pb2.Record) -> NoReturn:
        """Raises LoggerClosedError."""
        raise LoggerClosedError


class Recording:
    """Logs into a sink.

    Args:
        sink: Where everything goes.
    """

    _sink: RecordSink = ClosedSink()
    """The instance's own sink stands before this one. Shutting down takes it away, and this is what is left."""

    def __init__(self, sink: RecordSink) -> None:
        self._sink = sink
        self._sanitizer = Sanitizer()

    def log_scalar(self, name: str, value: Any, step: int | None = None) -> None:
        """Logs one number.

        Args:
            name: The name, by the rules of names: segments split at `/`, none of them empty.
            value: A Python or NumPy number, or a tensor or array of one element. Kept as a double.
            step: Any int64; steps may repeat and go back. None: the number of values logged under this name before.

        Raises:
            TypeError: `value` is not a number, `step` not an integer, or `name` not a `str`.
            ValueError: `name` breaks a rule of names, or `value` has more than one element.
            RuntimeError: `value` is on a CUDA device, and a CUDA graph is being captured.
            LoggerClosedError: The logger was shut down.
        """
        if type(value) is not float:
            value = scalar(name, value)
        if step is not None and (type(step) is not int or not MIN_STEP <= step <= MAX_STEP):
            step = check_step(step)
        self._sink.add_scalar(name, value, step)

    @overload
    def log_metrics(
        self, metrics: Any, step: int | None = None, *, keys_sep: str = "/", defer: Literal[False] = False
    ) -> dict[str, Any]: ...

    @overload
    def log_metrics(
        self, metrics: Any, step: int | None = None, *, keys_sep: str = "/", defer: bool
    ) -> Mapping[str, Any]: ...

    def log_metrics(
        self, metrics: Any, step: int | None = None, *, keys_sep: str = "/", defer: bool = False
    ) -> Mapping[str, Any]:
        """Logs many values at once, all of them or, where it raises, none.

        Tensors on a device are packed there and come in one copy, which comes after what made them on the caller's
        current stream, and before what overwrites them on it later. The call waits for it, once for each device.

        Args:
            metrics: A mapping or a TensorDict, which may be nested. Numbers and tensors or arrays of one element are
                logged as scalars; those of more elements (at most 1,024) and lists of numbers element by element, as
                `name/0`, `name/1` and so on; a `str` as a text; None is not logged.
            step: As for `log_scalar`, for all of them.
            keys_sep: What joins the keys of nested mappings.
            defer: Waits for no device: the values of tensors on CUDA devices are filled in when they are there. Should
                they never come, `flush` raises. Before a CUDA graph is captured, flush: what waits for a device in
                another thread may spoil the capture.

        Returns:
            The metrics, flat, as Python values: numbers, (nested) lists, texts and None. With `defer` a read-only
            mapping that waits when such a value is read.

        Raises:
            TypeError: A value is none of these; the message names the key.
            ValueError: A name breaks a rule of names or stands twice, or a value has too many elements.
            RuntimeError: A tensor is on a CUDA device, and a CUDA graph is being captured, or the device failed.
            LoggerClosedError: The logger was shut down.
        """
        return self._log_metrics(self._sanitizer, metrics, step, keys_sep, defer)

    def log_str(self, name: str, value: str, step: int | None = None) -> None:
        """Logs a text.

        Args:
            name: As for `log_scalar`; texts have names, and automatic steps, of their own.
            value: The text.
            step: As for `log_scalar`.

        Raises:
            TypeError: `name` or `value` is not a `str`, or `step` not an integer.
            ValueError: `name` breaks a rule of names, or `value` cannot be encoded as UTF-8.
            LoggerClosedError: The logger was shut down.
        """
        if step is not None:
            step = check_step(step)
        self._sink.add_record(text_record(name, value, step, time.time_ns()))

    def log_hparams(self, cfg: Any) -> None:
        """Logs hyperparameters, with their types. Each call stands for itself.

        Args:
            cfg: A mapping, an `argparse.Namespace`, a dataclass instance or an OmegaConf mapping, which may be nested.

        Raises:
            TypeError: A value has no form to log; the message names the key.
            ValueError: It is nested too deeply, or a text cannot be encoded as UTF-8.
            LoggerClosedError: The logger was shut down.
        """
        self._sink.add_record(hparams_record(to_map(cfg), time.time_ns()))

    def log_histogram(
        self, name: str, data: Any, *, step: int | None = None, bins: Any = "auto", walltime: float | None = None
    ) -> None:
        """Logs how values are distributed: bins, made at the call and where the data is, and moments.

        NaN and the infinities are counted apart, in no bin. A tensor on a device is binned there, and the call waits
        for it.

        Args:
            name: As for `log_scalar`; histograms have names, and automatic steps, of their own.
            data: A tensor, an array or a (nested) list of real numbers, of any shape; may be empty.
            step: As for `log_scalar`.
            bins: How many bins of one width, 1 to 65,536, from the least to the greatest value; or their edges,
                ascending: what is beyond them is in no bin; or a rule that tells how many, at most 1,024: `auto`, `fd`,
                `doane`, `scott`, `rice`, `sturges` or `sqrt`, as in `numpy.histogram_bin_edges`.
            walltime: When it was, in seconds since 1970; None: now.

        Raises:
            TypeError: The data is not of real numbers, `bins` is none of these, `step` is not an integer, `walltime`
                not a number, or `name` not a `str`.
            ValueError: `name` breaks a rule of names, `bins` is out of range, its edges do not ascend, or `walltime` is
                not a time after 1970.
            RuntimeError: The data is on a CUDA device, and a CUDA graph is being captured, or the device failed.
            LoggerClosedError: The logger was shut down.
        """
        check_name(name)
        if step is not None:
            step = check_step(step)
        time_ns = time.time_ns() if walltime is None else check_walltime(walltime)
        self._sink.add_record(histogram_record(name, bin_data(name, data, bins), step, time_ns))

    def log_video(self, name: str, video: Any, step: int | None = None, **kwargs: Any) -> None:
        """Videos are not served yet.

        Raises:
            NotImplementedError: Always, but for LoggerClosedError once the logger was shut down.
        """
        self._refuse("videos")

    def log_image(self, name: str, image: Any, step: int | None = None) -> None:
        """Images are not served yet.

        Raises:
            NotImplementedError: Always, but for LoggerClosedError once the logger was shut down.
        """
        self._refuse("images")

    def with_prefix(self: RecordingT, prefix: str) -> RecordingT | PrefixLogger[RecordingT]:
        """Returns a view that puts `prefix` and a `/` before every name; for an empty prefix, the logger itself.

        Raises:
            TypeError: `prefix` is not a `str`.
            ValueError: `prefix` is nothing but `/`.
        """
        from logger_service.contract.prefix import PrefixLogger  # It needs this module.

        self._require_open()
        return self if prefix == "" else PrefixLogger(self, prefix)

    def _log_metrics(
        self, sanitizer: Sanitizer, metrics: Any, step: int | None, keys_sep: str, defer: bool
    ) -> Mapping[str, Any]:
        """`log_metrics` by the sanitizer of this logger or of a view over it."""
        if step is not None and (type(step) is not int or not MIN_STEP <= step <= MAX_STEP):
            step = check_step(step)
        returned, names, values, texts, late = sanitizer(metrics, keys_sep)
        if defer:
            self._sink.add_row(names, values, step, texts, late)
            return DeferredMetrics(returned, late)
        if late is not None:
            late.wait()
        self._sink.add_row(names, values, step, texts)
        return returned

    def _require_open(self) -> None:
        if "_sink" not in self.__dict__:
            raise LoggerClosedError

    def _refuse(self, what: str) -> NoReturn:
        self._require_open()
        raise NotImplementedError(f"{what} are not served yet")
