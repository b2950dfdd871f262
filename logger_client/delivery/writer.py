"""One writer of a run: the buffer, the sender and the way to the host, as the loggers above see them."""

from __future__ import annotations

import time
import weakref

from logger_client import fork
from logger_client.delivery.failures import Failures
from logger_client.delivery.identity import RunIdentity
from logger_client.delivery.options import DeliveryOptions
from logger_client.delivery.recorder import Recorder
from logger_client.delivery.retry import Backoff, asked_delay_s, call_may_be_retried
from logger_client.delivery.sender import Sender
from logger_client.delivery.synchronous import SynchronousSink
from logger_client.transports.base import CallFailed, Transport
from logger_service.contract.errors import DeliveryError, LoggerClosedError, Reason
from logger_service.contract.logger import FlushLevel
from logger_service.contract.sink import RecordSink
from logger_service.v1 import query_service_pb2, run_service_pb2

_LEVELS: dict[FlushLevel, run_service_pb2.FlushLevel] = {
    "accepted": run_service_pb2.FLUSH_LEVEL_ACCEPTED,
    "applied": run_service_pb2.FLUSH_LEVEL_APPLIED,
}
_CALL_TIMEOUT_S = 30.0
_LEDGER_TIMEOUT_S = 3.0


class Writer:
    """A writer. Nothing is connected before the first thing is logged or flushed.

    When the last logger that holds it is gone, what was logged is still delivered, in the background.

    Args:
        run: The run.
        transport: The way to its host, which belongs to the writer from now on.
        options: How to deliver.

    Attributes:
        sink: Where to log to.
    """

    def __init__(self, run: RunIdentity, transport: Transport, options: DeliveryOptions) -> None:
        recorder = Recorder(
            run.name,
            max_record_bytes=run.server_limits.max_record_bytes,
            max_buffer_bytes=options.max_buffer_bytes,
            on_full=options.on_full,
        )
        self._recorder = recorder
        self._run = run
        self._transport = transport
        self._closed = False
        self._synchronous = SynchronousSink(recorder, options.sync_timeout_s) if options.delivery == "sync" else None
        self.sink: RecordSink = self._synchronous or recorder
        self._begin()
        fork.watch(self)

    def _begin(self) -> None:
        """Makes what sends, as a writer that the host has not seen."""
        self._failures = Failures(self._run.name)
        self._sender = Sender(self._run, self._transport, self._recorder, self._failures)
        if self._synchronous is not None:
            self._synchronous.sender = self._sender
        self._finalizer = weakref.finalize(self, self._sender.leave_later)
        self._finalizer.atexit = False  # `exiting` does more.

    def begin_in_child(self) -> None:
        """Becomes another writer in a forked child, where no other thread runs and any lock may be held for ever."""
        self._finalizer.detach()
        fork.keep(self._sender)
        self._recorder.begin_in_child()
        self._begin()

    @property
    def is_alive(self) -> bool:
        """Whether what is logged can still be delivered."""
        return not self._closed and not self._sender.outbox.failure

    def flush(self, timeout_s: float | None, level: FlushLevel) -> run_service_pb2.Ledger | None:
        """Waits until everything that was logged has arrived; see `Logger.flush`."""
        if self._closed:
            raise LoggerClosedError
        return self._flush(timeout_s, level)

    def shutdown(self, timeout_s: float) -> None:
        """Delivers everything and ends the writer, which has ended even where this raises; see `Logger.shutdown`."""
        self._closed = True
        deadline = time.monotonic() + timeout_s
        self._recorder.close()
        try:
            try:
                if self._sender.has_started:
                    self._flush(timeout_s, "applied")
            except Exception:
                self._leave(deadline)
                raise
            self._leave(deadline)
        except Exception:
            raise
        except BaseException:  # Ctrl-C: nobody waits any more for what is still to be delivered.
            self._sender.leave_later()
            raise

    def _leave(self, deadline: float) -> None:
        self._sender.leave(max(0.0, deadline - time.monotonic()))
        self._sender.stop()

    def _flush(self, timeout_s: float | None, level: FlushLevel) -> run_service_pb2.Ledger | None:
        deadline = float("inf") if timeout_s is None else time.monotonic() + timeout_s
        outbox = self._sender.outbox
        if left := self._sender.deliver(timeout_s):
            if timeout_s is None or outbox.stopped:  # Another thread has shut it down.
                raise LoggerClosedError
            raise TimeoutError(
                f"unsent, or not acknowledged by {self._transport.target}, after {timeout_s:g} s: {left}"
            )
        ledger = self._flush_run(level, deadline)
        if undelivered := self._recorder.take_undelivered():
            self._failures.add(outbox.failure, undelivered)
        if message := self._failures.take():
            raise DeliveryError(message, ledger)
        return ledger

    def _flush_run(self, level: FlushLevel, deadline: float) -> run_service_pb2.Ledger | None:
        """Has the host flush what it acknowledged, and returns its ledger.

        Where nothing can be delivered any more, the host is only asked for the ledger: None if it does not answer.
        """
        backoff = Backoff()
        attempt = 0
        while not self._sender.outbox.failure:
            remaining_s = deadline - time.monotonic()
            if remaining_s <= 0:
                raise TimeoutError(
                    f"{self._transport.target} has acknowledged everything; that it is {level} it has not said in time"
                )
            writer_id, sequence = self._sender.outbox.position
            request = run_service_pb2.FlushRunRequest(
                run_id=self._run.run_id,
                writer_id=writer_id if sequence else "",
                sequence=sequence,
                level=_LEVELS[level],
            )
            try:
                return self._transport.flush_run(request, min(remaining_s, _CALL_TIMEOUT_S)).ledger
            except CallFailed as failure:
                if self._sender.outbox.stopped:
                    raise LoggerClosedError from None
                if failure.reason is Reason.RUN_NOT_FOUND:
                    self._reopen(min(remaining_s, _CALL_TIMEOUT_S))
                elif not (call_may_be_retried(failure) or _is_unknown_writer(failure)):
                    raise DeliveryError(f"flush: {failure.message}") from None
                time.sleep(max(0.0, min(backoff.delay_s(attempt, asked_delay_s(failure)), deadline - time.monotonic())))
                attempt += 1
        try:
            return self._transport.get_run(
                query_service_pb2.GetRunRequest(run_id=self._run.run_id), _LEDGER_TIMEOUT_S
            ).ledger
        except CallFailed:
            return None

    def _reopen(self, timeout_s: float) -> None:
        try:
            self._transport.open_run(self._run.reopen_request(), timeout_s)
        except CallFailed as failure:
            if not call_may_be_retried(failure):
                raise DeliveryError(f"flush: {failure.message}") from None


def _is_unknown_writer(failure: CallFailed) -> bool:
    """Whether the host lost its journal, and with it the writer, who learns of it on its stream."""
    return failure.error is not None and failure.error.field == "writer_id"
