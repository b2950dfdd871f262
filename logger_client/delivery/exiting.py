"""What happens when a process ends without `shutdown`: what was logged is still sent.

The sender's threads are daemons, which still run while exit hooks do. The hooks only wait for them, for a few seconds.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import sys
import threading
import time
from typing import Protocol

_log = logging.getLogger("logger_client")

EXIT_TIMEOUT_S = 5.0
"""How long all senders together may hold up the end of a process."""


class Exiting(Protocol):
    """A sender, as this module sees it."""

    def deliver(self, timeout_s: float) -> str:
        """Delivers what it has; returns what is left when the time is up, empty if nothing is."""

    def leave(self, timeout_s: float) -> None:
        """Says to the host that it is done."""

    def stop(self) -> None:
        """Ends at once."""


class _Hooks:
    """The senders that have something to do, and the hooks of one process."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.lock = threading.Lock()
        self.senders: list[Exiting] = []
        self.waited_s = 0.0
        # In an interactive session that of an exception long since shown.
        self.last_value = getattr(sys, "last_value", None)
        self.installed = False

    def install(self) -> None:
        """Installs the hooks, once."""
        if self.installed:
            return
        self.installed = True
        atexit.register(self.run, last=True)
        # From Python 3.12 on no thread can be started any more when `atexit` runs, and a new stream needs one. This
        # hook of the standard library's own runs before. Other threads may log after it, so it ends nothing.
        if register := getattr(threading, "_register_atexit", None):
            with contextlib.suppress(RuntimeError):  # The interpreter is ending already.
                register(self.run)
        multiprocessing_util = sys.modules.get("multiprocessing.util")
        if multiprocessing_util is not None and sys.modules["multiprocessing"].parent_process() is not None:
            # Workers that multiprocessing forks, its fork server's too, end without `atexit`.
            multiprocessing_util.Finalize(None, self.run, kwargs={"last": True}, exitpriority=100)

    def run(self, *, last: bool = False) -> None:
        """Waits for the senders; the last time, it also ends them."""
        if os.getpid() != self.pid:
            return
        begun = time.monotonic()
        deadline = begun + EXIT_TIMEOUT_S - self.waited_s
        for sender in list(self.senders):  # Without the lock, for which a handler of a signal would wait for ever.
            left = sender.deliver(max(0.0, deadline - time.monotonic()))
            if left and last:
                _log.error("the process ends before this was delivered: %s", left)
            if last and not left and getattr(sys, "last_value", None) is self.last_value:
                # A process that an exception ends leaves without a word, and its run counts as interrupted.
                sender.leave(max(0.0, deadline - time.monotonic()))
            if last:
                sender.stop()
        self.waited_s += time.monotonic() - begun


_hooks = _Hooks()


def add(sender: Exiting) -> None:
    """Has a sender waited for when the process ends."""
    global _hooks
    if _hooks.pid != os.getpid():
        _hooks = _Hooks()
    with _hooks.lock:
        if sender not in _hooks.senders:  # Ctrl-C may have interrupted who added it.
            _hooks.senders.append(sender)
        _hooks.install()


def discard(sender: Exiting) -> None:
    """The sender has nothing left to do. May be called again."""
    if _hooks.pid == os.getpid():
        with _hooks.lock:
            if sender in _hooks.senders:
                _hooks.senders.remove(sender)
