"""Opens runs: checks what the user asked for, asks the host, and says in plain words what it refuses."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, Literal, TypeAlias

from logger_client.delivery.identity import RunIdentity
from logger_client.delivery.options import check_choice
from logger_client.delivery.retry import Backoff, asked_delay_s, call_may_be_retried
from logger_client.transports.base import CallFailed, Transport
from logger_service.contract.errors import Reason
from logger_service.contract.names import check_exp_name, check_namespace
from logger_service.contract.values import to_map
from logger_service.v1 import run_service_pb2

_log = logging.getLogger("logger_client")

Resume: TypeAlias = Literal["allow", "never", "must"]
"""What to do about a run of the same name."""
Backends: TypeAlias = "Sequence[str | tuple[str, Mapping[str, Any]]]"
"""Types of backends, each alone or with its options."""

_RESUMES = {
    "allow": run_service_pb2.RESUME_ALLOW,
    "never": run_service_pb2.RESUME_NEVER,
    "must": run_service_pb2.RESUME_MUST,
}


def open_request(
    exp_name: str, namespace: str, backends: Backends | None, resume: Resume
) -> run_service_pb2.OpenRunRequest:
    """Returns the request for a run.

    Raises:
        ValueError, TypeError: An argument is not what it must be; the message names it.
    """
    check_choice("resume", resume, tuple(_RESUMES))
    return run_service_pb2.OpenRunRequest(
        exp_name=check_exp_name(exp_name),
        namespace=check_namespace(namespace),
        backends=_specs(backends),
        resume=_RESUMES[resume],
        request_id=secrets.token_hex(16),
    )


def open_run(transport: Transport, request: run_service_pb2.OpenRunRequest, timeout_s: float) -> RunIdentity:
    """Opens a run, and warns if it goes on with one that has been written to.

    Raises:
        ConnectionError: The host could not be reached within the time.
        FileExistsError: There is a run of this name, and `resume` is `never`.
        FileNotFoundError: There is none, and `resume` is `must`.
        ValueError: The host refused it, for example a backend that it does not have.
        RuntimeError: The host failed.
    """
    response = _call(transport, request, timeout_s)
    run = RunIdentity(
        run_id=response.run_id,
        epoch=response.epoch,
        namespace=request.namespace,
        exp_name=request.exp_name,
        log_dir=response.log_dir,
        backends=tuple(spec.SerializeToString() for spec in request.backends),
        limits=response.limits.SerializeToString(),
    )
    if response.resumed and request.resume == run_service_pb2.RESUME_ALLOW:
        _log.warning("run %s exists and goes on: it has %s", run.name, _what_it_has(response))
    return run


def _call(
    transport: Transport, request: run_service_pb2.OpenRunRequest, timeout_s: float
) -> run_service_pb2.OpenRunResponse:
    deadline = time.monotonic() + timeout_s
    backoff = Backoff()
    attempt = 0
    while True:
        try:
            return transport.open_run(request, max(0.001, deadline - time.monotonic()), wait_for_host=True)
        except CallFailed as failure:
            if not call_may_be_retried(failure):
                raise _refusal(transport, failure) from None
            delay_s = backoff.delay_s(attempt, asked_delay_s(failure))
            attempt += 1
            if time.monotonic() + delay_s >= deadline:
                raise ConnectionError(
                    f"target {transport.target!r} was not reached within {timeout_s:g} s: {failure.message}"
                ) from None
            time.sleep(delay_s)


def _refusal(transport: Transport, failure: CallFailed) -> Exception:
    """Returns the exception that users know for what a host refused."""
    if failure.error is None:
        return ConnectionError(
            f"target {transport.target!r} does not answer as a logger service does: {failure.message}"
        )
    if failure.error.reason is Reason.RUN_EXISTS:
        return FileExistsError(f"resume='never': {failure.message}")
    if failure.error.reason is Reason.RUN_MISSING:
        return FileNotFoundError(f"resume='must': {failure.message}")
    if failure.error.reason is Reason.INTERNAL:
        return RuntimeError(f"target {transport.target!r}: {failure.message}")
    return ValueError(failure.message)


def _specs(backends: Backends | None) -> list[run_service_pb2.BackendSpec]:
    """Returns what is asked of the host; None: its default."""
    if backends is None:
        return []
    if isinstance(backends, str) or not isinstance(backends, Sequence):
        raise TypeError(f"backends must be a list of types such as ['csv'], not {type(backends).__name__}")
    if not backends:
        raise ValueError("backends is empty; None takes the server's default")
    specs = []
    for entry in backends:
        backend, options = (entry, {}) if isinstance(entry, str) else _pair(entry)
        if not backend:
            raise ValueError("backends has an empty type")
        specs.append(run_service_pb2.BackendSpec(type=backend, options=to_map(options)))
    types = [spec.type for spec in specs]
    if len(set(types)) != len(types):
        raise ValueError(f"backends names a type twice: {types}")
    return specs


def _pair(entry: Any) -> tuple[str, Mapping[str, Any]]:
    if not (isinstance(entry, tuple) and len(entry) == 2):
        raise TypeError(f"an entry of backends must be a type, or a tuple of type and options, not {entry!r}")
    backend, options = entry
    if not isinstance(backend, str) or not isinstance(options, Mapping):
        raise TypeError(f"an entry of backends must be a type, or a tuple of type and options, not {entry!r}")
    return backend, options


def _what_it_has(response: run_service_pb2.OpenRunResponse) -> str:
    if not response.last_write_unix_nano:
        return "no points yet"
    last_write = datetime.fromtimestamp(response.last_write_unix_nano / 1e9, tz=timezone.utc)
    return (
        f"{response.points:,} points, the last of them written at {last_write.isoformat(sep=' ', timespec='seconds')}"
    )
