"""Fixtures that all tests share, and two rules: nothing is left running, and CI skips nothing unnoticed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.leftovers import find_leftovers, mark_descendants
from tests.support.server import ServerProcess

if TYPE_CHECKING:
    from tests.support.standin_device import StandinDevices

ALLOWED_SKIPS: tuple[str, ...] = ("tests/cuda/",)
"""What CI may skip, by the beginnings of node ids: what needs a GPU, where there is none."""


def pytest_configure() -> None:
    for name in [name for name in os.environ if name.startswith(("LOGGER_SERVICE_", "LOGGER_CLIENT_"))]:
        del os.environ[name]
    mark_descendants()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item):
    return _refuse_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector):
    return _refuse_skip((yield))


def _refuse_skip(report):
    allowed = os.environ.get("CI") != "true" or report.nodeid.startswith(ALLOWED_SKIPS)
    if report.skipped and not allowed and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} was skipped, which CI does not allow: {report.longrepr}"
    return report


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if leftovers := find_leftovers():
        print("\nprocesses that tests left running:", *leftovers, sep="\n  ", file=sys.stderr)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """The data directory of the `server` fixture; it does not exist yet."""
    return tmp_path / "data"


@pytest.fixture
def start_server(tmp_path: Path, data_dir: Path) -> Iterator[Callable[..., ServerProcess]]:
    """Starts servers: `start_server(*options, data_dir=..., wrapper=...)`. What still runs at the end is killed."""
    servers: list[ServerProcess] = []

    def start(*options: str, data_dir: Path = data_dir, wrapper: tuple[str, ...] = ()) -> ServerProcess:
        stderr = tmp_path / f"server-{len(servers)}.stderr"
        servers.append(ServerProcess(data_dir, stderr, options, wrapper=wrapper))
        return servers[-1]

    yield start
    for server in servers:
        server.kill()
        # Captured: pytest shows it where the test failed.
        print(f"stderr of the server on {server.address}:\n{server.stderr}", file=sys.stderr)


@pytest.fixture
def server(start_server: Callable[..., ServerProcess]) -> ServerProcess:
    """A server with the default options on an empty data directory."""
    return start_server()


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch) -> StandinDevices:
    """Devices that stand in for CUDA's."""
    from tests.support.standin_device import StandinDevices  # It loads torch, which few tests need.

    devices = StandinDevices()
    devices.install(monkeypatch)
    return devices


@pytest.fixture
def run_python(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs code in a fresh interpreter: `run_python(code, *args, env={...}, check=True)`."""

    def run(code: str, *args: str, env: dict[str, str] | None = None, check: bool = True):
        done = subprocess.run(
            [sys.executable, "-c", code, *args],
            env={**os.environ, **(env or {})},
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert not check or done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    return run
