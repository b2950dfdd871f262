"""Forked children: what makes itself anew there, and whether gRPC may be used.

gRPC does not survive a fork: its threads are not there, its locks may be held for ever. So what a child inherited of it
is kept, untouched, until the child ends, and the child sends through a relay (see `transports.relay`).
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import weakref
from typing import Protocol

_log = logging.getLogger("logger_client")

no_fork = threading.RLock()
"""Held while this process has something that a child must not inherit, such as a pipe that nobody would close there."""


class Inherited(Protocol):
    """What has to begin anew in a forked child."""

    def begin_in_child(self) -> None:
        """Called in the child, where no other thread runs and any lock may be held for ever."""


class _State:
    """What this process knows of its ancestors."""

    def __init__(self) -> None:
        self.grpc_is_inherited = False
        self.kept: list[object] = []


_state = _State()
_watched: weakref.WeakSet[Inherited] = weakref.WeakSet()


def watch(inherited: Inherited) -> None:
    """Has `begin_in_child` called in each child that is forked while the object lives."""
    _watched.add(inherited)


def keep(inherited: object) -> None:
    """Keeps what a child inherited from being released, which might touch gRPC."""
    _state.kept.append(inherited)


def grpc_is_inherited() -> bool:
    """Whether gRPC was loaded when this process, or one of its ancestors, was forked.

    Whoever loaded it may have used it, and there is no telling from here.
    """
    return _state.grpc_is_inherited


def _before() -> None:
    no_fork.acquire()


def _after_in_parent() -> None:
    with contextlib.suppress(RuntimeError):  # Ctrl-C came while it was waited for; the fork went on all the same.
        no_fork.release()


def _after_in_child() -> None:
    global no_fork
    no_fork = threading.RLock()
    _state.grpc_is_inherited = _state.grpc_is_inherited or "grpc._cython.cygrpc" in sys.modules
    for inherited in list(_watched):
        try:
            inherited.begin_in_child()
        except Exception:  # The others must not keep the parent's locks and gRPC.
            _log.exception("%s cannot be used in this forked process", type(inherited).__name__)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
