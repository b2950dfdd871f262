"""A host behind a gRPC server within the test process, for what no option of the command can bring about."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from logger_service.hosting.host import RunHost
from logger_service.hosting.settings import HostSettings
from logger_service.hosting.writer import WriterSession
from logger_service.journal.base import Journal
from logger_service.journal.sqlite import SqliteJournal
from logger_service.serving.grpc_server import GrpcServer
from logger_service.v1 import logging_service_pb2
from tests.support.event_loop import DEADLINE_S, run


class WatchedHost(RunHost):
    """A host that lets its test look at sessions, and in between."""

    def __init__(self, settings: HostSettings, journal: Journal) -> None:
        super().__init__(settings, journal)
        self.sessions: list[WriterSession] = []
        self.before_opening: Callable[[], object] = lambda: None

    def open_writer(self, hello: logging_service_pb2.Hello) -> WriterSession:
        self.before_opening()
        self.sessions.append(super().open_writer(hello))
        return self.sessions[-1]


class ServedHost:
    """A served host; ends with its `with` block.

    Attributes:
        host: The host. `host.sessions` has what was opened, `host.before_opening` is called before.

    Args:
        data_dir: Its data directory.
        host_class: The host's class.
        journal: Its journal; None: one on the disk.
        settings: Fields of `HostSettings`.
    """

    def __init__(
        self,
        data_dir: Path,
        host_class: type[WatchedHost] = WatchedHost,
        *,
        journal: Journal | None = None,
        **settings: Any,
    ) -> None:
        journal = journal or SqliteJournal(data_dir / ".logger-service" / "journal.sqlite")
        self.host = host_class(HostSettings(data_dir=data_dir, **settings), journal)
        self.host.start()
        self.address = run(self._start())

    async def _start(self) -> str:
        self._server = GrpcServer(self.host)
        return f"127.0.0.1:{await self._server.start('127.0.0.1:0')}"

    def drain_streams(self) -> None:
        """Does the first step of an ending."""
        run(self._server.drain(DEADLINE_S))

    def __enter__(self) -> ServedHost:
        return self

    def __exit__(self, *_: object) -> None:
        run(self._server.stop(None))
        self.host.close()
