"""`delivery="sync"`: each call waits until the host's backends have written what it logged."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from logger_client.delivery.receipt import Receipt
from logger_client.delivery.recorder import Recorder
from logger_client.delivery.sender import Sender
from logger_service.contract.buffer import RecordBuffer
from logger_service.contract.errors import DeliveryError, DeliveryPending
from logger_service.contract.late import Late
from logger_service.v1 import records_pb2


class SynchronousSink:
    """A `RecordSink` each of whose calls is a batch of its own, sent at once and waited for.

    Args:
        recorder: Keeps the order, and the bound on what is held.
        timeout_s: How long a call waits.

    Attributes:
        sender: Sends; to be set, and set anew in a forked child.
    """

    sender: Sender

    def __init__(self, recorder: Recorder, timeout_s: float) -> None:
        self._recorder = recorder
        self._timeout_s = timeout_s

    def add_scalar(self, name: str, value: float, step: int | None) -> None:
        """Logs one value."""
        now = time.time_ns()
        self._log(lambda buffer: buffer.add_scalar(name, value, step, now), 1, 0)

    def add_row(
        self,
        names: tuple[str, ...],
        values: list[float],
        step: int | None,
        texts: Sequence[tuple[str, str]] = (),
        late: Late | None = None,
    ) -> None:
        """Logs one row of metrics and the texts of the same call."""
        now = time.time_ns()
        if late is not None:
            values = late.row()
        size = self._recorder.texts_bytes(texts)
        self._log(lambda buffer: buffer.add_row(names, values, step, now, texts), len(values) + len(texts), size)

    def add_record(self, record: records_pb2.Record) -> None:
        """Logs a record of another kind."""
        size = self._recorder.record_bytes(record)
        self._log(lambda buffer: buffer.add_record(record, size), 1, size)

    def _log(self, fill: Callable[[RecordBuffer], None], points: int, size_bytes: int) -> None:
        """Logs what `fill` puts into a buffer.

        Raises:
            DeliveryError: The host, or a backend of it, refused it, or nothing can be delivered any more.
            DeliveryPending: It is on its way, and not there within the time.
            TimeoutError: There was no room for it within the time: it was not logged.
        """
        deadline = time.monotonic() + self._timeout_s
        if self.sender.outbox.failure:
            raise DeliveryError(self.sender.outbox.failure)
        receipt = Receipt()
        try:
            taken = self._recorder.add_at_once(
                fill, receipt, points=points, size_bytes=size_bytes, timeout_s=self._timeout_s
            )
            if not taken:
                raise DeliveryError(
                    self.sender.outbox.failure or "not logged: the buffer is full, and on_full is 'drop'"
                )
            refusals = receipt.wait(max(0.0, deadline - time.monotonic()))
        finally:
            receipt.abandon()
        if refusals is None:
            raise DeliveryPending(
                f"not applied within {self._timeout_s:g} s; it is kept and will be delivered: do not log it again"
            )
        if refusals:
            raise DeliveryError("; ".join(refusals))
