"""The one place where a server is wired: settings -> locks -> journal -> host -> gRPC, and back when it is to end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from logger_service.backends import registry
from logger_service.contract.errors import ServiceError
from logger_service.hosting.host import RunHost
from logger_service.hosting.identity import sync_directory
from logger_service.hosting.settings import HostSettings
from logger_service.journal.base import Journal, JournalError
from logger_service.server.errors import StartError
from logger_service.server.lock import DirectoryLock
from logger_service.server.settings import Address, Settings
from logger_service.serving.grpc_server import GrpcServer
from logger_service.v1 import run_service_pb2

log = logging.getLogger(__name__)

INTERNAL_DIR = ".logger-service"
"""The server's own directory inside the data directory. No run can be called so: its name begins with a dot."""
JOURNAL_FILE = "journal.sqlite"

# How long it may take to write what is left. With twice the grace it stays below the 30 s after which Kubernetes kills.
_DRAIN_S = 15.0
# Streams and calls that have not ended by then are cut off: clients send what was not acknowledged again, elsewhere.
_GRACE_S = 5.0
# How long a call that hangs may hold up the end of the process when everything else has ended.
_HUNG_S = 2.0

_DURABILITY = {
    "disk": run_service_pb2.DURABILITY_DISK,
    "os": run_service_pb2.DURABILITY_OS,
    "memory": run_service_pb2.DURABILITY_MEMORY,
}


def run(settings: Settings) -> None:
    """Serves until it is told to end with SIGTERM or SIGINT.

    Raises:
        StartError: It cannot start.
    """
    with contextlib.ExitStack() as stack:
        # First of all, so that what is refused leaves no trace.
        _check_port(settings.listen)
        _check_backends(settings.backend)
        host = _open_host(settings, stack)
        try:
            host.start()
        except (OSError, JournalError) as error:
            raise StartError(f"the journal cannot be read: {error}") from error
        asyncio.run(_serve(settings.listen, host))
    _end_without_hung_threads()


def _end_without_hung_threads() -> None:
    """Ends the process if a call hangs, in a file system for example: the interpreter would wait for its thread."""
    deadline = time.monotonic() + _HUNG_S
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join(max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                log.error("ended although a call hangs")
                logging.shutdown()
                os._exit(0)


def _check_port(address: Address) -> None:
    """Refuses an address that cannot be listened on. So would gRPC, with lines of its own and without the reason."""
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(where)
    except OSError as error:
        raise StartError(f"--listen: cannot listen on {address}: {error.strerror}") from None


def _check_backends(types: Sequence[str]) -> None:
    try:
        for type in types:
            registry.backend_class(type)
    except ServiceError as error:
        raise StartError(f"--backend: {error.message}") from None


def _open_host(settings: Settings, stack: contextlib.ExitStack) -> RunHost:
    internal = settings.data_dir / INTERNAL_DIR
    with _refused(f"--data-dir: cannot write to {settings.data_dir}"):
        _make_directory(internal)
        stack.enter_context(DirectoryLock(internal, f"--data-dir: {settings.data_dir}"))
    host_settings = HostSettings(
        data_dir=settings.data_dir,
        default_backends=settings.backend,
        durability=_DURABILITY[settings.durability],
    )
    host = RunHost(host_settings, _open_journal(settings))
    stack.callback(host.close)
    return host


def _make_directory(path: Path) -> None:
    """Makes a directory that is still there after a crash of the machine."""
    missing = [part for part in (path, *path.parents) if not part.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for made in missing:
        sync_directory(made.parent)


def _open_journal(settings: Settings) -> Journal:
    if settings.durability == "memory":
        from logger_service.journal.memory import MemoryJournal

        return MemoryJournal()
    from logger_service.journal.sqlite import SqliteJournal

    option, directory = "--data-dir", settings.data_dir / INTERNAL_DIR
    if settings.journal_dir is not None:
        option, directory = "--journal-dir", settings.journal_dir
        with _refused(f"{option}: cannot write to {directory}"):
            _make_directory(directory)
    try:
        return SqliteJournal(directory / JOURNAL_FILE, settings.durability)
    except JournalError as error:
        raise StartError(f"{option}: {error}") from None


@contextlib.contextmanager
def _refused(what: str) -> Iterator[None]:
    """Has what the operating system refuses told to the operator."""
    try:
        yield
    except OSError as error:
        raise StartError(f"{what}: {error.strerror}") from None


async def _serve(address: Address, host: RunHost) -> None:
    """Serves a host until a signal, and drains it."""
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _end, number, told)
    server = GrpcServer(host)
    try:
        port = await server.start(str(address))
    except OSError as error:
        raise StartError(f"--listen: {error}") from None
    print(f"listening on {Address(address.host, port)}", flush=True)
    log.info("serving", extra={"address": str(Address(address.host, port)), "data_dir": str(host.settings.data_dir)})
    await told.wait()
    log.info("ending")
    await server.drain(_GRACE_S)
    drained = loop.run_in_executor(None, host.drain)
    done, _ = await asyncio.wait([drained], timeout=_DRAIN_S)
    if not done or not drained.result():
        # A full disk, or a backend that hangs. Threads that wait for it would keep the process: it ends without them.
        log.error("ended without writing everything; the next start does, from the journal")
        os._exit(1)
    await server.stop(_GRACE_S)
    log.info("ended")


def _end(number: signal.Signals, told: asyncio.Event) -> None:
    if told.is_set():
        # Told twice: at once. What was acknowledged is in the journal.
        os._exit(128 + number)
    told.set()
