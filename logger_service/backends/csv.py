"""The CSV backend: the layout of TorchRL's CSVLogger, in files that survive crashes.

scalars/<name>.csv       a line `step,value` for each point
texts/<name>.jsonl       a line {"step", "time_unix_nano", "value"} for each text
histograms/<name>.jsonl  a line for each histogram (see `csv_histograms`)
texts/hparams<N>.txt     `key: value` lines of each record of hyperparameters
hparams.json             the same, typed: a list of all records
videos/                  made, as TorchRL makes it
.times                   the times of the rows of metrics (see `times`)
.case_blind              only where the disk ignores case: that the paths of names allow for it (see `case_blind`)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from logger_service.backends.base import RECORD_KINDS, Checkpoint, Recovery
from logger_service.backends.case_blind import is_case_blind
from logger_service.backends.csv_format import format_rows
from logger_service.backends.csv_histograms import histogram_line
from logger_service.backends.csv_hparams import TEXT_KIND, HparamsFiles
from logger_service.backends.files import AppendFile, FileKind, FileSet
from logger_service.backends.json_text import json_line
from logger_service.backends.times import TIMES_KIND, TIMES_PATH, TimesFile, read_definitions
from logger_service.backends.tree import RunTree
from logger_service.backends.whole import count_lines, whole_lines
from logger_service.contract.errors import Reason
from logger_service.contract.names import file_path, name_of
from logger_service.contract.values import from_map
from logger_service.v1 import records_pb2, run_service_pb2

_SERVED = ("metrics", "histogram", "text", "hparams")
_PLACES = {"metrics": ("scalars/", ".csv"), "text": ("texts/", ".jsonl"), "histogram": ("histograms/", ".jsonl")}
"""Where the file of a name is, by kind: what comes before and after its `file_path`."""
_KINDS = (
    FileKind("scalars", "", ".csv", whole_lines),
    FileKind("texts", "", ".jsonl", whole_lines),
    FileKind("histograms", "", ".jsonl", whole_lines),
    TEXT_KIND,
    TIMES_KIND,
)
_CACHED_GROUPS = 1024


class _Rows(NamedTuple):
    """Rows of metrics, column after column."""

    names: tuple[str, ...]
    files: list[AppendFile]
    times: npt.NDArray[np.int64]
    steps: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]


class CsvBackend:
    """One run as CSV. The arguments are those of `BackendFactory`.

    Args:
        run_dir: The run's directory; made if missing.
        options: There are none.
        lengths: The committed lengths of files; None: the files are continued as they are.
        state: The committed state; empty: none.
        shared: Others may write to the same run, one at a time: a lock is held from `apply` until `write` has returned.
    """

    type: ClassVar[str] = "csv"
    OPTIONS: ClassVar[frozenset[str]] = frozenset()

    def __init__(
        self,
        run_dir: str,
        options: Mapping[str, Any],
        *,
        lengths: Mapping[str, int] | None,
        state: Mapping[str, Any],
        shared: bool = False,
    ) -> None:
        tree = RunTree(run_dir)
        self._case_blind = is_case_blind(tree, begun="scalars")
        for directory in ("scalars", "videos", "texts"):
            tree.make_directory(directory)
        self._files = FileSet(tree, _KINDS, lengths=lengths, state=state.get("files", {}), shared=shared)
        self._times = TimesFile(self._files, int(state.get("times", -1)))
        self._hparams = HparamsFiles(self._files, state.get("hparams", {}), shared=shared)
        self._by_name: dict[tuple[str, str], AppendFile] = {}
        self._by_names: dict[tuple[str, ...], list[AppendFile]] = {}
        self._by_path: dict[str, tuple[str, str]] = {}
        self._defined_names: dict[str, str] | None = None

    @classmethod
    def capabilities(cls) -> Sequence[run_service_pb2.Capability]:
        """How it takes each kind of record."""
        support = dict.fromkeys(RECORD_KINDS, run_service_pb2.SUPPORT_NONE)
        support.update(dict.fromkeys(_SERVED, run_service_pb2.SUPPORT_NATIVE))
        return [run_service_pb2.Capability(kind=kind, support=value) for kind, value in support.items()]

    def apply(self, batch: records_pb2.Batch) -> list[records_pb2.Rejection]:
        """Takes a batch into the buffers."""
        rejections: list[records_pb2.Rejection] = []
        rows: list[_Rows] = []
        for index, record in enumerate(batch.records):
            kind = record.WhichOneof("kind")
            if kind == "metrics":
                if record.metrics.values:
                    rows.append(self._rows(record.metrics))
            elif kind == "text":
                text = record.text
                line = {"step": text.step, "time_unix_nano": text.time_unix_nano, "value": text.text}
                self._add_line(kind, text.name, json_line(line))
            elif kind == "histogram":
                self._add_line(kind, record.histogram.name, histogram_line(record.histogram))
            elif kind == "hparams":
                try:
                    self._hparams.add(from_map(record.hparams.hparams))
                except ValueError as error:
                    rejections.append(_rejection(index, Reason.INVALID_FIELD, f"hparams cannot be written: {error}"))
            else:
                message = f"the csv backend does not take records of the kind {kind}"
                rejections.append(_rejection(index, Reason.NOT_SERVED, message))
        if rows:
            self._add_rows(rows)
        return rejections

    def rows_of_others(self, batch: records_pb2.Batch) -> dict[tuple[str, str], int]:
        """Returns how many rows, by (kind, name), others have written since the last call.

        Those of the names that have automatic steps in a batch are all among them; others may come later.
        """
        for record in batch.records:
            kind = record.WhichOneof("kind")
            if kind == "metrics" and not record.metrics.steps:
                for file in self._files_of(tuple(record.metrics.names)):
                    self._files.look(file)
            elif kind in _PLACES and kind != "metrics" and not (single := getattr(record, kind)).HasField("step"):
                self._files.look(self._file(kind, single.name))
        rows = {self._by_path.get(path): lines for path, lines in self._files.take_foreign_lines().items()}
        return {key: lines for key, lines in rows.items() if key is not None}

    def write(self) -> None:
        """Writes all buffers."""
        failure: OSError | None = None
        for write in (self._hparams.prepare, self._files.write, self._hparams.write):
            try:
                write()
            except OSError as error:  # The others are written all the same.
                failure = failure or error
        if failure is not None:
            raise failure

    def checkpoint(self) -> Checkpoint:
        """Writes all buffers and fsyncs what changed."""
        self.write()
        lengths = self._files.checkpoint()
        state = {
            "files": self._files.state(),
            "times": self._times.last_definition,
            "hparams": self._hparams.state(),
        }
        return Checkpoint(lengths, state)

    def note_gap(self) -> None:
        """Batches are missing: whole rows that differ are kept."""
        self.write()
        self._files.note_gap()
        self._times.forget()

    def end_recovery(self) -> Recovery:
        """Keeps what the files hold beyond what was applied, and counts its rows."""
        self._hparams.prepare()
        recovery = self._files.end_recovery()
        newer_hparams = self._hparams.end_recovery()
        self._hparams.write()
        changed = recovery.short.keys() | recovery.kept.keys()
        for path in changed:
            key = self._key(path)
            if key is not None:
                recovery.rows[key] = self._files.read(path, count_lines)
        if newer_hparams:
            recovery.rows["hparams", ""] = self._hparams.count
        if changed or recovery.mended:
            self._times.forget()
        return recovery

    def discard(self) -> None:
        """Forgets what is in the buffers, which after a fork are the parent's to write."""
        self._files.discard()
        self._hparams.discard()

    def close(self) -> None:
        """Closes the files, without writing buffers."""
        self._files.close()

    def _rows(self, metrics: records_pb2.MetricRows) -> _Rows:
        names = tuple(metrics.names)
        columns = len(names)
        values = np.asarray(metrics.values, np.float64)
        count = len(values) // columns
        if columns > 1:
            values = values.reshape(count, columns).T.ravel()
        if metrics.steps:
            steps = np.asarray(metrics.steps, np.int64)
            steps = np.tile(steps, columns) if columns > 1 else steps
        else:
            first = np.asarray(metrics.first_steps, np.int64)
            steps = (first[:, None] + np.arange(count)).ravel()
        times = metrics.time_unix_nano
        return _Rows(
            names,
            self._files_of(names),
            np.asarray(times, np.int64) if times else np.zeros(count, np.int64),
            steps,
            values,
        )

    def _add_rows(self, rows: list[_Rows]) -> None:
        """Formats all rows of a batch at once, and appends them."""
        ends: list[int] = []
        for group in rows:
            begin, count = ends[-1] if ends else 0, len(group.times)
            ends.extend(range(begin + count, begin + len(group.values) + 1, count))
        steps, values = rows[0].steps, rows[0].values
        if len(rows) > 1:
            steps = np.concatenate([group.steps for group in rows])
            values = np.concatenate([group.values for group in rows])
        chunks = iter(format_rows(steps, values, ends))
        append = self._files.append
        for group in rows:
            self._times.append("metrics", group.names, group.files, group.times)
            for file, chunk in zip(group.files, chunks, strict=False):
                append(file, chunk)

    def _add_line(self, kind: str, name: str, line: bytes) -> None:
        file = self._file(kind, name)
        if self._name_told(kind, file.path) is None:
            self._times.define(kind, (name,), [file])
        self._files.append(file, line)

    def _files_of(self, names: tuple[str, ...]) -> list[AppendFile]:
        files = self._by_names.get(names)
        if files is None:
            if len(self._by_names) >= _CACHED_GROUPS:
                self._by_names.clear()
            files = self._by_names[names] = [self._file("metrics", name) for name in names]
        return files

    def _file(self, kind: str, name: str) -> AppendFile:
        file = self._by_name.get((kind, name))
        if file is None:
            file = self._by_name[kind, name] = self._files.file(self._path(kind, name))
            self._by_path[file.path] = kind, name
        return file

    def _path(self, kind: str, name: str) -> str:
        directory, suffix = _PLACES[kind]
        return directory + file_path(name, suffix, case_blind=self._case_blind)

    def _name_told(self, kind: str, path: str) -> str | None:
        """The name that a path in a kind's place tells; None: it has not all of the name, or is none's."""
        directory, suffix = _PLACES[kind]
        return name_of(path[len(directory) :], suffix, case_blind=self._case_blind)

    def _key(self, path: str) -> tuple[str, str] | None:
        """Kind and name of what a file holds; None: the file is not one of a name, or its name is not to be known."""
        for kind, (directory, suffix) in _PLACES.items():
            if path.startswith(directory) and path.endswith(suffix):
                name = self._name_told(kind, path) or self._names_defined().get(path)
                return None if name is None else (kind, name)
        return None

    def _names_defined(self) -> dict[str, str]:
        """Names by path, of all that the definitions of groups name: long names cannot be told from their paths."""
        if self._defined_names is None:
            definitions = self._files.read(TIMES_PATH, lambda *where: list(read_definitions(*where)))
            self._defined_names = {
                self._path(definition.kind, name): name for definition in definitions for name in definition.names
            }
        return self._defined_names


def _rejection(record: int, reason: Reason, message: str) -> records_pb2.Rejection:
    return records_pb2.Rejection(record=record, reason=reason.value, message=message, points=1)
