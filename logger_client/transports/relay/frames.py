"""What a relay and its process say to each other: frames on a socket, each of which belongs to a call.

    frame     length of the payload, uint32 | number of the call, uint32 | kind, uint8 | payload
    CALL      the head of a call and its one request
    OPEN      the head of a call whose requests follow as DATA, until END
    DATA      a request; in the other direction, an answer
    END       there are no more of them
    CANCEL    the call is to end at once
    FAILED    the call has ended with an error: code, message and details

Numbers are big-endian. A process numbers its calls 1, 2, 3 …
"""

from __future__ import annotations

import enum
import math
import socket
import struct
import threading
from typing import NamedTuple

from logger_client.transports.base import CallFailed

_FRAME = struct.Struct("!IIB")
_HEAD = struct.Struct("!d?HH")
_FAILURE = struct.Struct("!BI?")


class Kind(enum.IntEnum):
    """What a frame says."""

    CALL = 1
    OPEN = 2
    DATA = 3
    END = 4
    CANCEL = 5
    FAILED = 6


class Head(NamedTuple):
    """What a call is."""

    target: str
    """The server."""
    method: str
    """`/package.Service/Method`."""
    timeout_s: float | None
    """Its deadline; None: it has none, as streams do."""
    wait_for_host: bool
    """Whether to wait for a server that cannot be reached, until the deadline."""


class Pipe:
    """One end of the socket between the two. Any thread may send; one receives.

    Args:
        end: The socket, which belongs to the pipe from now on.
    """

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._sending = threading.Lock()

    def send(self, call: int, kind: Kind, payload: bytes = b"") -> None:
        """Sends a frame.

        Raises:
            OSError: The other end is gone.
        """
        with self._sending:
            # One call for most frames; copying a large one would cost more than a second call.
            if len(payload) <= 1 << 16:
                self._socket.sendall(_FRAME.pack(len(payload), call, kind) + payload)
            else:
                self._socket.sendall(_FRAME.pack(len(payload), call, kind))
                self._socket.sendall(payload)

    def receive(self) -> tuple[int, Kind, bytes] | None:
        """Waits for a frame; None: the other end is gone."""
        try:
            header = self._take(_FRAME.size)
            if header is None:
                return None
            length, call, kind = _FRAME.unpack(header)
            payload = self._take(length)
        except OSError:
            return None
        return None if payload is None else (call, Kind(kind), payload)

    def shut_down(self) -> None:
        """Ends the connection, for both ends and whoever waits in them."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:  # The other end was faster.
            pass

    def close(self) -> None:
        """Gives up this end, whose other end is gone or which was shut down."""
        with self._sending:  # Who sends must not find another file under its number.
            self._socket.close()

    def abandon(self) -> None:
        """Gives up a copy of this end that a forked child has, in which the lock may be held for ever.

        Unlike `shut_down`, it does nothing to the copies of other processes.
        """
        self._socket.close()

    def _take(self, size: int) -> bytes | None:
        taken = bytearray()
        while len(taken) < size:
            part = self._socket.recv(size - len(taken), socket.MSG_WAITALL)
            if not part:
                return None
            taken += part
        return bytes(taken)


def pack_call(head: Head, request: bytes = b"") -> bytes:
    """Returns the payload of CALL, or of OPEN."""
    target, method = head.target.encode(), head.method.encode()
    timeout_s = math.inf if head.timeout_s is None else head.timeout_s
    return _HEAD.pack(timeout_s, head.wait_for_host, len(target), len(method)) + target + method + request


def unpack_call(payload: bytes) -> tuple[Head, bytes]:
    """Returns what `pack_call` packed."""
    timeout_s, wait_for_host, target_size, method_size = _HEAD.unpack_from(payload)
    method_at = _HEAD.size + target_size
    request_at = method_at + method_size
    target, method = payload[_HEAD.size : method_at].decode(), payload[method_at:request_at].decode()
    head = Head(target, method, None if timeout_s == math.inf else timeout_s, wait_for_host)
    return head, payload[request_at:]


def pack_failure(failure: CallFailed) -> bytes:
    """Returns the payload of FAILED."""
    message = failure.message.encode(errors="replace")
    return _FAILURE.pack(failure.code, len(message), failure.details is not None) + message + (failure.details or b"")


def unpack_failure(payload: bytes) -> CallFailed:
    """Returns what `pack_failure` packed."""
    code, size, has_details = _FAILURE.unpack_from(payload)
    details_at = _FAILURE.size + size
    message = payload[_FAILURE.size : details_at].decode()
    return CallFailed(code, message, payload[details_at:] if has_details else None)
