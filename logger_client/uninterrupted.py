"""Work that Ctrl-C cannot break off half-way.

Ctrl-C raises KeyboardInterrupt in the main thread, between any two steps of any Python code. In that of `threading`, of
gRPC or of `subprocess`, that may leave a lock held for ever, or a process that nobody knows; on a socket, half a frame.
Such code is left to helpers: threads, which no signal interrupts. The main thread waits for them with a lock of C.
"""

from __future__ import annotations

import _thread
import os
import queue
import sys
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_IDLE_S = 5.0
"""How long a helper waits for more. A thread that is new costs a call of gRPC some 100 us."""


def uninterrupted(work: Callable[[], T]) -> T:
    """Does something, by a helper if this is the main thread. Ctrl-C then ends the waiting, and not the work.

    Where there can be no helper, because the interpreter ends or there are too many threads, it is done here.

    Args:
        work: What to do. To be harmless if nobody waits for it any more.
    """
    if threading.get_ident() != threading.main_thread().ident:
        return work()
    errand = _Errand(work)
    return errand.outcome() if _hand_over(errand) else work()


def in_background(work: Callable[[], None]) -> None:
    """Has something done without waiting for it: this may be a finalizer, amid code that holds whatever it needs."""
    if not _hand_over(_Errand(work)):
        work()


class _Errand(Generic[T]):
    """What a helper does for somebody."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._results: list[T] = []
        self._error: BaseException | None = None
        self._undone = threading.Lock()
        self._undone.acquire()

    def run(self) -> None:
        """Does it."""
        try:
            self._results.append(self._work())
        except BaseException as error:
            self._error = error
        del self._work  # What it holds is for the one that waits to give up.

    def done(self) -> None:
        """Lets the one go that waits."""
        self._undone.release()

    def outcome(self) -> T:
        """Waits until it is done, and returns or raises what it has. To be called once."""
        self._undone.acquire()
        error, self._error = self._error, None
        if error is None:
            return self._results.pop()
        try:
            raise error
        finally:
            del error  # Which holds this very frame.


class _Helper:
    """A thread that runs errands. Not a `threading.Thread`: to start one takes locks of Python."""

    def __init__(self) -> None:
        self.inbox: queue.SimpleQueue[_Errand[Any]] = queue.SimpleQueue()

    def serve(self) -> None:
        """Runs errands until none has come for a while."""
        while True:
            try:
                errand = self.inbox.get(timeout=_IDLE_S)
            except queue.Empty:
                try:
                    _idle.remove(self)
                except ValueError:  # Somebody has taken it, and is about to send an errand.
                    continue
                return
            errand.run()
            _idle.append(self)  # Before it is told: the next errand of the same thread finds this helper.
            errand.done()
            del errand


_idle: list[_Helper] = []
"""Those who have nothing to do. Without a lock: each change of it is one step, which Ctrl-C cannot divide."""


def _hand_over(errand: _Errand[Any]) -> bool:
    """Has a helper run an errand; returns False if there can be none."""
    if sys.is_finalizing():  # Other threads do not run any more.
        return False
    try:
        helper = _idle.pop()
    except IndexError:
        helper = _Helper()
        try:
            _thread.start_new_thread(helper.serve, ())
        except RuntimeError:
            return False
    helper.inbox.put(errand)
    return True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)  # They do not run there.
