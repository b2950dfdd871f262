"""Open files, which all runs of a process share: a bounded number, those used longest ago closed first."""

from __future__ import annotations

import errno
import itertools
import os
import resource
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from logger_service.backends import forks

_MOST = 256


class Slot:
    """Where a file's descriptor is kept while it is open."""

    __slots__ = ("descriptor", "users")

    def __init__(self) -> None:
        self.descriptor = -1
        self.users = 0


class HandleCache:
    """Keeps at most `limit` descriptors open, but for those in use. Thread-safe; one thread at a time uses a slot.

    Args:
        limit: How many; None: a quarter of what the process may open, at most 256.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._slots: OrderedDict[Slot, None] = OrderedDict()
        self.begin_in_child()

    def begin_in_child(self) -> None:
        """Makes the lock, which is held while the cache changes."""
        self._lock = threading.Lock()

    def fork_locks(self) -> list[threading.Lock]:
        """Returns the lock."""
        return [self._lock]

    def __len__(self) -> int:
        return len(self._slots)

    def acquire(self, slot: Slot, opener: Callable[[], int]) -> int:
        """Returns the slot's descriptor, opened if it is not; it stays open until `release`."""
        with self._lock:
            if slot.descriptor >= 0:
                slot.users += 1
                self._slots.move_to_end(slot)
                return slot.descriptor
        descriptor = self._open(opener)
        with self._lock:
            slot.users += 1
            slot.descriptor = descriptor
            self._slots[slot] = None
            self._evict(self.limit)
        return descriptor

    def release(self, slot: Slot) -> None:
        """Ends what `acquire` began."""
        with self._lock:
            slot.users -= 1

    @contextmanager
    def opened(self, slot: Slot, opener: Callable[[], int]) -> Iterator[int]:
        """Does both, around a block."""
        descriptor = self.acquire(slot, opener)
        try:
            yield descriptor
        finally:
            self.release(slot)

    def close(self, slot: Slot) -> None:
        """Closes the slot's descriptor, if it is open."""
        with self._lock:
            self._close(slot)

    @property
    def limit(self) -> int:
        """How many descriptors are kept open at most."""
        if self._limit is None:
            soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            self._limit = _MOST if soft == resource.RLIM_INFINITY else max(1, min(soft // 4, _MOST))
        return self._limit

    def _open(self, opener: Callable[[], int]) -> int:
        try:
            return opener()
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
        with self._lock:  # Others have taken the process's descriptors: give back ours.
            self._evict(0)
        return opener()

    def _evict(self, limit: int) -> None:
        unused = (slot for slot in self._slots if not slot.users)
        for slot in list(itertools.islice(unused, max(0, len(self._slots) - limit))):
            self._close(slot)

    def _close(self, slot: Slot) -> None:
        if slot.descriptor >= 0:
            del self._slots[slot]
            descriptor, slot.descriptor = slot.descriptor, -1
            os.close(descriptor)


HANDLES = HandleCache()
"""The descriptors of this process."""

forks.watch_inner(HANDLES)
