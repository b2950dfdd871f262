"""`RunHost`: one journal, its runs and their projectors; the same behind a server, a child process and an actor."""

from __future__ import annotations

import logging
import re
from concurrent.futures import Future, ThreadPoolExecutor

from logger_service.backends import registry
from logger_service.contract.errors import Reason, ServiceError
from logger_service.hosting import identity
from logger_service.hosting.catalogue import Catalogue
from logger_service.hosting.committer import Committer
from logger_service.hosting.context import HostContext
from logger_service.hosting.ledger import describe, ledger_of, writers_of
from logger_service.hosting.opening import close_backends, open_backends
from logger_service.hosting.pool import Task, TaskPool
from logger_service.hosting.run import Run
from logger_service.hosting.settings import HostSettings
from logger_service.hosting.tail import TailBudget
from logger_service.hosting.unary import Steps, request_key
from logger_service.hosting.writer import WriterSession
from logger_service.journal.base import Journal
from logger_service.v1 import logging_service_pb2, query_service_pb2, records_pb2, run_service_pb2

_log = logging.getLogger(__name__)

_PAGE = re.compile(r"[0-9]{1,9}")
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
        self._catalogue = Catalogue(self._context)
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
        self._catalogue.load()
        for run in self._catalogue.all():
            if run.applied < run.log.committed:
                self._openers.submit(self._open_in_background, run)
        self._openers.submit(self._catalogue.adopt_all)
        self._pool.schedule(self._housekeeping, _IDLE_CHECK_S)

    # Runs

    def open_run(self, request: run_service_pb2.OpenRunRequest) -> run_service_pb2.OpenRunResponse:
        """Makes a run or attaches to one; blocks until it can be written to.

        Raises:
            ServiceError: It was refused.
        """
        self._check_serving()
        return self._catalogue.open(request)

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
        if not identity.ID.fullmatch(hello.writer_id):
            raise ServiceError(
                Reason.INVALID_FIELD, "writer_id: 32 lower-case hexadecimal digits are needed", field="writer_id"
            )
        for field in ("first_held", "epoch"):
            if not 1 <= getattr(hello, field) <= identity.MOST:
                raise ServiceError(Reason.INVALID_FIELD, f"{field}: not within 1 and 2**63 - 1", field=field)
        if len(hello.client.encode()) > 256:
            raise ServiceError(Reason.INVALID_FIELD, "client: at most 256 bytes are allowed", field="client")
        run = self._catalogue.get(hello.run_id)
        while True:
            # A closed run only repeats what it answered before; it needs no open backends for that.
            if not run.row.closed:
                self._catalogue.ensure_open(run)
            run.raise_epoch(hello.epoch)
            with run.lock:
                if run.is_open or run.row.closed:
                    return self._catalogue.entrance(run).connect(hello)

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
        run = self._catalogue.get(run_id)
        key = request_key(method, request_id)
        with run.lock:
            if run.is_open or run.row.closed:  # a closed run only repeats what it answered before
                return self._catalogue.door(run).log(record, epoch, key)
        # Opening blocks: it is done elsewhere, and the answer is passed on.
        answered: Future[Steps] = Future()

        def open_and_log() -> None:
            try:
                self._catalogue.ensure_open(run)
                logged = self.log(method, run_id, record, epoch=epoch, request_id=request_id)
                logged.add_done_callback(lambda _: _pass_on(logged, answered))
            except Exception as error:  # whatever it is, who waits is to know
                answered.set_exception(error)

        try:
            opening = self._openers.submit(open_and_log)
        except RuntimeError:  # the host is ending
            raise ServiceError(Reason.SHUTTING_DOWN) from None
        opening.add_done_callback(lambda _: _pass_on_cancellation(opening, answered))
        return answered

    def flush(self, request: run_service_pb2.FlushRunRequest) -> Future[run_service_pb2.Ledger]:
        """Waits for a writer's batch, or for all that the run has accepted, and tells the ledger.

        Raises:
            ServiceError: It was refused.
        """
        run = self._catalogue.get(request.run_id)
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
        run = self._catalogue.get(run_id)
        self._catalogue.close(run)
        return ledger_of(run)

    # Reading

    def list_runs(self, request: query_service_pb2.ListRunsRequest) -> query_service_pb2.ListRunsResponse:
        """Lists runs, the newest write first."""
        if request.page_size > 1000:
            raise ServiceError(Reason.INVALID_FIELD, "page_size: at most 1,000 are allowed", field="page_size")
        if request.page_token and not _PAGE.fullmatch(request.page_token):
            raise ServiceError(Reason.INVALID_FIELD, "page_token is not one that ListRuns gave", field="page_token")
        runs = [run for run in self._catalogue.all() if request.namespace in ("", run.row.namespace)]
        runs.sort(key=lambda run: (-run.last_write_ns, run.run_id))
        first = int(request.page_token or 0)
        after = first + (request.page_size or 100)
        return query_service_pb2.ListRunsResponse(
            runs=map(describe, runs[first:after]), next_page_token=str(after) if after < len(runs) else ""
        )

    def get_run(self, request: query_service_pb2.GetRunRequest) -> query_service_pb2.GetRunResponse:
        """Describes one run, by id or by name."""
        if request.run_id:
            run = self._catalogue.get(request.run_id)
        else:
            name = (request.namespace or "default", request.exp_name)
            found = self._catalogue.named(name)
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
        for run in self._catalogue.all():
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
        for run in self._catalogue.all():
            if run.is_open and not self._context.draining and not self._committer.failing:
                try:
                    close_backends(run, only_if_idle=True)
                except Exception:  # it is recovered when it is opened again; the others are closed all the same
                    _log.exception("run %s was not closed cleanly", run.name)
        return _IDLE_CHECK_S

    def _open_in_background(self, run: Run) -> None:
        try:
            open_backends(run)
        except Exception:  # the run stays as it is; a writer's hello tries again
            _log.exception("run %s cannot be recovered at present", run.name)


def _pass_on(source: Future[Steps], target: Future[Steps]) -> None:
    error = source.exception()
    if error is not None:
        target.set_exception(error)
    else:
        target.set_result(source.result())


def _pass_on_cancellation(source: Future[None], target: Future[Steps]) -> None:
    if source.cancelled():  # the host is ending
        target.set_exception(ServiceError(Reason.SHUTTING_DOWN))
