"""The append-only files of one run: buffered, written in few system calls, and found again after a crash.

A file is known by its length. What is appended waits in chunks; `write` writes the chunks of each file at its length;
`checkpoint` fsyncs what changed and tells the lengths, which the owner commits. Opened again with committed lengths,
the files are in recovery: what the owner appends again is compared with what stands beyond the committed length, and
only where it differs, or where there is nothing, is it written.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np

from logger_service.backends.base import Recovery
from logger_service.backends.handles import HANDLES, HandleCache, Slot
from logger_service.backends.shortfall import Shortfall
from logger_service.backends.tree import RunTree
from logger_service.backends.whole import Whole, read_exactly, whole_lines

_log = logging.getLogger(__name__)

_CHUNKS_A_CALL = min(os.sysconf("SC_IOV_MAX"), 1024) if "SC_IOV_MAX" in os.sysconf_names else 16

Chunk: TypeAlias = "bytes | memoryview"
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class FileKind:
    """Files that have one form."""

    directory: str
    """Where they are, at any depth; empty: the run's directory itself, not below it."""
    prefix: str
    """How their names in that directory begin, before a number; empty: there they may be called anything."""
    suffix: str
    """How they end; empty: there is one, whose name is the prefix."""
    whole: Whole
    """Where what is whole of them ends."""

    def has(self, path: str) -> bool:
        """Whether the file is of this kind."""
        begin = f"{self.directory}/{self.prefix}" if self.directory else self.prefix
        if not self.suffix:
            return path == begin
        if not (path.startswith(begin) and path.endswith(self.suffix) and len(path) >= len(begin) + len(self.suffix)):
            return False
        return not self.prefix or path[len(begin) : -len(self.suffix)].isdecimal()


class AppendFile:
    """One file. Made by `FileSet`.

    Attributes:
        path: Relative to the run's directory.
        length: Up to where it is written, or was found to be.
        disk_end: Where it ends on the disk, while it is in recovery and holds more than `length`.
        pending: Bytes appended and not yet written.
    """

    __slots__ = ("changed", "chunks", "disk_end", "foreign", "length", "path", "pending", "slot", "touched")

    def __init__(self, path: str, length: int, disk_end: int) -> None:
        self.path = path
        self.length = length
        self.disk_end = disk_end
        self.chunks: list[Chunk] = []
        self.pending = 0
        self.slot = Slot()
        self.touched = False  # There is something to write, be it nothing but the file itself.
        self.changed = False  # Since the last checkpoint.
        self.foreign = False  # Others wrote to it.


class FileSet:
    """The files of one run, as of their last checkpoint, in recovery. One thread at a time.

    Args:
        tree: The run's directory.
        kinds: The kinds of files there may be; files of no kind are left alone.
        lengths: The committed lengths; None: every file is continued as it is.
        state: What `state` returned at the last checkpoint; empty: nothing.
        shared: Others may append to the same files, one at a time: the owner holds a lock from the first `append` until
            `write` has returned. Files that others wrote to are left out of the lengths.
        handles: Where descriptors are kept.
    """

    def __init__(
        self,
        tree: RunTree,
        kinds: Sequence[FileKind],
        *,
        lengths: Mapping[str, int] | None,
        state: Mapping[str, Any],
        shared: bool = False,
        handles: HandleCache = HANDLES,
    ) -> None:
        self.tree = tree
        self.pending = 0
        """Bytes appended and not yet written, in all files."""
        self._kinds = kinds
        self._shared = shared
        self._handles = handles
        self._files: dict[str, AppendFile] = {}
        self._touched: list[AppendFile] = []
        self._recovery: Recovery | None = Recovery()
        self._gap = False
        self._foreign_lines: dict[str, int] = {}
        self._shortfall = Shortfall(tree, state)
        sizes = {path: size for path, size in self._sizes() if self._kind(path) is not None}
        for path in sizes.keys() | (lengths or {}).keys():
            self._find(path, None if lengths is None else lengths.get(path, 0), sizes.get(path, 0))
        tree.rest()

    # Appending

    def file(self, path: str) -> AppendFile:
        """Returns the file at a path, which need not exist and is not opened."""
        file = self._files.get(path)
        if file is None:
            file = self._files[path] = AppendFile(path, 0, 0)
        return file

    def append(self, file: AppendFile, chunk: Chunk) -> None:
        """Appends to a file's buffer. A file to which nothing but `b""` is appended is made."""
        file.chunks.append(chunk)
        size = len(chunk)
        file.pending += size
        self.pending += size
        if not file.touched:
            file.touched = True
            self._touched.append(file)

    def look(self, file: AppendFile) -> None:
        """Finds out what others have appended to a file, as long as nothing waits to be appended to it here."""
        if self._shared and not file.touched:
            try:
                with self._handles.opened(file.slot, self._opener(file)) as descriptor:
                    self._look_at_end(file, descriptor)
            except OSError:  # If it lasts, `write` will raise it; nothing has been appended here that could be lost.
                pass

    def end(self, file: AppendFile) -> int:
        """Returns where in a file the next byte that is appended will stand, as far as that is known."""
        self.look(file)
        return file.length + file.pending

    def take_foreign_lines(self) -> dict[str, int]:
        """Returns, by path, how many lines were found since the last call that others have appended."""
        lines, self._foreign_lines = self._foreign_lines, {}
        return lines

    def discard(self) -> None:
        """Forgets all buffers."""
        for file in self._touched:
            file.chunks.clear()
            file.pending, file.touched = 0, False
        self._touched.clear()
        self.pending = 0

    def write(self) -> None:
        """Writes all buffers.

        Raises:
            OSError: Of one of the files that could not be written; the others are. No buffer is lost: may be called
                again.
        """
        failure: OSError | None = None
        touched, self._touched = self._touched, []
        try:
            if self._recovery is not None and touched:
                self._shortfall.note({file.path for file in touched})
            while touched:
                try:
                    self._write(touched[-1])
                except OSError as error:
                    failure = failure or error
                    self._touched.append(touched[-1])
                touched.pop()
        finally:
            self._touched += touched
            self.tree.rest()
        if failure is not None:
            raise failure

    def checkpoint(self) -> dict[str, int]:
        """Writes and fsyncs what changed since the last checkpoint, and the directories of what was made.

        Returns:
            The lengths of the files that changed.
        """
        self.write()
        changed = [file for file in self._files.values() if file.changed]
        try:
            for file in changed:
                with self._handles.opened(file.slot, self._opener(file)) as descriptor:
                    os.fsync(descriptor)
            self.tree.sync()
        finally:
            self.tree.rest()
        for file in changed:
            file.changed = False
        return {file.path: file.length for file in changed if not file.foreign}

    def state(self) -> dict[str, Any]:
        """Returns what the next opening needs besides the lengths, as of the last `checkpoint`."""
        return self._shortfall.state()

    # Recovery

    def note_gap(self) -> None:
        """From here on, in recovery, whole lines that differ from what is appended are kept: batches are missing."""
        self._gap = True

    def end_recovery(self) -> Recovery:
        """Writes all buffers, keeps what the files hold beyond, cuts what of that is torn, and tells what was found.

        The rows of the result are for the caller to fill in.
        """
        self.write()
        recovery = self._found()
        try:
            for file in self._files.values():
                if file.disk_end > file.length:
                    before = file.length
                    self._mend(file)
                    if file.length > before:
                        recovery.kept[file.path] = recovery.kept.get(file.path, 0) + file.length - before
        finally:
            self.tree.rest()
        self._shortfall.end_recovery()
        self._recovery = None
        self._gap = False
        return recovery

    def paths(self) -> list[str]:
        """Returns the paths of all files that are known."""
        return list(self._files)

    def read(self, path: str, reader: Callable[[int, int], Result]) -> Result:
        """Returns `reader(descriptor, length)` of a file, without its buffer; without a descriptor if it is empty."""
        file = self.file(path)
        if not file.length:
            return reader(-1, 0)
        try:
            with self._handles.opened(file.slot, self._opener(file)) as descriptor:
                return reader(descriptor, file.length)
        finally:
            self.tree.rest()

    def close(self) -> None:
        """Closes all files, without writing buffers."""
        for file in self._files.values():
            self._handles.close(file.slot)
        self.tree.rest()

    def _found(self) -> Recovery:
        assert self._recovery is not None, "recovery has ended"
        return self._recovery

    def _sizes(self) -> list[tuple[str, int]]:
        directories = {kind.directory for kind in self._kinds}
        return [found for directory in sorted(directories) for found in self.tree.sizes(directory)]

    def _kind(self, path: str) -> FileKind | None:
        return next((kind for kind in self._kinds if kind.has(path)), None)

    def _find(self, path: str, committed: int | None, size: int) -> None:
        """Takes up a file that is committed, or was found, or both."""
        recovery = self._found()
        if committed is None:  # Continued as it is: all that is whole of it counts.
            file = self._files[path] = AppendFile(path, 0, size)
            self._mend(file)
            if file.length:
                recovery.kept[path] = file.length
            return
        base = self._shortfall.base(path, committed)
        if base < committed or size < committed:
            recovery.short[path] = committed - min(base, size)
        if size >= base:
            self._files[path] = AppendFile(path, base, size)
            return
        file = self._files[path] = AppendFile(path, 0, size)
        if size:
            self._mend(file)
        file.changed = True
        self._shortfall.add(path, committed, file.length)

    def _mend(self, file: AppendFile) -> None:
        """Moves `length` to the end of what is whole, and cuts what lies behind it."""
        kind = self._kind(file.path)
        with self._handles.opened(file.slot, self._opener(file)) as descriptor:
            whole = kind.whole(descriptor, file.length, file.disk_end) if kind else file.disk_end
            if whole < file.disk_end:
                self._cut(file, descriptor, whole)
        file.length = file.disk_end = whole
        file.changed = True

    def _cut(self, file: AppendFile, descriptor: int, end: int) -> None:
        os.ftruncate(descriptor, end)
        if self._recovery is not None:
            mended = self._recovery.mended
            mended[file.path] = mended.get(file.path, 0) + file.disk_end - end
        file.disk_end = end

    # Writing

    def _opener(self, file: AppendFile) -> Callable[[], int]:
        return lambda: self.tree.open(file.path, os.O_RDWR, create=True)

    def _write(self, file: AppendFile) -> None:
        reopened = file.slot.descriptor < 0
        descriptor = self._handles.acquire(file.slot, self._opener(file))
        try:
            file.changed = True
            if reopened or self._shared:
                self._look_at_end(file, descriptor)
            if file.disk_end > file.length:
                self._compare(file, descriptor)
            while file.pending:
                self._write_chunks(file, descriptor)
        finally:
            self._handles.release(file.slot)
        file.chunks.clear()
        file.touched = False

    def _look_at_end(self, file: AppendFile, descriptor: int) -> None:
        """Finds out what others did to a file since it was last looked at."""
        size, expected = os.fstat(descriptor).st_size, max(file.length, file.disk_end)
        if size < expected:  # To write at its old end would leave a hole in it.
            _log.warning("%s in %s was cut or removed; it is continued as it is", file.path, self.tree.root)
            file.length = file.disk_end = size
            file.foreign = self._shared
        elif size > expected and self._shared:
            file.disk_end = size
            file.foreign = True
            self._mend(file)  # Who wrote it may have died over it.
            if self._recovery is None:
                lines = read_exactly(descriptor, expected, file.length).count(b"\n")
                self._foreign_lines[file.path] = self._foreign_lines.get(file.path, 0) + lines

    def _compare(self, file: AppendFile, descriptor: int) -> None:
        """Passes over the pending bytes that the file holds already, and cuts it where they differ."""
        expected = b"".join(file.chunks)
        held = read_exactly(descriptor, file.length, min(file.length + len(expected), file.disk_end))
        if self._gap and not expected.startswith(held):
            self._skip_missing(file, descriptor, expected)
            held = read_exactly(descriptor, file.length, min(file.length + len(expected), file.disk_end))
        equal = len(held) if expected.startswith(held) else _common_length(expected, held)
        if equal < len(held):
            self._cut(file, descriptor, file.length + equal)
        file.length += equal
        file.pending -= equal
        self.pending -= equal
        file.chunks = [expected[equal:]] if file.pending else []

    def _skip_missing(self, file: AppendFile, descriptor: int, expected: bytes) -> None:
        """Passes over whole lines of batches that are missing, up to where what is expected stands, or to the end."""
        kind = self._kind(file.path)
        beyond = read_exactly(descriptor, file.length, file.disk_end)
        whole = (kind.whole(descriptor, file.length, file.disk_end) if kind else file.disk_end) - file.length
        skipped = _find_lines(beyond[:whole], expected) if kind and kind.whole is whole_lines else whole
        if skipped and self._recovery is not None:
            kept = self._recovery.kept
            kept[file.path] = kept.get(file.path, 0) + skipped
        file.length += skipped

    def _write_chunks(self, file: AppendFile, descriptor: int) -> None:
        if len(file.chunks) > _CHUNKS_A_CALL:
            file.chunks = [b"".join(file.chunks)]
        written = os.pwritev(descriptor, file.chunks, file.length)
        file.length += written
        file.pending -= written
        self.pending -= written
        file.chunks = _after(file.chunks, written) if file.pending else []


def _common_length(first: bytes, second: bytes) -> int:
    """How many bytes two texts begin with in common; they differ somewhere."""
    size = min(len(first), len(second))
    differs = np.frombuffer(first, np.uint8, size) != np.frombuffer(second, np.uint8, size)
    return int(differs.argmax())


def _find_lines(held: bytes, expected: bytes) -> int:
    """Where in whole lines the expected ones begin, all of them or as many as there are; the end if nowhere."""
    line = expected[: expected.find(b"\n") + 1] or expected
    begin = held.find(line)
    while begin >= 0:
        if (begin == 0 or held[begin - 1 : begin] == b"\n") and (
            held.startswith(expected, begin) or expected.startswith(held[begin:])
        ):
            return begin
        begin = held.find(line, begin + 1)
    return len(held)


def _after(chunks: list[Chunk], size: int) -> list[Chunk]:
    """What is left of chunks after their first `size` bytes."""
    index = 0
    while size >= len(chunks[index]):
        size -= len(chunks[index])
        index += 1
    return [memoryview(chunks[index])[size:], *chunks[index + 1 :]]
