"""`logger-service` as a command: what it prints, what it refuses, how it ends."""

from __future__ import annotations

import os
import re
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

import logger_service
from logger_service.contract.errors import Reason
from logger_service.v1 import logging_service_pb2, run_service_pb2
from tests.support.run_files import read_csv_run
from tests.support.server import SERVE, ServerProcess
from tests.support.wire import DEADLINE_S, Wire, refusal

COMMAND = SERVE[:1]
StartServer = Callable[..., ServerProcess]


def run_command(*arguments: str, command: tuple[str, ...] = COMMAND) -> tuple[int, str, str]:
    """Runs the command to its end; returns its exit status, stdout and stderr."""
    done = subprocess.run(
        [*command, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
    )
    return done.returncode, done.stdout, done.stderr


def refused(*arguments: str, command: tuple[str, ...] = COMMAND) -> str:
    """Runs `serve`, which must refuse, in one line; returns it without the name of the command."""
    status, stdout, stderr = run_command("serve", "--listen", "127.0.0.1:0", *arguments, command=command)
    assert (status, stdout) == (2, "")
    (line,) = stderr.splitlines()
    assert line.startswith("logger-service serve: ")
    return line.removeprefix("logger-service serve: ")


@pytest.mark.parametrize("command", [COMMAND, (sys.executable, "-m", "logger_service")], ids=["script", "module"])
def test_version(command: tuple[str, ...]) -> None:
    assert run_command("--version", command=command) == (0, f"logger-service {logger_service.__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "required: COMMAND"),
        (("fly",), "invalid choice: 'fly'"),
        (("serve", "--data-dir"), "--data-dir: expected one argument"),
        (("serve", "--data", "x"), "unrecognized arguments: --data x"),
        (("serve",), "--data-dir: is required"),
    ],
)
def test_bad_arguments_are_said_in_one_line(arguments: tuple[str, ...], said: str) -> None:
    status, stdout, stderr = run_command(*arguments)
    assert (status, stdout, len(stderr.splitlines())) == (2, "", 1)
    assert said in stderr


def test_the_ready_line_has_the_real_port(server: ServerProcess) -> None:
    assert re.fullmatch(r"127\.0\.0\.1:[1-9]\d*", server.address)
    with Wire(server.address) as wire:
        assert wire.runs.GetServerInfo(run_service_pb2.GetServerInfoRequest(), timeout=DEADLINE_S).backends == ["csv"]


def test_options_reach_the_host(start_server: StartServer, tmp_path: Path) -> None:
    config = tmp_path / "server.toml"
    config.write_text(f'durability = "os"\njournal_dir = "{tmp_path / "journal"}"\nlog_level = "warning"\n')
    server = start_server("--config", str(config), "--backend", "csv", "--log-format", "text")
    with Wire(server.address) as wire:
        info = wire.runs.GetServerInfo(run_service_pb2.GetServerInfoRequest(), timeout=DEADLINE_S)
        assert info.durability == run_service_pb2.DURABILITY_OS
        assert (list(info.default_backends), info.version) == (["csv"], logger_service.__version__)
        assert set(info.reasons) == {reason.value for reason in Reason}
        wire.log_scalar(wire.open_run("elsewhere"))
    assert (tmp_path / "journal" / "journal.sqlite").exists()
    assert [path.name for path in (server.data_dir / ".logger-service").iterdir()] == ["lock"]
    assert server.stderr == ""


def test_durability_memory_has_no_journal_on_the_disk(start_server: StartServer) -> None:
    server = start_server("--durability", "memory")
    with Wire(server.address) as wire:
        wire.log_scalar(wire.open_run("fast"))
    assert server.terminate() == 0
    assert not list(server.data_dir.rglob("*.sqlite"))
    assert read_csv_run(server.data_dir / "default" / "fast").scalars == {"loss": [(0, 1.0)]}


def test_a_port_in_use_leaves_no_trace(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        said = refused("--data-dir", str(tmp_path / "data"), "--listen", address)
    assert said == f"--listen: cannot listen on {address}: Address already in use"
    assert not (tmp_path / "data").exists()


def test_an_unknown_backend_leaves_no_trace(tmp_path: Path) -> None:
    said = refused("--data-dir", str(tmp_path / "data"), "--backend", "csv", "--backend", "punchcards")
    assert said == "--backend: there is no backend 'punchcards'; there is: csv"
    assert not (tmp_path / "data").exists()


def test_a_data_directory_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("mine")
    assert refused("--data-dir", str(tmp_path / "data")) == (
        f"--data-dir: cannot write to {tmp_path / 'data'}: Not a directory"
    )
    assert (tmp_path / "data").read_text() == "mine"


def test_a_data_directory_that_may_not_be_written(tmp_path: Path) -> None:
    # Root may write anywhere, unless that capability is taken from it.
    without_override = ("setpriv", "--bounding-set=-dac_override") if os.geteuid() == 0 else ()
    directory = tmp_path / "data"
    directory.mkdir()
    directory.chmod(0o555)
    said = refused("--data-dir", str(directory), command=(*without_override, *COMMAND))
    assert said == f"--data-dir: cannot write to {directory}: Permission denied"
    assert not list(directory.iterdir())


def test_a_data_directory_of_another_server(server: ServerProcess, tmp_path: Path) -> None:
    said = f"--data-dir: {server.data_dir} is in use by another server (pid {server.pid})"
    assert refused("--data-dir", str(server.data_dir)) == said
    # Also where it would have a journal of its own.
    assert refused("--data-dir", str(server.data_dir), "--journal-dir", str(tmp_path / "journal")) == said
    assert not (tmp_path / "journal").exists()
    with Wire(server.address) as wire:
        wire.log_scalar(wire.open_run())


def test_a_journal_directory_of_another_server(start_server: StartServer, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    server = start_server("--journal-dir", str(journal))
    said = refused("--data-dir", str(tmp_path / "other"), "--journal-dir", str(journal))
    assert said.startswith("--journal-dir: ")
    assert str(journal) in said
    assert f"pid {server.pid}" in said


def test_a_journal_of_a_newer_version_is_left_as_it_is(server: ServerProcess) -> None:
    with Wire(server.address) as wire:
        wire.log_scalar(wire.open_run())
    assert server.terminate() == 0
    path = server.data_dir / ".logger-service" / "journal.sqlite"
    with sqlite3.connect(path) as journal:
        (version,) = journal.execute("PRAGMA user_version").fetchone()
        journal.execute(f"PRAGMA user_version = {version + 1}")
    journal.close()
    before = path.read_bytes()
    said = refused("--data-dir", str(server.data_dir))
    assert said.startswith("--data-dir: ")
    assert "newer" in said
    assert path.read_bytes() == before


def test_health_is_told_of_the_end(server: ServerProcess) -> None:
    with grpc.insecure_channel(server.address) as channel:
        watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(), timeout=DEADLINE_S)
        assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
        assert server.terminate() == 0
        assert [answer.status for answer in watch] == [health_pb2.HealthCheckResponse.NOT_SERVING]


def test_an_end_leaves_nothing_unwritten_and_the_directory_free(server: ServerProcess) -> None:
    with Wire(server.address) as wire:
        run_id = wire.open_run("ended")
        for step in range(100):
            assert wire.log_scalar(run_id, value=float(step)) == step
    assert server.terminate() == 0
    assert read_csv_run(server.data_dir / "default" / "ended").scalars["loss"] == [(s, float(s)) for s in range(100)]
    server.start()
    with Wire(server.address) as wire:
        assert wire.log_scalar(run_id) == 100


def test_interrupting_it_is_ending_it(server: ServerProcess) -> None:
    assert server.interrupt() == 0


def _fill_disk(server: ServerProcess, wire: Wire) -> None:
    """Has every write to a file fail, as on a full disk, and waits until the server has noticed."""
    run_id = wire.open_run()
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (0, hard))
    request = logging_service_pb2.LogScalarRequest(run_id=run_id, name="loss", value=1.0)
    with pytest.raises(grpc.RpcError):
        wire.logging.LogScalar(request, timeout=0.5)
    assert refusal(lambda: wire.logging.LogScalar(request)).reason == Reason.JOURNAL_UNAVAILABLE


def test_a_second_signal_ends_it_at_once(server: ServerProcess) -> None:
    with Wire(server.address) as wire:
        stream = wire.stream(wire.open_run())
        os.kill(server.pid, signal.SIGTERM)
        stream.read("reconnect")  # It waits for the stream to end, which it does not.
        assert server.terminate() == 128 + signal.SIGTERM


def test_what_cannot_be_written_does_not_hold_up_the_end(start_server: StartServer) -> None:
    server = start_server()
    with Wire(server.address) as wire:
        _fill_disk(server, wire)
        assert server.terminate() == 1


def test_a_missing_extra_is_named(tmp_path: Path) -> None:
    hide = "import sys; sys.modules['grpc_reflection'] = None"
    code = f"{hide}; from logger_service.server.cli import main; sys.exit(main())"
    message = refused("--data-dir", str(tmp_path / "data"), command=(sys.executable, "-c", code))
    assert "pip install 'logger-service[server]'" in message
    assert not (tmp_path / "data").exists()
