"""The numbering of batches, and what is kept until the host has acknowledged it. Knows neither threads nor wires."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from logger_client.delivery.receipt import Receipt

MIN_IN_FLIGHT = 8
"""So many batches may always be unacknowledged, however large they are."""


@dataclass(slots=True, eq=False)
class Entry:
    """One batch; numbered once it is in flight."""

    records: bytes
    """The serialized `records` of a `Batch`."""
    points: int
    """How many points they hold."""
    ordinal: int
    """Once this batch is acknowledged, so is all that was sealed up to this number."""
    dropped: int = 0
    """How many points were dropped since the batch before."""
    receipt: Receipt | None = None
    """Who waits until it is applied; None: nobody."""
    sequence: int = 0
    """Its number; 0: it has none yet."""
    accepted: bool = False
    """Whether the host has acknowledged it. It is then held only for the sake of its receipt."""

    @property
    def awaited(self) -> bool:
        """Whether somebody waits until it is applied."""
        return self.receipt is not None and self.receipt.waits


class Window:
    """The batches of one writer that are not settled: those in flight, which are numbered, and then the backlog.

    Not thread-safe: its owner locks.

    Attributes:
        max_bytes: How many bytes may be in flight, if they are more than `MIN_IN_FLIGHT` batches.
        last_sequence: The last number given.
        acknowledged_ordinal: All that was sealed up to this number is acknowledged.
        acknowledged_points: So many points are.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.last_sequence = 0
        self.acknowledged_ordinal = self.acknowledged_points = 0
        self._backlog: deque[Entry] = deque()
        self._held: deque[Entry] = deque()
        self._resend: deque[Entry] = deque()
        self._in_flight = 0
        self._in_flight_bytes = 0

    @property
    def first_held(self) -> int:
        """The least number still held, or the next one if none is."""
        return self._held[0].sequence if self._held else self.last_sequence + 1

    @property
    def all_sent(self) -> bool:
        """Whether nothing waits to be sent."""
        return not self._backlog and not self._resend

    def unacknowledged(self) -> list[Entry]:
        """Returns what the host has not acknowledged."""
        return [entry for entry in (*self._held, *self._backlog) if not entry.accepted]

    def add(self, entry: Entry) -> None:
        """Adds a batch to the backlog."""
        self._backlog.append(entry)

    def next_to_send(self) -> Entry | None:
        """Returns the batch to send next, numbered; None: there is none, or too much is in flight."""
        if self._resend:
            return self._resend.popleft()
        if not self._backlog:
            return None
        size = len(self._backlog[0].records)
        if self._in_flight >= MIN_IN_FLIGHT and self._in_flight_bytes + size > self.max_bytes:
            return None
        entry = self._backlog.popleft()
        self.last_sequence += 1
        entry.sequence = self.last_sequence
        self._held.append(entry)
        self._in_flight += 1
        self._in_flight_bytes += size
        return entry

    def find(self, sequence: int) -> Entry | None:
        """Returns the batch of this number, if it is still held."""
        return next((entry for entry in self._held if entry.sequence == sequence), None)

    def acknowledge(self, accepted: int, applied: int) -> list[Entry]:
        """Takes note of how far the host is, and settles the receipts of what is applied.

        Returns:
            What is acknowledged now and was not before.
        """
        newly = []
        for entry in self._held:
            if entry.sequence > accepted:
                break
            if not entry.accepted:
                entry.accepted = True
                self._in_flight -= 1
                self._in_flight_bytes -= len(entry.records)
                self.acknowledged_ordinal = max(self.acknowledged_ordinal, entry.ordinal)
                self.acknowledged_points += entry.points
                newly.append(entry)
            if entry.receipt is not None and entry.sequence <= applied:
                entry.receipt.settle()
        while self._held and self._held[0].accepted and not self._held[0].awaited:
            self._held.popleft()
        return newly

    def lost(self, accepted: int) -> tuple[int, int] | None:
        """Returns first and last of the batches held here that a host had accepted and, with `accepted`, has not."""
        highest = max((entry.sequence for entry in self._held if entry.accepted), default=0)
        return (accepted + 1, highest) if accepted < highest else None

    def resend(self, accepted: int) -> list[Entry]:
        """Begins on a new stream, whose host has accepted so much: the rest is sent again, in order.

        What is acknowledged but awaited is sent again too: so the host says on the new stream when it is applied.

        Returns:
            As `acknowledge`.
        """
        newly = self.acknowledge(accepted, 0)
        self._resend = deque(entry for entry in self._held if not entry.accepted or entry.awaited)
        return newly

    def renumber(self) -> list[Entry]:
        """Begins as a new writer: what is not acknowledged will be numbered from 1, and the rest is given up.

        Returns:
            What was given up: acknowledged, and held only because somebody waits until it is applied.
        """
        given_up = [entry for entry in self._held if entry.accepted]
        for entry in reversed(self._held):
            if not entry.accepted:
                entry.sequence = 0
                self._backlog.appendleft(entry)
        self._held.clear()
        self._resend.clear()
        self.last_sequence = self._in_flight = self._in_flight_bytes = 0
        return given_up

    def clear(self) -> list[Entry]:
        """Gives everything up and returns it."""
        entries = [*self._held, *self._backlog]
        self._backlog.clear()
        self._held.clear()
        self._resend.clear()
        self._in_flight = self._in_flight_bytes = 0
        return entries
