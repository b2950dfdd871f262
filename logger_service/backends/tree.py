"""The directory tree of a run, in which nothing is reached through a symbolic link.

Paths are relative to the run's directory, with `/`. The run's directory itself may lie behind links, which are its
owner's; below it each segment is opened without following links, so that none leads out.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator

_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NOT_BELOW = ("", ".", "..")
# Without blocking: what was planted may be a pipe, which nobody writes to.
_FILE_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class RunTree:
    """Opens what lies below a run's directory. One thread at a time.

    The directory used last is kept open until `rest`.

    Args:
        root: The run's directory; made if it is missing.
    """

    def __init__(self, root: str) -> None:
        self.root = os.path.abspath(root)
        self._unsynced: set[str] = set()
        self._last: tuple[str, int] | None = None
        self._make_root()

    def open(self, path: str, flags: int, *, create: bool = False) -> int:
        """Opens a file and returns its descriptor.

        Args:
            path: The file.
            flags: Of `os.open`.
            create: Make the file and its directories where they are missing.

        Raises:
            OSError: ELOOP or ENOTDIR where there is a symbolic link; ENOENT where it is missing.
        """
        directory, slash, name = path.rpartition("/")
        if name in _NOT_BELOW or (slash and not directory):
            raise OSError(errno.EINVAL, "not a path within the run's directory")
        parent = self._directory(directory, create)
        try:
            return os.open(name, flags | _FILE_FLAGS, dir_fd=parent)
        except FileNotFoundError:
            if not create:
                raise
        descriptor = os.open(name, flags | _FILE_FLAGS | os.O_CREAT, 0o666, dir_fd=parent)
        self._unsynced.add(directory)
        return descriptor

    def make_directory(self, path: str) -> None:
        """Makes a directory, and those above it, where they are missing."""
        self._directory(path, True)

    def read(self, path: str) -> bytes:
        """Returns what a file holds.

        Raises:
            OSError: As `open`.
        """
        with os.fdopen(self.open(path, os.O_RDONLY), "rb") as file:
            return file.read()

    def replace(self, path: str, content: bytes) -> None:
        """Puts a file in the place of what is there; at any moment, also of a crash, one of the two is there whole."""
        directory, _, name = path.rpartition("/")
        temporary = f".{name}.tmp"
        with os.fdopen(
            self.open(os.path.join(directory, temporary), os.O_WRONLY | os.O_TRUNC, create=True), "wb"
        ) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        parent = self._directory(directory, True)
        os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
        self._unsynced.add(directory)

    def remove(self, path: str) -> None:
        """Removes a file, if it is there."""
        directory, _, name = path.rpartition("/")
        try:
            os.unlink(name, dir_fd=self._directory(directory, False))
        except FileNotFoundError:
            return
        self._unsynced.add(directory)

    def sizes(self, directory: str) -> Iterator[tuple[str, int]]:
        """Yields path and size of each regular file below a directory (`""`: the run's own files, not those below)."""
        try:
            with os.scandir(self._directory(directory, False)) as entries:
                found = [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):  # Not there, or a link.
                raise
            return
        for name, status in found:
            path = f"{directory}/{name}" if directory else name
            if stat.S_ISREG(status.st_mode):
                yield path, status.st_size
            elif stat.S_ISDIR(status.st_mode) and directory:
                yield from self.sizes(path)

    def sync(self) -> None:
        """Fsyncs the directories in which something was made, renamed or removed since the last call."""
        for directory in sorted(self._unsynced):
            if os.path.isabs(directory):
                descriptor = os.open(directory, _DIRECTORY_FLAGS)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
            else:
                os.fsync(self._directory(directory, False))
        self._unsynced.clear()

    def rest(self) -> None:
        """Closes the directory that is kept open. The tree can be used again."""
        if self._last is not None:
            (_, descriptor), self._last = self._last, None
            os.close(descriptor)

    def _directory(self, path: str, create: bool) -> int:
        """The descriptor of a directory, which stays open until the next call."""
        if self._last is not None and self._last[0] == path:
            return self._last[1]
        self.rest()
        descriptor = os.open(self.root, _DIRECTORY_FLAGS)
        above = ""
        for segment in path.split("/") if path else ():
            try:
                below = self._enter(descriptor, above, segment, create)
            finally:
                os.close(descriptor)
            descriptor, above = below, f"{above}/{segment}" if above else segment
        self._last = path, descriptor
        return descriptor

    def _enter(self, parent: int, above: str, segment: str, create: bool) -> int:
        if segment in _NOT_BELOW:
            raise OSError(errno.EINVAL, "not a path within the run's directory")
        try:
            return os.open(segment, _DIRECTORY_FLAGS | os.O_NOFOLLOW, dir_fd=parent)
        except FileNotFoundError:
            if not create:
                raise
        try:
            os.mkdir(segment, dir_fd=parent)
        except FileExistsError:  # Another process was faster.
            pass
        self._unsynced.add(above)
        return os.open(segment, _DIRECTORY_FLAGS | os.O_NOFOLLOW, dir_fd=parent)

    def _make_root(self) -> None:
        missing = self.root
        while not os.path.isdir(missing):
            missing = os.path.dirname(missing)
            self._unsynced.add(missing)
        os.makedirs(self.root, exist_ok=True)
