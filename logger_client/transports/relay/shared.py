"""Which relay a process uses: one for all its channels, started when it is first needed."""

from __future__ import annotations

import threading

from logger_client import fork
from logger_client.transports.base import CANCELLED, CallFailed
from logger_client.transports.relay.link import Relay


class SharedRelay:
    """The relay of this process, while there are channels that use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._relay: Relay | None = None
        self._users: set[object] = set()
        fork.watch(self)

    def join(self, channel: object) -> None:
        """A channel is about to use it."""
        with self._lock:
            self._users.add(channel)

    def relay(self, channel: object) -> Relay:
        """Returns the relay; starts one if there is none, or the last one has died.

        Raises:
            CallFailed: The channel has left, and would use one that nobody ends; or none can be started.
        """
        with self._lock:
            if channel not in self._users:
                raise CallFailed(CANCELLED, "the connection was closed")
            if self._relay is None or self._relay.ended:
                self._relay = Relay()
            return self._relay

    def leave(self, channel: object) -> None:
        """A channel needs it no more; the last one ends it."""
        with self._lock:
            self._users.discard(channel)
            if self._users or self._relay is None:
                return
            relay, self._relay = self._relay, None
        relay.end()

    def begin_in_child(self) -> None:
        """Leaves the parent's relay alone."""
        self._lock = threading.Lock()
        self._users = set()
        if self._relay is not None:
            fork.keep(self._relay)
            self._relay.abandon()
            self._relay = None


SHARED = SharedRelay()
"""The relay of this process."""
