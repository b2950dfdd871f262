"""Keeps processes that write to one run from writing at the same moment."""

from __future__ import annotations

import fcntl
import os
from types import TracebackType


class RunLock:
    """A lock on a run's directory, for a `with` block. One thread at a time.

    On a file system that has no locks it does nothing: there one process at a time may write.

    Args:
        run_dir: The directory; it exists.
    """

    def __init__(self, run_dir: str) -> None:
        self._run_dir = run_dir
        self._descriptor = -1

    def __enter__(self) -> None:
        """Waits until no other holds the lock."""
        if self._descriptor < 0:
            self._descriptor = os.open(self._run_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._flock(fcntl.LOCK_EX)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Lets others have it."""
        self._flock(fcntl.LOCK_UN)

    def close(self) -> None:
        """Closes the directory; in a forked child, so that its lock is another one than its parent's."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)

    def _flock(self, operation: int) -> None:
        try:
            fcntl.flock(self._descriptor, operation)
        except OSError:
            pass
