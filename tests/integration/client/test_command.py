"""The command `logger-client`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from logger_client import cli

COMMAND = str(Path(sys.executable).with_name("logger-client"))


def run(*arguments: str, status: int = 0) -> str:
    done = subprocess.run([COMMAND, *arguments], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == status, done.stderr
    if status == 0:
        assert done.stderr == ""
        return done.stdout
    assert done.stdout == ""
    return done.stderr


@pytest.fixture
def runs(server, connect):
    """A server with two runs."""
    for exp_name, namespace in (("run", "default"), ("group/run", "team")):
        with connect(server, exp_name, namespace=namespace) as logger:
            logger.log_metrics({"x": 1.0, "y": 2.0})
    return server


def test_ping(server):
    assert f"logger service at {server.address}" in run("ping", "--target", server.address)
    info = json.loads(run("ping", "--target", server.address, "--json"))
    assert info["durability"] == "disk"
    assert info["default_backends"] == ["csv"]
    assert info["limits"]["max_record_bytes"] == 8 << 20


def test_ls(runs, monkeypatch):
    monkeypatch.setenv("LOGGER_CLIENT_TARGET", runs.address)
    lines = run("ls").splitlines()
    assert lines[0].split()[0] == "RUN"
    assert {tuple(line.split()[:3]) for line in lines[1:]} == {
        ("default/run", "finished", "2"),
        ("team/group/run", "finished", "2"),
    }
    [only] = json.loads(run("ls", "--namespace", "team", "--json"))
    assert (only["namespace"], only["exp_name"], only["points"]) == ("team", "group/run", 2)
    assert run("ls", "--namespace", "nobody") == "no runs\n"


@pytest.mark.parametrize("name", ["run", "default/run", "team/group/run", "ID"])
def test_show(runs, name):
    if name == "ID":
        listed = json.loads(run("ls", "--target", runs.address, "--json"))
        name = next(found["run_id"] for found in listed if found["exp_name"] == "run")
    text = run("show", name, "--target", runs.address)
    assert "accepted" in text
    assert "finished" in text
    shown = json.loads(run("show", name, "--target", runs.address, "--json"))
    assert shown["ledger"]["accepted"] == 2
    assert shown["ledger"]["backends"] == [
        {"type": "csv", "applied": 2, "rejected": 0, "lag": 0, "problem": ""},
    ]
    [writer] = shown["writers"]
    assert writer["status"] == "finished"
    assert writer["last_sequence"] == 1


def test_what_the_server_refuses_is_status_1(server):
    assert run("show", "nosuch", "--target", server.address, status=1) == "logger-client: there is no run 'nosuch'\n"


def test_an_unreachable_server_is_status_2(server):
    server.kill()
    error = run("ping", "--target", server.address, status=2)
    assert server.address in error
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize("arguments", [["ping"], ["ping", "--target", "a b"]])
def test_a_missing_or_bad_target_is_status_2(arguments, monkeypatch, capsys):
    monkeypatch.delenv("LOGGER_CLIENT_TARGET", raising=False)
    assert cli.main(arguments) == 2
    assert "target" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["dance"], ["show"], ["ls", "--colour"]])
def test_a_wrong_call_is_status_2(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    assert "usage" in capsys.readouterr().err
