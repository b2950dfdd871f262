"""What a fork has to hold: locks taken before it, so that the child finds whole what they guard.

All of them in one place, since their order matters: who holds the second of two must not wait for the first.
"""

from __future__ import annotations

import _thread
import logging
import operator
import os
import threading
import weakref
from collections import deque
from collections.abc import Sequence
from typing import Protocol

_log = logging.getLogger(__name__)


class Forkable(Protocol):
    """Something with locks."""

    def fork_locks(self) -> Sequence[threading.Lock | threading.RLock]:
        """Returns its locks, in the order in which they are taken."""
        ...

    def begin_in_child(self) -> None:
        """Becomes the child's: makes its locks anew, and leaves to the parent what the parent has begun."""
        ...


_watched: weakref.WeakSet[Forkable] = weakref.WeakSet()
_inner: list[Forkable] = []
_guard = threading.RLock()
"""Held from before a fork until after it: several threads may fork at once, and each has to let go of its locks."""
_mine = threading.local()

# Built-in functions from end to end: what a signal's handler raises cannot come between a lock and the note of it.
_acquire, _release = operator.methodcaller("acquire"), operator.methodcaller("release")


def watch(forkable: Forkable) -> None:
    """Has forks hold the locks of an object, as long as it lives."""
    with _guard:
        _watched.add(forkable)


def watch_inner(forkable: Forkable) -> None:
    """As `watch`, for locks that are taken by who holds those of others; the object lives for ever."""
    with _guard:
        _inner.append(forkable)


class _Hold:
    """What one fork holds. Each method does all or, interrupted, is called again."""

    def __init__(self) -> None:
        self.error: BaseException | None = None
        """What a signal's handler raised meanwhile."""
        self.forkables: list[Forkable] | None = None
        self._taken: list[threading.RLock | None] = [None]

    def take(self) -> None:
        """Takes all locks."""
        if len(self._taken) == 1:
            self._taken.extend(filter(_acquire, [_guard]))
        if self.forkables is None:
            self.forkables = [*_watched, *_inner]
        locks = [_guard, *(lock for forkable in self.forkables for lock in forkable.fork_locks())]
        self._taken.extend(filter(_acquire, locks[len(self._taken) - 1 :]))  # type: ignore[arg-type]

    def give_back(self) -> None:
        """Releases them."""
        deque(map(_release, iter(self._taken.pop, None)), 0)
        self._taken.append(None)


def _before_fork() -> None:
    hold = _Hold()
    _holds().append(hold)
    taken = False
    while not taken:
        try:
            hold.take()
            taken = True
        except BaseException as error:  # The fork goes on whatever is raised here: it is told afterwards.
            hold.error = error


def _after_in_parent() -> None:
    hold = _holds().pop()
    given_back = False
    while not given_back:
        try:
            hold.give_back()
            given_back = True
        except BaseException as error:
            hold.error = error
    if isinstance(hold.error, KeyboardInterrupt):
        _thread.start_new_thread(_thread.interrupt_main, ())  # Later: what a hook raises goes nowhere.
    elif hold.error is not None:
        raise hold.error


def _after_in_child() -> None:
    global _guard
    _guard = threading.RLock()
    for forkable in _holds().pop().forkables or ():
        try:
            forkable.begin_in_child()
        except Exception:  # The others begin all the same.
            _log.exception("a logger cannot go on in a forked child")


def _holds() -> list[_Hold]:
    """The forks of this thread: more than one if a signal's handler forks while a fork begins."""
    if not hasattr(_mine, "holds"):
        _mine.holds = []
    holds: list[_Hold] = _mine.holds
    return holds


os.register_at_fork(before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
