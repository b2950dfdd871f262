"""What the threads of a sender share: the window of one writer behind one lock, and how far its host is."""

from __future__ import annotations

import threading
from collections.abc import Callable

from logger_client.delivery.bell import Bell
from logger_client.delivery.encoding import batch_request, finish_request
from logger_client.delivery.failures import Failures, explain
from logger_client.delivery.identity import new_writer_id
from logger_client.delivery.window import Entry, Window
from logger_service.v1 import logging_service_pb2, records_pb2


class Outbox:
    """Batches on their way. Thread-safe.

    Args:
        failures: Told what does not arrive.
        release: Given, without the lock, the size of what need not be held any more.
        max_bytes: How many bytes may be in flight.
    """

    def __init__(self, failures: Failures, release: Callable[[int], None], max_bytes: int) -> None:
        self._failures = failures
        self._release = release
        self._lock = threading.Lock()
        self._changed = Bell()
        self._window = Window(max_bytes)
        self._told: set[tuple[int, str]] = set()
        self._stream: object | None = None
        self._finishing = False
        self.writer_id = new_writer_id()
        self.position = (self.writer_id, 0)
        """The writer's id and the last sequence that it has used; 0: none."""
        self.failure = ""
        """Why nothing will be delivered any more; empty: it will."""
        self.stopped = False
        """Whether the sender is to end, whatever there is."""
        self.finished = False
        """Whether the host has everything and knows that nothing will come."""

    @property
    def is_done(self) -> bool:
        """Whether there is nothing left to do for a sender."""
        return self.stopped or self.finished or bool(self.failure)

    # What comes from the recorder.

    def add(self, entry: Entry) -> None:
        """Adds a batch to be sent."""
        with self._lock:
            if not self.failure:
                self._window.add(entry)
                self._changed.ring()
                return
        self._give_up([entry], self.failure)

    # What goes to the host.

    def begin_stream(self, stream: object) -> tuple[str, int]:
        """Makes `stream` the one that is served; returns the writer's id and the least sequence it holds."""
        with self._lock:
            self._stream = stream
            return self.writer_id, self._window.first_held

    def end_stream(self) -> None:
        """The stream has ended; whoever waits in `next_request` for it is let go."""
        with self._lock:
            self._stream = None
            self._changed.ring()

    def next_request(self, stream: object) -> bytes | None:
        """Waits for the next thing to send on a welcomed stream; None: nothing more."""
        request: bytes | None = None

        def found() -> bool:
            nonlocal request
            with self._lock:
                if self._stream is not stream:
                    return True
                entry = self._window.next_to_send()
                if entry is not None:
                    self.position = (self.writer_id, self._window.last_sequence)
                    request = batch_request(entry, self._window.first_held)
                elif self._finishing and self._window.all_sent:
                    self._stream = None
                    request = finish_request()
                return request is not None

        self._changed.wait_for(found)
        return request

    # What comes from the host.

    def welcome(self, welcome: logging_service_pb2.Welcome) -> bool:
        """The host has so much; the rest is sent again.

        Returns:
            False if it no longer has what it acknowledged, so that another stream must be begun, as a new writer.
        """
        with self._lock:
            lost = self._window.lost(welcome.last_sequence)
        if lost is not None:
            self.lose(*lost)
            return False
        with self._lock:
            self._window.max_bytes = welcome.limits.max_stream_bytes or self._window.max_bytes
            newly = self._window.resend(welcome.last_sequence)
        self._settle(newly)
        return True

    def acknowledge(self, acknowledgement: logging_service_pb2.Acknowledgement) -> None:
        """Takes what the host says about batches."""
        with self._lock:
            refused = [told for told in acknowledgement.rejections if self._is_news(told)]
            unheard = [told for told in refused if not self._tell_receipt(told)]
            newly = self._window.acknowledge(acknowledgement.accepted, acknowledgement.applied)
        for told in unheard:
            self._failures.add_rejections(told)
        self._settle(newly)

    def lose(self, first_sequence: int, last_sequence: int) -> None:
        """The host lost batches that it had acknowledged: goes on as a new writer."""
        with self._lock:
            loser, self.writer_id = self.writer_id, new_writer_id()
            self._told.clear()
            given_up = self._window.renumber()
            self.position = (self.writer_id, 0)
        self._failures.add_lost(loser, first_sequence, last_sequence)
        self._give_up(given_up, "the server lost its journal: what was acknowledged may stand in the files or not")

    def fail(self, why: str) -> None:
        """Nothing will be delivered any more."""
        with self._lock:
            self.failure = why
            entries = self._window.clear()
            self._changed.ring()
        self._give_up(entries, why)

    # What its owner wants: without the lock, as it may be the handler of a signal that wants it.

    def wait_acknowledged(self, ordinal: int, timeout_s: float | None) -> bool:
        """Waits until all that was sealed up to `ordinal` is acknowledged; also returns False if it never will be."""
        self._changed.wait_for(lambda: self._window.acknowledged_ordinal >= ordinal or self.is_done, timeout_s)
        return self._window.acknowledged_ordinal >= ordinal

    @property
    def acknowledged_in_all(self) -> tuple[int, int]:
        """Up to which ordinal all is acknowledged, and how many points are; for messages."""
        return self._window.acknowledged_ordinal, self._window.acknowledged_points

    # What its threads want.

    def finish(self) -> None:
        """Nothing will be added any more: once all is sent, says so to the host."""
        with self._lock:
            self._finishing = True
            self._changed.ring()

    def mark_finished(self) -> bool:
        """The host ended the stream as it should: returns whether that was because it has everything."""
        with self._lock:
            if self._finishing and not self._window.unacknowledged():
                self.finished = True
                self._changed.ring()
            return self.finished

    def stop(self) -> None:
        """Ends what waits."""
        with self._lock:
            self.stopped = True
            self._stream = None
            self._changed.ring()

    def pause(self, seconds: float) -> None:
        """Waits, unless there is nothing left to do."""
        self._changed.wait_for(lambda: self.is_done, seconds)

    # With the lock held.

    def _is_news(self, told: records_pb2.BatchRejections) -> bool:
        key = (told.sequence, told.backend)
        if key in self._told:
            return False
        self._told = {known for known in self._told if known[0] >= self._window.first_held}
        self._told.add(key)
        return True

    def _tell_receipt(self, told: records_pb2.BatchRejections) -> bool:
        entry = self._window.find(told.sequence)
        if entry is None or entry.receipt is None:
            return False
        heard = [entry.receipt.refuse(message) for message, _ in explain(told)]
        return all(heard)

    # Without it.

    def _settle(self, entries: list[Entry]) -> None:
        if entries:
            self._release(sum(len(entry.records) for entry in entries))
            with self._lock:
                self._changed.ring()

    def _give_up(self, entries: list[Entry], why: str) -> None:
        for entry in entries:
            if entry.receipt is not None and entry.receipt.refuse(why):
                entry.receipt.settle()
            elif not entry.accepted:
                self._failures.add(why, entry.points)
