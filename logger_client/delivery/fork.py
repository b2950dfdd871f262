"""Loggers in a forked child: gRPC does not survive a fork, so nothing that was inherited may touch it."""

from __future__ import annotations

import os
import weakref
from typing import Protocol

MESSAGE = (
    "a logger cannot be used in a forked child yet: gRPC does not survive a fork; "
    "start the process with the multiprocessing context 'spawn' or 'forkserver'"
)


class _Inherited(Protocol):
    def disable_after_fork(self) -> None:
        """Called in the child, where no other thread runs and any lock may be held for ever."""


class _State:
    """What this process knows about its gRPC."""

    def __init__(self) -> None:
        self.grpc_used = False
        self.grpc_inherited = False
        self.kept: list[object] = []


_state = _State()
_watched: weakref.WeakSet[_Inherited] = weakref.WeakSet()


def watch(inherited: _Inherited) -> None:
    """Has `disable_after_fork` called in each child that is forked while the object lives."""
    _watched.add(inherited)


def claim_grpc() -> None:
    """Says that gRPC is about to be used.

    Raises:
        RuntimeError: It was in use when this process was forked.
    """
    if _state.grpc_inherited:
        raise RuntimeError(MESSAGE)
    _state.grpc_used = True


def _after_in_child() -> None:
    _state.grpc_inherited = _state.grpc_inherited or _state.grpc_used
    for inherited in list(_watched):
        # Kept: to release a channel would touch gRPC.
        _state.kept.append(inherited)
        inherited.disable_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_in_child)
