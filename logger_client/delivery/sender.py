"""The threads of one writer: one encodes what was logged, one keeps a stream to the host and reads what it answers."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator

from logger_client.delivery import exiting, words
from logger_client.delivery.bell import Bell
from logger_client.delivery.encoding import HEADER_BYTES, serialize_records
from logger_client.delivery.failures import Failures
from logger_client.delivery.identity import RunIdentity
from logger_client.delivery.outbox import Outbox
from logger_client.delivery.recorder import Recorder, Sealed
from logger_client.delivery.retry import Backoff, asked_delay_s, call_may_be_retried, stream_may_be_retried
from logger_client.delivery.stream import Stream
from logger_client.delivery.window import Entry
from logger_client.transports.base import CallFailed, Transport
from logger_client.uninterrupted import in_background, uninterrupted
from logger_service.contract.errors import Reason
from logger_service.contract.groups import settle
from logger_service.contract.wire import encode_records

_log = logging.getLogger("logger_client")

_REOPEN_TIMEOUT_S = 30.0
_REMIND_EVERY_S = 60.0
_FINISH_ATTEMPTS = 5
_JOIN_S = 0.5


class Sender:
    """Delivers what a recorder takes.

    What its owner calls may be called on the main thread, which Ctrl-C interrupts: there it waits with a `Bell`, and
    leaves to other threads what takes any other lock.

    Its threads start with the first thing logged. They end when the recorder was closed and all is delivered, when
    nothing can be delivered any more, or with `stop`.

    Args:
        run: The run.
        transport: The way to its host.
        recorder: Where what is logged comes from.
        failures: Told what does not arrive.

    Attributes:
        outbox: What is on its way.
    """

    def __init__(self, run: RunIdentity, transport: Transport, recorder: Recorder, failures: Failures) -> None:
        limits = run.server_limits
        self.outbox = Outbox(failures, recorder.release, limits.max_stream_bytes)
        self._run = run
        self._transport = transport
        self._recorder = recorder
        self._failures = failures
        self._max_batch_bytes = limits.max_message_bytes - HEADER_BYTES
        self._backoff = Backoff()
        self._stream: Stream | None = None
        self._lock = threading.Lock()
        self._ended = Bell()
        self._threads: dict[str, threading.Thread] = {}
        self._running: set[str] = set()
        self._abandoned = False
        self._trouble_since: float | None = None
        self._complained_at = 0.0
        recorder.on_first = self.start

    def start(self) -> None:
        """Starts the threads. After Ctrl-C it may be called again.

        Raises:
            RuntimeError: No thread can be started.
        """
        uninterrupted(self._start)

    def _start(self) -> None:
        with self._lock:
            for name, work in (("encoder", self._encode), ("stream", self._keep_stream)):
                if name not in self._threads:
                    thread = threading.Thread(
                        target=self._work, args=(name, work), name=f"logger-client-{name}", daemon=True
                    )
                    thread.start()
                    self._threads[name] = thread
                    self._running.add(name)
        exiting.add(self)

    def _work(self, name: str, work: Callable[[], None]) -> None:
        work()
        with self._lock:
            self._running.discard(name)
            self._ended.ring()
        if self._abandoned and not self._running:
            self._transport.close()

    @property
    def has_started(self) -> bool:
        """Whether anything was ever logged."""
        return bool(self._threads)

    def submit(self, sealed: Sealed) -> int:
        """Encodes what was sealed and adds it to what is on its way; returns how many bytes that is."""
        for why, lost in settle(sealed.content).items():
            self._failures.add(why, lost)
            self._recorder.forget(lost)
        parts = list(serialize_records(encode_records(sealed.content), self._max_batch_bytes)) or [(b"", 0)]
        dropped = sealed.dropped
        for index, (records, points) in enumerate(parts):
            last = index == len(parts) - 1
            self.outbox.add(
                Entry(
                    records,
                    points,
                    ordinal=sealed.ordinal if last else sealed.ordinal - 1,
                    dropped=dropped,
                    receipt=sealed.receipt if last else None,
                )
            )
            dropped = 0
        return sum(len(records) for records, _ in parts)

    def deliver(self, timeout_s: float | None) -> str:
        """Waits until all that was logged so far is acknowledged, or never will be.

        Returns:
            What is left when the time is up, in words; empty: nothing.
        """
        if self.outbox.wait_acknowledged(self._recorder.seal(), timeout_s) or self.outbox.failure:
            return ""
        ordinal, points = self._recorder.sealed_in_all
        acknowledged_ordinal, acknowledged_points = self.outbox.acknowledged_in_all
        batches = ordinal - acknowledged_ordinal
        if not batches:
            return ""
        return f"{words.counted(batches, 'batch', 'batches')} with {words.points(points - acknowledged_points)}"

    def leave(self, timeout_s: float) -> None:
        """Has the host told that nothing more will come, and waits until it knows."""
        self._recorder.close()
        self.join(timeout_s)

    def leave_later(self) -> None:
        """Nothing more will be logged: the threads end by themselves once all is delivered."""
        self._abandoned = True
        self._recorder.close_later()
        if not self._running:
            in_background(self._transport.close)

    def join(self, timeout_s: float | None) -> bool:
        """Waits until the threads have done their work; returns whether they have."""
        return self._ended.wait_for(lambda: not self._running, timeout_s)

    def stop(self) -> None:
        """Ends everything at once; what is not acknowledged is given up."""
        self.outbox.stop()  # Before anything is closed, or the encoder might find the time to say that all is done.
        self._recorder.close()
        uninterrupted(self._stop)

    def _stop(self) -> None:
        if self._stream is not None:
            self._stream.cancel()
        self._transport.close()
        deadline = time.monotonic() + _JOIN_S
        for thread in list(self._threads.values()):
            thread.join(max(0.0, deadline - time.monotonic()))
        exiting.discard(self)

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        """Around a thread's work: a fault must not leave a logger that takes everything and delivers nothing."""
        try:
            yield
        except Exception as fault:
            _log.exception("run %s: a fault of the client", self._run.name)
            self._fail(f"a fault of the client ({type(fault).__name__})")

    # The encoder's thread.

    def _encode(self) -> None:
        with self._guarded():
            while (taken := self._recorder.take()) is not None:
                for index, sealed in enumerate(taken):
                    try:
                        size_bytes = self.submit(sealed)
                    except Exception:
                        self._recorder.put_back(taken[index:])  # For `fail`, which says so to those who wait.
                        raise
                    self._recorder.release(sealed.size_bytes - size_bytes)
        self.outbox.finish()

    # The stream's thread.

    def _keep_stream(self) -> None:
        attempt = 0
        with self._guarded():
            while not self.outbox.is_done:
                self._stream = Stream(self._run, self._transport, self.outbox, self._connected)
                delay_s = self._serve(self._stream, attempt)
                attempt = 0 if self._stream.got_on else attempt + 1
                self.outbox.pause(delay_s)
        exiting.discard(self)

    def _serve(self, stream: Stream, attempt: int) -> float:
        """Serves a stream until it ends; returns how long to wait before the next one."""
        try:
            asked_s = stream.run()
        except CallFailed as failure:
            # That nothing more will come is worth some attempts to say, once the host has everything, but not all.
            if self.outbox.is_done or (attempt >= _FINISH_ATTEMPTS and self.outbox.mark_finished()):
                return 0.0
            return self._recover(failure, 0 if stream.got_on else attempt)
        if self.outbox.mark_finished():
            return 0.0
        return self._backoff.delay_s(attempt) if asked_s is None else asked_s

    def _recover(self, failure: CallFailed, attempt: int) -> float:
        """Does what a stream's error asks for; returns how long to wait."""
        if failure.error is not None and failure.error.reason is Reason.JOURNAL_LOST:
            metadata = failure.error.metadata
            self.outbox.lose(int(metadata.get("first_sequence", 0)), int(metadata.get("last_sequence", 0)))
            return 0.0 if attempt == 0 else self._backoff.delay_s(attempt)
        if failure.reason is Reason.RUN_NOT_FOUND:
            try:
                self._transport.open_run(self._run.reopen_request(), _REOPEN_TIMEOUT_S)
            except CallFailed as refusal:
                failure, may_be_retried = refusal, call_may_be_retried(refusal)
            else:
                return 0.0 if attempt == 0 else self._backoff.delay_s(attempt)
        else:
            may_be_retried = stream_may_be_retried(failure)
        if may_be_retried:
            self._complain(failure)
            return self._backoff.delay_s(attempt, asked_delay_s(failure))
        self._fail(failure.message if failure.reason is None else f"{failure.message} ({failure.reason.name})")
        return 0.0

    def _fail(self, why: str) -> None:
        _log.error("run %s: nothing more will be delivered to %s: %s", self._run.name, self._transport.target, why)
        self.outbox.fail(why)
        self._recorder.fail(why)

    def _connected(self) -> None:
        if self._trouble_since is not None:
            seconds = time.monotonic() - self._trouble_since
            _log.info("run %s: connected to %s again after %.1f s", self._run.name, self._transport.target, seconds)
            self._trouble_since = None

    def _complain(self, failure: CallFailed) -> None:
        """Says that there is trouble when it begins, and every minute while it lasts."""
        now = time.monotonic()
        if self._trouble_since is None:
            self._trouble_since = now
        elif now - self._complained_at < _REMIND_EVERY_S:
            return
        self._complained_at = now
        _log.warning(
            "run %s: no connection to %s (%s); what is logged is kept and sent once there is one",
            self._run.name,
            self._transport.target,
            failure.message,
        )
