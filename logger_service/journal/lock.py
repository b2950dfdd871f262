"""The lock that keeps two hosts from one journal."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

from .base import JournalError


class JournalLock:
    """An exclusive lock on a file, held until `release` or the end of the process. The file names its holder.

    The file stays: removing it would let two processes lock two files of one name.

    Args:
        path: The file; made if missing.

    Raises:
        JournalError: Somebody holds it.
        OSError: It cannot be made.
    """

    def __init__(self, path: Path) -> None:
        # Python opens with O_CLOEXEC: a child that outlives this process must not keep the lock.
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError:
            holder = os.pread(self._descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(self._descriptor)
            raise JournalError(f"{path.parent}: the journal is in use by another process (pid {holder})") from None
        except OSError:
            os.close(self._descriptor)
            raise

    def release(self) -> None:
        """Gives it up. May be called again."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, 0)
            os.close(descriptor)
