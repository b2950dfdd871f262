"""The runs of a host: loaded from the journal, opened by name, adopted from the data directory."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

from logger_service.backends import registry
from logger_service.contract.errors import Reason, ServiceError
from logger_service.contract.names import check_exp_name, check_namespace
from logger_service.contract.values import from_map
from logger_service.hosting import identity
from logger_service.hosting.accepting import Entrance
from logger_service.hosting.context import HostContext
from logger_service.hosting.ledger import points_of
from logger_service.hosting.opening import close_backends, open_backends
from logger_service.hosting.run import Run
from logger_service.hosting.unary import KEEP_NS, UnaryDoor, request_key
from logger_service.journal.base import Change, RequestRow, RunRow, RunSnapshot
from logger_service.v1 import run_service_pb2

_log = logging.getLogger(__name__)

_NOTES_BYTES = 64 << 10
_NAME_LOCKS = 64

Name = tuple[str, str]


class Catalogue:
    """Finds runs by id and by name, and makes those that are not there.

    Args:
        context: What all runs share.
    """

    def __init__(self, context: HostContext) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._runs: dict[str, Run] = {}
        self._by_name: dict[Name, Run] = {}
        self._doors: dict[str, UnaryDoor] = {}
        # Whoever opens a run holds its lock: a file system that hangs under one run holds up no other.
        self._opening = [threading.Lock() for _ in range(_NAME_LOCKS)]

    def load(self) -> None:
        """Takes in what the journal knows."""
        for snapshot in self._context.journal.load():
            try:
                run = Run(self._context, snapshot)
            except Exception:  # of a backend that this server does not have, say: the others are served all the same
                _log.exception("run %s/%s cannot be loaded", snapshot.run.namespace, snapshot.run.exp_name)
                continue
            claimed = identity.read(self._context.settings.data_dir, run.log_dir)
            if claimed is not None and claimed.run_id != run.run_id:
                _log.warning("run %s (%s): its directory holds run %s now", run.name, run.run_id, claimed.run_id)
                continue
            self._add(run)

    def adopt_all(self) -> None:
        """Takes in the runs that lie in the data directory and that the journal does not know."""
        for claimed in identity.find_all(self._context.settings.data_dir):
            if self._context.draining:
                return
            name = (claimed.namespace, claimed.exp_name)
            if name in self._by_name:
                continue
            try:
                self.open(run_service_pb2.OpenRunRequest(namespace=name[0], exp_name=name[1], run_id=claimed.run_id))
            except Exception:  # the others are adopted all the same, and this one when a writer asks for it
                _log.exception("run %s/%s cannot be adopted at present", *name)

    # Finding

    def get(self, run_id: str) -> Run:
        """Returns a run.

        Raises:
            ServiceError: There is none of this id.
        """
        if not run_id:
            raise ServiceError(Reason.INVALID_FIELD, "run_id is empty", field="run_id")
        run = self._runs.get(run_id)
        if run is None:
            raise ServiceError(Reason.RUN_NOT_FOUND, field="run_id")
        return run

    def named(self, name: Name) -> Run | None:
        """Returns the run of a namespace and a name, if there is one."""
        return self._by_name.get(name)

    def all(self) -> list[Run]:
        """Returns all runs."""
        with self._lock:
            return list(self._runs.values())

    def door(self, run: Run) -> UnaryDoor:
        """Returns the way into a run for unary calls."""
        return self._doors[run.run_id]

    def entrance(self, run: Run) -> Entrance:
        """Returns the way into a run for streams."""
        return self._doors[run.run_id].entrance

    # Opening

    def ensure_open(self, run: Run) -> None:
        """Opens a run's backends, if they are not open; blocks.

        Raises:
            ServiceError: JOURNAL_UNAVAILABLE: they cannot be opened at present.
        """
        try:
            open_backends(run)
        except OSError as error:
            _log.exception("run %s cannot be opened", run.name)
            raise ServiceError(Reason.JOURNAL_UNAVAILABLE, "the run's files cannot be opened at present") from error

    def open(self, request: run_service_pb2.OpenRunRequest) -> run_service_pb2.OpenRunResponse:
        """Makes a run or attaches to one; blocks until it can be written to.

        Raises:
            ServiceError: It was refused.
        """
        name, specs = _checked_names(request), _checked_backends(request)
        key = request_key("OpenRun", request.request_id)
        with self._opening[hash(name) % _NAME_LOCKS], self._guarded(name):
            run = self._by_name.get(name)
            answered = run.requests.get(key) if run is not None and key is not None else None
            if answered is not None and answered.expires_ns <= time.time_ns():
                answered = None
            if answered is not None and answered.response:
                return run_service_pb2.OpenRunResponse.FromString(answered.response)
            made = run is None or answered is not None
            if run is None:
                run = self._make(request, name, specs, key)
            elif answered is None:
                _check_resumable(request, run, specs)
            self._context.committer.commit([])  # the run is known for good before anybody is told its id
            self.ensure_open(run)
            if run.row.closed:
                run.remember(closed=False)
            run.raise_epoch(request.epoch)
            response = self._describe(run, resumed=not made or points_of(run) > 0)
            self._context.committer.commit([] if key is None else [self._answer(run, key, response)])
            return response

    def close(self, run: Run) -> None:
        """Ends a run: applies and fsyncs what it accepted, and takes nothing new until it is opened again; blocks."""
        name = (run.row.namespace, run.row.exp_name)
        with self._opening[hash(name) % _NAME_LOCKS]:
            if not run.row.closed:
                run.remember(closed=True)
            self._context.committer.commit([])
            if run.applied < run.log.committed:
                self.ensure_open(run)
            close_backends(run, only_if_idle=False)

    @contextlib.contextmanager
    def _guarded(self, name: Name) -> Iterator[None]:
        """Has what the operating system refuses told as what it is for a client."""
        try:
            yield
        except OSError as error:
            _log.exception("run %s/%s cannot be opened", *name)
            raise ServiceError(Reason.JOURNAL_UNAVAILABLE, "the run's files cannot be opened at present") from error

    def _make(
        self, request: run_service_pb2.OpenRunRequest, name: Name, specs: list[dict[str, object]], key: bytes | None
    ) -> Run:
        """Makes a run that the journal does not know."""
        namespace, exp_name = name
        row = RunRow(
            run_id=request.run_id or os.urandom(16).hex(),
            namespace=namespace,
            exp_name=exp_name,
            epoch=request.epoch or 1,
            closed=False,
            created_ns=time.time_ns(),
            backends=json.dumps(
                specs or [{"type": type, "options": {}} for type in self._context.settings.default_backends]
            ),
            tags=json.dumps(dict(request.tags)),
            notes=request.notes,
        )
        data_dir = self._context.settings.data_dir
        run = Run(self._context, RunSnapshot(row))
        identity.check_spelling(data_dir, run.log_dir)
        claimed = identity.read(data_dir, run.log_dir)
        if request.resume == run_service_pb2.RESUME_MUST and claimed is None:
            raise ServiceError(Reason.RUN_MISSING, f"there is no run {namespace}/{exp_name} to resume")
        if claimed is not None:
            if request.resume == run_service_pb2.RESUME_NEVER:
                raise ServiceError(Reason.RUN_EXISTS, f"there is a run {namespace}/{exp_name} already")
            if request.run_id and request.run_id != claimed.run_id:
                raise ServiceError(Reason.RUN_MISMATCH, "run_id: the run of this name is another one", field="run_id")
            epoch = max(request.epoch, claimed.epoch)
            row = replace(row, run_id=claimed.run_id, epoch=epoch, created_ns=claimed.created_unix_nano)
            run = Run(self._context, RunSnapshot(row))
        if run.run_id in self._runs:
            raise ServiceError(Reason.RUN_MISMATCH, "run_id: it is the id of another run", field="run_id")
        run.is_unknown = True
        # Before the journal knows it: a directory that cannot be made leaves nothing behind.
        run.existed = run.directory.exists()
        identity.write(data_dir, run.identity)
        changes: list[Change] = [row]
        if key is not None:
            # Without an answer yet: a repeat of this call goes on with it, rather than finding a run that exists.
            run.requests[key] = RequestRow(run.run_id, key, b"", time.time_ns() + KEEP_NS)
            changes.append(run.requests[key])
        self._context.committer.submit(changes)
        self._add(run)
        return run

    def _answer(self, run: Run, key: bytes, response: run_service_pb2.OpenRunResponse) -> RequestRow:
        row = RequestRow(run.run_id, key, response.SerializeToString(), time.time_ns() + KEEP_NS)
        run.requests[key] = row
        return row

    def _describe(self, run: Run, *, resumed: bool) -> run_service_pb2.OpenRunResponse:
        return run_service_pb2.OpenRunResponse(
            run_id=run.run_id,
            epoch=run.row.epoch,
            log_dir=run.log_dir,
            resumed=resumed,
            points=points_of(run),
            last_write_unix_nano=run.last_write_ns,
            backends=[
                run_service_pb2.BackendInfo(
                    type=projector.type, capabilities=registry.backend_class(projector.type).capabilities()
                )
                for projector in run.projectors
            ],
            limits=self._context.settings.limits,
        )

    def _add(self, run: Run) -> None:
        with self._lock:
            self._runs[run.run_id] = run
            self._by_name[run.row.namespace, run.row.exp_name] = run
            self._doors[run.run_id] = UnaryDoor(Entrance(run))


def _checked_names(request: run_service_pb2.OpenRunRequest) -> Name:
    namespace = request.namespace or "default"
    field = "namespace"
    try:
        check_namespace(namespace)
        field = "exp_name"
        check_exp_name(request.exp_name)
    except ValueError as error:
        raise ServiceError(Reason.INVALID_NAME, str(error), field=field) from None
    if request.run_id and not identity.ID.fullmatch(request.run_id):
        raise ServiceError(Reason.INVALID_FIELD, "run_id: not 32 lower-case hexadecimal digits", field="run_id")
    if request.epoch > identity.MOST:
        raise ServiceError(Reason.INVALID_FIELD, "epoch: at most 2**63 - 1 is allowed", field="epoch")
    if len(request.notes.encode()) > _NOTES_BYTES:
        raise ServiceError(Reason.TOO_LARGE, f"notes: at most {_NOTES_BYTES:,} bytes are allowed", field="notes")
    return namespace, request.exp_name


def _checked_backends(request: run_service_pb2.OpenRunRequest) -> list[dict[str, object]]:
    specs: list[dict[str, object]] = []
    for spec in request.backends:
        if any(other["type"] == spec.type for other in specs):
            raise ServiceError(Reason.INVALID_OPTION, f"backends: {spec.type!r} stands twice", field="backends")
        specs.append({"type": spec.type, "options": registry.check_options(spec.type, from_map(spec.options))})
    return specs


def _check_resumable(request: run_service_pb2.OpenRunRequest, run: Run, specs: list[dict[str, object]]) -> None:
    if request.resume == run_service_pb2.RESUME_NEVER:
        raise ServiceError(Reason.RUN_EXISTS, f"there is a run {run.name} already")
    if request.run_id and request.run_id != run.run_id:
        raise ServiceError(Reason.RUN_MISMATCH, "run_id: the run of this name is another one", field="run_id")
    if specs and specs != json.loads(run.row.backends):
        raise ServiceError(Reason.RUN_MISMATCH, f"backends: {run.name} has others, or other options", field="backends")
