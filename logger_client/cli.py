"""The command `logger-client`: looks at a server and its runs.

Exit status: 0; 1 where the server says no; 2 where it was called wrongly or the server cannot be reached.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from logger_client.report import plain, run_report, run_table, server_report
from logger_client.version import __version__
from logger_service.contract.errors import Reason
from logger_service.v1 import query_service_pb2

if TYPE_CHECKING:
    from logger_client.transports.base import Transport

_TIMEOUT_S = 10.0
_PAGE_SIZE = 1000
_REFUSED, _UNUSABLE = 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit status.

    Args:
        arguments: Its arguments; None: those of the process.
    """
    options = _parser().parse_args(arguments)
    # Not before here: gRPC takes longer to load than all the rest.
    from logger_client.grpc_logger import TARGET_VARIABLE, check_target
    from logger_client.transports.base import CallFailed
    from logger_client.transports.grpc import GrpcTransport

    target = options.target or os.environ.get(TARGET_VARIABLE)
    if not target:
        return _complain(f"no target: give --target HOST:PORT or set {TARGET_VARIABLE}", _UNUSABLE)
    try:
        transport = GrpcTransport(check_target(target))
    except ValueError as error:
        return _complain(str(error), _UNUSABLE)
    try:
        options.command(transport, options)
    except CallFailed as failure:
        if failure.error is None:
            return _complain(f"no logger service answers at {target}: {failure.message}", _UNUSABLE)
        return _complain(failure.message, _REFUSED)
    finally:
        transport.close()
    return 0


def _parser() -> argparse.ArgumentParser:
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--target", metavar="HOST:PORT", help="the server; default: the variable LOGGER_CLIENT_TARGET")
    shared.add_argument("--json", action="store_true", help="print JSON")
    parser = argparse.ArgumentParser(prog="logger-client", description="Looks at a logger service and its runs.")
    parser.add_argument("--version", action="version", version=f"logger-client {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    ping = commands.add_parser("ping", parents=[shared], help="ask a server what it is")
    ping.set_defaults(command=_ping)
    ls = commands.add_parser("ls", parents=[shared], help="list runs, newest write first")
    ls.add_argument("--namespace", default="", help="only this namespace; default: all")
    ls.set_defaults(command=_ls)
    show = commands.add_parser("show", parents=[shared], help="show one run, its ledger and its writers")
    show.add_argument("run", metavar="RUN", help="NAMESPACE/EXP_NAME, EXP_NAME in the namespace 'default', or a run id")
    show.set_defaults(command=_show)
    return parser


def _ping(transport: Transport, options: argparse.Namespace) -> None:
    info = transport.get_server_info(_TIMEOUT_S)
    _print(options, plain(info), server_report(info, transport.target))


def _ls(transport: Transport, options: argparse.Namespace) -> None:
    runs: list[query_service_pb2.Run] = []
    token = ""
    while True:
        request = query_service_pb2.ListRunsRequest(namespace=options.namespace, page_size=_PAGE_SIZE, page_token=token)
        page = transport.list_runs(request, _TIMEOUT_S)
        runs += page.runs
        token = page.next_page_token
        if not token:
            break
    _print(options, [plain(run) for run in runs], run_table(runs))


def _show(transport: Transport, options: argparse.Namespace) -> None:
    response = _find_run(transport, options.run)
    _print(options, plain(response), run_report(response))


def _find_run(transport: Transport, name: str) -> query_service_pb2.GetRunResponse:
    """Returns the run that is called so: in the order of `_readings`, the first that there is."""
    from logger_client.transports.base import CallFailed

    refusal: CallFailed | None = None
    for request in _readings(name):
        try:
            return transport.get_run(request, _TIMEOUT_S)
        except CallFailed as failure:
            if failure.reason not in (
                Reason.RUN_NOT_FOUND,
                Reason.RUN_MISSING,
                Reason.INVALID_FIELD,
                Reason.INVALID_NAME,
            ):
                raise
            refusal = failure
    assert refusal is not None
    refusal.message = f"there is no run {name!r}"
    raise refusal


def _readings(name: str) -> Iterator[query_service_pb2.GetRunRequest]:
    """What a user may have meant: what `ls` prints, a name in the default namespace, or an id."""
    namespace, _, exp_name = name.partition("/")
    if exp_name:
        yield query_service_pb2.GetRunRequest(namespace=namespace, exp_name=exp_name)
    yield query_service_pb2.GetRunRequest(exp_name=name)
    yield query_service_pb2.GetRunRequest(run_id=name)


def _print(options: argparse.Namespace, machine: Any, human: str) -> None:
    print(json.dumps(machine, indent=2) if options.json else human)


def _complain(message: str, status: int) -> int:
    print(f"logger-client: {message}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
