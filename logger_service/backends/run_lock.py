"""Keeps processes that write to one run from writing at the same moment."""

from __future__ import annotations

import contextlib
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
        # Opened each time: a descriptor that is inherited by a forked child would have the lock of its parent.
        self._descriptor = os.open(self._run_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        with contextlib.suppress(OSError):
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Lets others have it."""
        descriptor, self._descriptor = self._descriptor, -1
        os.close(descriptor)
