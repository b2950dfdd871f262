"""The times of rows: one file for a run, `.times`, in which the columns of a row share one entry.

A file of values has one line for each row and no times. The times stand here in the order of the rows, in frames:

    frame    kind (4 bytes), size of the payload (uint32), group (uint64); payload
    `ROWS`   the times of some rows of a group, each an int64, nanoseconds since 1970 (0: unknown)
    `DEFN`   what a group is: the offset of the previous definition or -1 (int64), the number of columns (uint64), for
             each column the length that its file had before the rows that follow (int64); the kind of record and the
             names of the columns, separated by newlines, UTF-8

All little-endian. A group is the columns that rows have in common; its number is a hash of what defines it. To find the
times of one name, follow the file from its begin: each frame of a group that has the name gives the times of the name's
next rows, and a definition says which row is the next one. Where files were continued after a loss, groups are defined
anew, so that one lost line does not shift the times of all that follow.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from logger_service.backends.files import AppendFile, FileKind, FileSet
from logger_service.backends.whole import read_exactly

TIMES_PATH = ".times"

_HEADER = struct.Struct("<4sIQ")
_DEFINITION = struct.Struct("<qQ")
_ROWS, _DEFN = b"ROWS", b"DEFN"
_READ_BYTES = 1 << 16
_NOWHERE = -1


class Frame(NamedTuple):
    """A frame that was found whole."""

    kind: bytes
    group: int
    begin: int
    """Where its payload begins."""
    end: int


class Definition(NamedTuple):
    """What a group is."""

    previous: int
    kind: str
    names: tuple[str, ...]
    lengths: tuple[int, ...]


class TimesFile:
    """Writes the times of one run.

    Args:
        files: The run's files, just opened.
        last_definition: What `last_definition` was at the last checkpoint.
    """

    def __init__(self, files: FileSet, last_definition: int) -> None:
        self._files = files
        self._file = files.file(TIMES_PATH)
        self._groups: dict[tuple[str, tuple[str, ...]], int] = {}
        self.last_definition = _NOWHERE
        """The offset of the last definition that is in force; -1: none is."""
        if 0 <= last_definition < self._file.length:
            self._find_definitions(last_definition)

    def append(
        self, kind: str, names: tuple[str, ...], columns: Sequence[AppendFile], times: npt.NDArray[np.int64]
    ) -> None:
        """Appends the times of rows, before the rows are appended to the files of their columns."""
        group = self._groups.get((kind, names))
        if group is None:
            group = self.define(kind, names, columns)
        data = times.astype("<i8", copy=False).tobytes()
        self._files.append(self._file, _HEADER.pack(_ROWS, len(data), group) + data)

    def define(self, kind: str, names: tuple[str, ...], columns: Sequence[AppendFile]) -> int:
        """Defines a group, unless it is defined already, and returns its number."""
        known = self._groups.get((kind, names))
        if known is not None:
            return known
        group = _group(kind, names)
        lengths = np.array([self._files.end(file) for file in columns], "<i8")
        text = "\n".join((kind, *names)).encode()
        offset = self._files.end(self._file)
        payload = _DEFINITION.pack(self.last_definition, len(names)) + lengths.tobytes() + text
        self.last_definition = offset
        self._files.append(self._file, _HEADER.pack(_DEFN, len(payload), group) + payload)
        self._groups[kind, names] = group
        return group

    def forget(self) -> None:
        """Has every group defined anew when it is next used."""
        self._groups.clear()
        self.last_definition = _NOWHERE

    def _find_definitions(self, offset: int) -> None:
        """Takes up the definitions in force, each of which says where the one before it is."""

        def follow(descriptor: int, length: int) -> None:
            at = offset
            while at != _NOWHERE:
                frame = next(frames(descriptor, at, length), None)
                if frame is None or frame.kind != _DEFN:
                    self.forget()  # Not the file that it was: all is defined anew.
                    return
                definition = read_definition(descriptor, frame)
                self._groups[definition.kind, definition.names] = frame.group
                at = definition.previous if definition.previous < at else _NOWHERE

        self.last_definition = offset
        self._files.read(TIMES_PATH, follow)


def frames(descriptor: int, begin: int, end: int) -> Iterator[Frame]:
    """Yields the frames from `begin` on, as long as they are whole."""
    block, block_begin = b"", begin
    while begin + _HEADER.size <= end:
        if begin + _HEADER.size > block_begin + len(block):
            block, block_begin = read_exactly(descriptor, begin, min(begin + _READ_BYTES, end)), begin
        kind, size, group = _HEADER.unpack_from(block, begin - block_begin)
        payload = begin + _HEADER.size
        if kind not in (_ROWS, _DEFN) or payload + size > end:
            return
        yield Frame(kind, group, payload, payload + size)
        begin = payload + size


def read_definition(descriptor: int, frame: Frame) -> Definition:
    """Reads a frame that defines a group."""
    payload = read_exactly(descriptor, frame.begin, frame.end)
    previous, columns = _DEFINITION.unpack_from(payload)
    names_begin = _DEFINITION.size + 8 * columns
    lengths = np.frombuffer(payload, "<i8", columns, _DEFINITION.size).tolist()
    kind, *names = payload[names_begin:].decode().split("\n")
    return Definition(previous, kind, tuple(names), tuple(lengths))


def read_definitions(descriptor: int, length: int) -> Iterator[Definition]:
    """Yields all definitions in a file of times."""
    for frame in frames(descriptor, 0, length):
        if frame.kind == _DEFN:
            yield read_definition(descriptor, frame)


def whole_frames(descriptor: int, begin: int, end: int) -> int:
    """Where the whole frames of begin..end end."""
    for frame in frames(descriptor, begin, end):
        begin = frame.end
    return begin


TIMES_KIND = FileKind("", TIMES_PATH, "", whole_frames)


def _group(kind: str, names: tuple[str, ...]) -> int:
    digest = hashlib.blake2b("\n".join((kind, *names)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")
