"""Locks a directory, so that two servers never share one."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType

from logger_service.server.errors import StartError

FILE_NAME = "lock"


class DirectoryLock:
    """A lock on a directory, held until `release`, or until the process ends in whatever way.

    The lock is on a file in the directory that is never removed (a file removed by one could be locked by another), and
    that holds the process id of who has it.

    Args:
        directory: The directory, which exists.
        named: What to call it in messages.

    Raises:
        StartError: Another process has it.
        OSError: The file cannot be made or locked.
    """

    def __init__(self, directory: Path, named: str) -> None:
        self._descriptor = os.open(directory / FILE_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            self._acquire(named)
        except BaseException:
            os.close(self._descriptor)
            raise

    def _acquire(self, named: str) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            raise StartError(f"{named} is in use by another server (pid {holder})") from None
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Gives the directory up."""
        os.close(self._descriptor)

    def __enter__(self) -> DirectoryLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()
