"""`RunHost`: one journal, its runs and their projectors; the same behind a server, a child process and an actor."""

from __future__ import annotations

import json
import logging
import os
import re
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

from logger_service.backends import registry
from logger_service.contract.errors import Reason, ServiceError
from logger_service.contract.names import check_exp_name, check_namespace
from logger_service.contract.values import from_map
from logger_service.hosting import identity
from logger_service.hosting.accepting import Entrance
from logger_service.hosting.committer import Committer
from logger_service.hosting.context import HostContext
from logger_service.hosting.ledger import describe, ledger_of, points_of, writers_of
from logger_service.hosting.opening import close_backends, open_run
from logger_service.hosting.pool import Task, TaskPool
from logger_service.hosting.run import Run
from logger_service.hosting.settings import HostSettings
from logger_service.hosting.tail import TailBudget
from logger_service.hosting.unary import Steps, UnaryDoor, request_key
from logger_service.hosting.writer import WriterSession
from logger_service.journal.base import Journal, RequestRow, RunRow, RunSnapshot
from logger_service.v1 import logging_service_pb2, query_service_pb2, records_pb2, run_service_pb2

_log = logging.getLogger(__name__)

_HEX_ID = re.compile(r"[0-9a-f]{32}")
_NOTES_BYTES = 64 << 10
_KEEP_ANSWER_NS = 600 * 10**9
_IDLE_CHECK_S = 5.0
_OPENERS = 4


class RunHost:
    """Hosts runs.

    Args:
        settings: Its settings.
        journal: Its journal; closed with it.
    """

    def __init__(self, settings: HostSettings, journal: Journal) -> None:
        for type in settings.default_backends:
            registry.backend_class(type)
        self._settings = settings
        self._journal = journal
        self._committer = Committer(journal)
        self._pool = TaskPool(settings.projector_threads, "projector")
        self._context = HostContext(settings, journal, self._committer, self._pool, TailBudget(settings.tail_bytes))
        self._openers = ThreadPoolExecutor(_OPENERS, "run-opener")
        self._lock = threading.Lock()
        self._runs: dict[str, Run] = {}
        self._by_name: dict[tuple[str, str], Run] = {}
        self._entrances: dict[str, Entrance] = {}
        self._doors: dict[str, UnaryDoor] = {}
        self._housekeeping = Task(self._close_idle)

    @property
    def settings(self) -> HostSettings:
        """The settings."""
        return self._settings

    @property
    def commits(self) -> int:
        """How many transactions the journal has committed since the start."""
        return self._committer.commits

    def start(self) -> None:
        """Loads the journal, and lets runs that have something to apply go on by themselves."""
        for snapshot in self._journal.load():
            run = Run(self._context, snapshot)
            claimed = identity.read(run.directory)
            if claimed is not None and claimed.run_id != run.run_id:
                _log.warning(
                    "run %s (%s) is no longer in its directory, which holds %s", run.name, run.run_id, claimed.run_id
                )
                continue
            self._add(run)
            if not run.row.closed and any(projector.applied < run.log.committed for projector in run.projectors):
                self._openers.submit(self._open_in_background, run)
        self._openers.submit(self._adopt_all)
        self._pool.schedule(self._housekeeping, _IDLE_CHECK_S)

    # Runs

    def open_run(self, request: run_service_pb2.OpenRunRequest) -> run_service_pb2.OpenRunResponse:
        """Makes a run or attaches to one; blocks until it can be written to.

        Raises:
            ServiceError: It was refused.
        """
        self._check_serving()
        namespace, exp_name = _checked_names(request)
        specs = _checked_backends(request)
        key = request_key("OpenRun", request.request_id)
        with self._lock:
            run = self._by_name.get((namespace, exp_name))
            answered = run.requests.get(key) if run is not None and key is not None else None
            if answered is not None and answered.expires_ns > time.time_ns():
                return run_service_pb2.OpenRunResponse.FromString(answered.response)
            made = run is None
            if run is None:
                run = self._make(request, namespace, exp_name, specs)
            else:
                _check_resumable(request, run, specs)
        self._committer.commit([])  # the run is known for good before anybody is told its id
        self._open(run)
        if run.row.closed:
            run.remember(closed=False)
        run.raise_epoch(request.epoch)
        self._committer.commit([])
        response = run_service_pb2.OpenRunResponse(
            run_id=run.run_id,
            epoch=run.row.epoch,
            log_dir=run.log_dir,
            resumed=not made or points_of(run) > 0,
            points=points_of(run),
            last_write_unix_nano=run.last_write_ns,
            backends=[
                run_service_pb2.BackendInfo(
                    type=projector.type, capabilities=registry.backend_class(projector.type).capabilities()
                )
                for projector in run.projectors
            ],
            limits=self._settings.limits,
        )
        if key is not None:
            row = RequestRow(run.run_id, key, response.SerializeToString(), time.time_ns() + _KEEP_ANSWER_NS)
            self._committer.commit([row])
            run.requests[key] = row
        return response

    def _make(
        self, request: run_service_pb2.OpenRunRequest, namespace: str, exp_name: str, specs: list[dict[str, object]]
    ) -> Run:
        """Makes a run that the journal does not know. Called with the lock held."""
        row = RunRow(
            run_id=request.run_id or os.urandom(16).hex(),
            namespace=namespace,
            exp_name=exp_name,
            epoch=request.epoch or 1,
            closed=False,
            created_ns=time.time_ns(),
            backends=json.dumps(specs or [{"type": type, "options": {}} for type in self._settings.default_backends]),
            tags=json.dumps(dict(request.tags)),
            notes=request.notes,
        )
        run = Run(self._context, RunSnapshot(row))
        claimed = identity.read(run.directory)
        if request.resume == run_service_pb2.RESUME_MUST and claimed is None:
            raise ServiceError(Reason.RUN_MISSING, f"there is no run {namespace}/{exp_name} to resume")
        if claimed is not None:
            if request.resume == run_service_pb2.RESUME_NEVER:
                raise ServiceError(Reason.RUN_EXISTS, f"there is a run {namespace}/{exp_name} already")
            if request.run_id and request.run_id != claimed.run_id:
                raise ServiceError(Reason.RUN_MISMATCH, "run_id: the run of this name is another one", field="run_id")
            row = replace(
                row,
                run_id=claimed.run_id,
                epoch=max(request.epoch, claimed.epoch, 1),
                created_ns=claimed.created_unix_nano,
            )
            run = Run(self._context, RunSnapshot(row))
        if run.run_id in self._runs:
            raise ServiceError(Reason.RUN_MISMATCH, "run_id: it is the id of another run", field="run_id")
        run.is_unknown = True
        self._committer.submit([row])
        self._add(run)
        return run

    def _add(self, run: Run) -> None:
        self._runs[run.run_id] = run
        self._by_name[run.row.namespace, run.row.exp_name] = run
        entrance = Entrance(run)
        self._entrances[run.run_id] = entrance
        self._doors[run.run_id] = UnaryDoor(entrance)

    def _open(self, run: Run) -> None:
        try:
            open_run(run)
        except OSError as error:
            _log.exception("run %s cannot be opened", run.name)
            raise ServiceError(Reason.JOURNAL_UNAVAILABLE, "the run's files cannot be opened at present") from error

    def _run(self, run_id: str) -> Run:
        if not run_id:
            raise ServiceError(Reason.INVALID_FIELD, "run_id is empty", field="run_id")
        run = self._runs.get(run_id)
        if run is None:
            raise ServiceError(Reason.RUN_NOT_FOUND, field="run_id")
        return run

    def _check_serving(self) -> None:
        if self._context.draining:
            raise ServiceError(Reason.SHUTTING_DOWN)
        if self._committer.failing:
            raise ServiceError(Reason.JOURNAL_UNAVAILABLE)

    # Writing

    def open_writer(self, hello: logging_service_pb2.Hello) -> WriterSession:
        """Opens a session for a writer; blocks until its run can be written to.

        Raises:
            ServiceError: It was refused.
        """
        self._check_serving()
        if not _HEX_ID.fullmatch(hello.writer_id):
            raise ServiceError(
                Reason.INVALID_FIELD, "writer_id: 32 lower-case hexadecimal digits are needed", field="writer_id"
            )
        if hello.first_held < 1:
            raise ServiceError(Reason.INVALID_FIELD, "first_held: sequences begin at 1", field="first_held")
        if len(hello.client.encode()) > 256:
            raise ServiceError(Reason.INVALID_FIELD, "client: at most 256 bytes are allowed", field="client")
        run = self._run(hello.run_id)
        while True:
            # A closed run only repeats what it answered before; it needs no open backends for that.
            if not run.row.closed:
                self._open(run)
            with run.lock:
                if run.is_open or run.row.closed:
                    return self._entrances[run.run_id].connect(hello)

    def log(
        self, method: str, run_id: str, record: records_pb2.Record, *, epoch: int | None, request_id: str
    ) -> Future[Steps]:
        """Logs one record, all or nothing.

        Args:
            method: The RPC; part of what a `request_id` is unique to.
            run_id: The run.
            record: The record; belongs to the host from now on.
            epoch: The run's epoch as the caller knows it; None: not checked.
            request_id: See `LogScalarRequest.request_id`.

        Returns:
            Name to step, once it is durable. The future's exception is a ServiceError.

        Raises:
            ServiceError: It was refused.
        """
        self._check_serving()
        run = self._run(run_id)
        key = request_key(method, request_id)
        if run.row.closed:
            raise ServiceError(Reason.RUN_CLOSED)
        with run.lock:
            if run.is_open:
                return self._doors[run_id].log(record, epoch, key)
        # Opening blocks: it is done elsewhere, and the answer is passed on.
        answered: Future[Steps] = Future()

        def open_and_log() -> None:
            try:
                self._open(run)
                self.log(method, run_id, record, epoch=epoch, request_id=request_id).add_done_callback(
                    lambda logged: answered.set_result(logged.result())
                )
            except Exception as error:  # whatever it is, who waits is to know
                answered.set_exception(error)

        self._openers.submit(open_and_log)
        return answered

    def flush(self, request: run_service_pb2.FlushRunRequest) -> Future[run_service_pb2.Ledger]:
        """Waits for a writer's batch, or for all that the run has accepted, and tells the ledger.

        Raises:
            ServiceError: It was refused.
        """
        run = self._run(request.run_id)
        told: Future[run_service_pb2.Ledger] = Future()

        def tell() -> None:
            if not told.done():
                told.set_result(ledger_of(run))

        def durable() -> None:
            if request.level == run_service_pb2.FLUSH_LEVEL_ACCEPTED:
                tell()
            else:
                run.when_writer_applied(request.writer_id, tell)

        run.when_durable(request.writer_id, request.sequence, durable)
        return told

    def close_run(self, run_id: str) -> run_service_pb2.Ledger:
        """Ends a run: applies and fsyncs what it accepted and refuses what is new; blocks.

        Raises:
            ServiceError: There is no such run.
        """
        run = self._run(run_id)
        if not run.row.closed:
            run.remember(closed=True)
        close_backends(run, only_if_idle=False)
        return ledger_of(run)

    # Reading

    def list_runs(self, request: query_service_pb2.ListRunsRequest) -> query_service_pb2.ListRunsResponse:
        """Lists runs, the newest write first."""
        if request.page_size > 1000:
            raise ServiceError(Reason.INVALID_FIELD, "page_size: at most 1,000 are allowed", field="page_size")
        if request.page_token and not request.page_token.isdecimal():
            raise ServiceError(Reason.INVALID_FIELD, "page_token is not one that ListRuns gave", field="page_token")
        with self._lock:
            runs = [run for run in self._runs.values() if request.namespace in ("", run.row.namespace)]
        runs.sort(key=lambda run: (-run.last_write_ns, run.run_id))
        first = int(request.page_token or 0)
        after = first + (request.page_size or 100)
        return query_service_pb2.ListRunsResponse(
            runs=map(describe, runs[first:after]), next_page_token=str(after) if after < len(runs) else ""
        )

    def get_run(self, request: query_service_pb2.GetRunRequest) -> query_service_pb2.GetRunResponse:
        """Describes one run, by id or by name."""
        if request.run_id:
            run = self._run(request.run_id)
        else:
            name = (request.namespace or "default", request.exp_name)
            found = self._by_name.get(name)
            if found is None:
                raise ServiceError(Reason.RUN_NOT_FOUND, f"there is no run {'/'.join(name)}", field="exp_name")
            run = found
        return query_service_pb2.GetRunResponse(run=describe(run), ledger=ledger_of(run), writers=writers_of(run))

    # Life

    def drain(self) -> bool:
        """Refuses what is new, and applies, fsyncs and closes all runs; blocks.

        Returns:
            Whether everything was written. If not, the next start does it, from the journal.
        """
        self._context.draining = True
        self._committer.ending = True
        self._openers.shutdown(wait=True, cancel_futures=True)
        drained = True
        for run in list(self._runs.values()):
            if self._committer.failing:
                _log.error("the journal cannot be written: runs are left as they are")
                return False
            try:
                close_backends(run, only_if_idle=False)
            except Exception:  # what cannot be written now is in the journal; the other runs are closed all the same
                _log.exception("run %s was not closed cleanly", run.name)
                drained = False
        return drained

    def close(self) -> None:
        """Ends the threads and closes the journal. What was not drained is recovered at the next start."""
        self._context.draining = True
        self._committer.ending = True
        self._openers.shutdown(wait=True, cancel_futures=True)
        self._pool.close()
        self._committer.close()
        self._journal.close()

    def _close_idle(self) -> float:
        for run in list(self._runs.values()):
            if run.is_open and not self._context.draining and not self._committer.failing:
                try:
                    close_backends(run, only_if_idle=True)
                except Exception:  # it is recovered when it is opened again; the others are closed all the same
                    _log.exception("run %s was not closed cleanly", run.name)
        return _IDLE_CHECK_S

    def _open_in_background(self, run: Run) -> None:
        try:
            open_run(run)
        except Exception:  # the run stays as it is; a writer's hello tries again
            _log.exception("run %s cannot be recovered at present", run.name)

    def _adopt_all(self) -> None:
        """Takes in the runs that lie in the data directory and that the journal does not know."""
        for claimed in identity.find_all(self._settings.data_dir):
            if self._context.draining:
                return
            name = (claimed.namespace, claimed.exp_name)
            if name in self._by_name:
                continue
            try:
                request = run_service_pb2.OpenRunRequest(namespace=name[0], exp_name=name[1], run_id=claimed.run_id)
                self.open_run(request)
            except Exception:  # the others are adopted all the same, and this one when a writer asks for it
                _log.exception("run %s/%s cannot be adopted at present", *name)


def _checked_names(request: run_service_pb2.OpenRunRequest) -> tuple[str, str]:
    namespace = request.namespace or "default"
    for field, check, value in (
        ("namespace", check_namespace, namespace),
        ("exp_name", check_exp_name, request.exp_name),
    ):
        try:
            check(value)
        except ValueError as error:
            raise ServiceError(Reason.INVALID_NAME, str(error), field=field) from None
    if request.run_id and not _HEX_ID.fullmatch(request.run_id):
        raise ServiceError(Reason.INVALID_FIELD, "run_id: not 32 lower-case hexadecimal digits", field="run_id")
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
        raise ServiceError(
            Reason.RUN_MISMATCH, f"backends: {run.name} has other ones, or other options", field="backends"
        )
