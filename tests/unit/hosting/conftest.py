"""A host on a real journal and real files, in this process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from logger_service.hosting.host import RunHost
from logger_service.hosting.settings import HostSettings
from logger_service.hosting.writer import WriterSession
from logger_service.journal.sqlite import SqliteJournal
from logger_service.v1 import logging_service_pb2, records_pb2, run_service_pb2

DEADLINE_S = 30.0


class Writer:
    """What a client's sender does, without a client: one session, numbered batches."""

    def __init__(self, host: RunHost, run_id: str, writer_id: str = "", epoch: int = 1, first_held: int = 1) -> None:
        self.host, self.run_id = host, run_id
        self.writer_id = writer_id or os.urandom(16).hex()
        hello = logging_service_pb2.Hello(
            run_id=run_id, writer_id=self.writer_id, epoch=epoch, first_held=first_held, client="test"
        )
        self.session: WriterSession = host.open_writer(hello)
        self.sequence = self.session.welcome.last_sequence
        self.accepted = self.sequence
        self.applied = 0
        self.rejections: list[records_pb2.BatchRejections] = []
        self._progress = threading.Condition()
        self.session.on_progress = self._look

    def _look(self) -> None:
        with self._progress:
            acknowledgement = self.session.acknowledgement()
            if acknowledgement is not None:
                self.accepted, self.applied = acknowledgement.accepted, acknowledgement.applied
                self.rejections += acknowledgement.rejections
            self._progress.notify_all()

    def send(
        self, *records: records_pb2.Record, sequence: int = 0, wait_applied: bool = False, first_held: int = 1
    ) -> int:
        """Sends a batch; returns its sequence."""
        self.sequence = sequence or self.sequence + 1
        batch = records_pb2.Batch(
            sequence=self.sequence, first_held=first_held, records=records, wait_applied=wait_applied
        )
        self.session.accept(batch, batch.ByteSize())
        return self.sequence

    def wait(self, ready: Callable[[], bool]) -> None:
        """Waits for progress until `ready`."""
        self._look()
        with self._progress:
            assert self._progress.wait_for(ready, DEADLINE_S), (self.accepted, self.applied, self.session.failed)

    def wait_accepted(self) -> None:
        self.wait(lambda: self.accepted >= self.sequence)

    def finish(self) -> None:
        self.session.finish()
        self.wait(lambda: self.session.finished)


class Hosts:
    """Starts hosts on one data directory, one after the other."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.journal_path = data_dir / ".logger-service" / "journal.sqlite"
        self.settings = HostSettings(data_dir)
        self._running: list[RunHost] = []

    def start(self, **changes: object) -> RunHost:
        self.data_dir.mkdir(parents=True, exist_ok=True)
        settings = HostSettings(self.data_dir, **changes)  # type: ignore[arg-type]
        host = RunHost(settings, SqliteJournal(self.journal_path))
        self._running.append(host)
        host.start()
        return host

    def crash(self, host: RunHost) -> None:
        """Ends a host without draining it: its files and its journal stay as a crash of the process leaves them."""
        self._running.remove(host)
        host.close()

    def end(self, host: RunHost) -> None:
        host.drain()
        self.crash(host)

    def end_all(self) -> None:
        for host in list(self._running):
            self.crash(host)


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    hosts = Hosts(tmp_path / "data")
    yield hosts
    hosts.end_all()


def open_run(host: RunHost, exp_name: str = "run", **fields: object) -> run_service_pb2.OpenRunResponse:
    return host.open_run(run_service_pb2.OpenRunRequest(exp_name=exp_name, **fields))  # type: ignore[arg-type]


def rows(
    name: str | tuple[str, ...], values: list[float], steps: list[int] | None = None, times: list[int] | None = None
) -> records_pb2.Record:
    names = (name,) if isinstance(name, str) else name
    count = len(values) // max(1, len(names))
    return records_pb2.Record(
        metrics=records_pb2.MetricRows(
            names=names, steps=steps, values=values, time_unix_nano=times if times is not None else list(range(count))
        )
    )


def flush(host: RunHost, run_id: str, **fields: object) -> run_service_pb2.Ledger:
    request = run_service_pb2.FlushRunRequest(run_id=run_id, **fields)  # type: ignore[arg-type]
    return host.flush(request).result(DEADLINE_S)


def lines(data_dir: Path, name: str, run: str = "default/run") -> list[tuple[int, float]]:
    """Parses a scalar's file; a line that is not whole fails."""
    text = (data_dir / run / "scalars" / f"{name}.csv").read_text()
    assert not text or text.endswith("\n"), "a torn last line"
    parsed = []
    for line in text.splitlines():
        step, value = line.split(",")
        parsed.append((int(step), float(value)))
    return parsed
