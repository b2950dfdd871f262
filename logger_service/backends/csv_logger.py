"""`CSVLogger`: logs to CSV files in the process that logs, as TorchRL's does."""

from __future__ import annotations

import os
import weakref
from typing import Any, ClassVar

from logger_service.backends.csv import CsvBackend
from logger_service.backends.direct import DirectSink
from logger_service.backends.spelling import check_spelling
from logger_service.contract.logger import FlushLevel, Logger
from logger_service.contract.names import exp_path

DEFAULT_LOG_DIR = "csv_logs"
"""Where runs go if no other place is named, as with TorchRL."""


class CSVLogger(Logger):
    """Logs to `<log_dir>/<exp_name>/scalars/<name>.csv`, a line `step,value` for each point.

    What is logged is written within a second, and by `flush`. A logger on a directory that has rows already goes on
    behind them, and so do automatic steps.

    Args:
        exp_name: The name of the run, which may have several segments.
        log_dir: The directory that holds runs; made if missing. None: `csv_logs` in the working directory.

    Attributes:
        log_dir: The directory that holds runs.

    Raises:
        ValueError: `exp_name` is not a name, or the disk does not tell it from one whose directory is there.
    """

    _backend_type: ClassVar[str | None] = "csv"

    def __init__(self, exp_name: str, log_dir: str | os.PathLike[str] | None = None) -> None:
        root = DEFAULT_LOG_DIR if log_dir is None else os.fspath(log_dir)
        path = exp_path(exp_name)
        run_dir = os.path.join(root, path)
        absolute = os.path.abspath(run_dir)
        check_spelling(root, path)
        os.makedirs(absolute, exist_ok=True)
        check_spelling(root, path)
        self._direct = DirectSink(
            absolute, lambda lengths, state: CsvBackend(absolute, {}, lengths=lengths, state=state, shared=True)
        )
        self._root = os.path.abspath(root)
        self.experiment = CsvExperiment(self, run_dir)
        super().__init__(exp_name, root, self._direct)
        # When the logger is gone, what was logged is still written, in the background.
        self._finalizer = weakref.finalize(self, self._direct.end_later)
        self._finalizer.atexit = False  # At exit, more than that is done.

    def print_log_dir(self) -> None:
        """Prints what is in `log_dir`, below it and with sizes in bytes."""
        if self.is_alive:
            self.flush()
        print(f"{self.log_dir}/")
        _print_tree(self.log_dir, "    ")

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy is another logger of the same run.

        Raises:
            LoggerClosedError: The logger was shut down.
        """
        self._require_open()
        return type(self), (self.exp_name, self._root)

    def __repr__(self) -> str:
        """Names the run, as TorchRL's does."""
        return f"{type(self).__name__}(exp_name={self.exp_name}, experiment={self.experiment!r})"

    def _flush(self, timeout: float | None, level: FlushLevel) -> None:
        self._direct.flush(timeout)

    def _shutdown(self, timeout: float | None) -> None:
        self._finalizer.detach()
        self._direct.shutdown(timeout)


class CsvExperiment:
    """What TorchRL's `CSVLogger.experiment` offers, for code that uses it.

    Attributes:
        log_dir: The run's directory.
    """

    def __init__(self, logger: CSVLogger, log_dir: str) -> None:
        self._logger = logger
        self.log_dir = log_dir

    def add_scalar(self, name: str, value: Any, global_step: int | None = None) -> None:
        """Does what `CSVLogger.log_scalar` does."""
        self._logger.log_scalar(name, value, global_step)

    def add_text(self, tag: str, text: str, global_step: int | None = None) -> None:
        """Does what `CSVLogger.log_str` does."""
        self._logger.log_str(tag, text, global_step)

    def __repr__(self) -> str:
        """Names the directory."""
        return f"CSVExperiment(log_dir={self.log_dir})"


def _print_tree(directory: str, indent: str) -> None:
    with os.scandir(directory) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.is_dir(follow_symlinks=False):
                print(f"{indent}{entry.name}/")
                _print_tree(entry.path, indent + "    ")
            else:
                print(f"{indent}{entry.name}  {entry.stat(follow_symlinks=False).st_size}")
