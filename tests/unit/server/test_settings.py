"""Settings: where each can come from, which goes first, and what is said of a wrong one."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from logger_service.server.cli import _parser
from logger_service.server.loading import load
from logger_service.server.options import OPTIONS, is_loopback, parse_address
from logger_service.server.settings import Address, Settings, SettingsError


def _load(*argv: str, **environment: str) -> Settings:
    arguments = vars(_parser().parse_args(["serve", *argv]))
    return load(arguments, environment)


def _config(tmp_path: Path, text: str) -> str:
    path = tmp_path / "server.toml"
    path.write_text(text)
    return str(path)


def test_defaults() -> None:
    assert _load("--data-dir", "d") == Settings(
        data_dir=Path("d"),
        listen=Address("127.0.0.1", 50051),
        journal_dir=None,
        backend=("csv",),
        durability="disk",
        allow_insecure=False,
        log_format=None,
        log_level="info",
    )


def test_every_field_is_an_option_and_every_option_a_field() -> None:
    assert [option.field for option in OPTIONS] == [field.name for field in dataclasses.fields(Settings)]


# How each setting is said in each place, and what it then is.
EXAMPLES: dict[str, tuple[list[str], str, str, Any]] = {
    "data_dir": (["--data-dir", "x"], "x", '"x"', Path("x")),
    "listen": (["--listen", "[::1]:0"], "[::1]:0", '"[::1]:0"', Address("::1", 0)),
    "journal_dir": (["--journal-dir", "j"], "j", '"j"', Path("j")),
    "backend": (["--backend", "csv", "--backend", "b"], "csv, b", '["csv", "b"]', ("csv", "b")),
    "durability": (["--durability", "os"], "os", '"os"', "os"),
    "allow_insecure": (["--allow-insecure"], "true", "true", True),
    "log_format": (["--log-format", "json"], "json", '"json"', "json"),
    "log_level": (["--log-level", "debug"], "debug", '"debug"', "debug"),
}


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.field)
def test_every_option_can_be_given_in_every_place(option: Any, tmp_path: Path) -> None:
    argv, in_environment, in_toml, expected = EXAMPLES[option.field]
    base = {} if option.field == "data_dir" else {"LOGGER_SERVICE_DATA_DIR": "base"}
    config = _config(tmp_path, f"{option.field} = {in_toml}\n")
    for settings in (
        _load(*argv, **base),
        _load(**base, **{option.variable: in_environment}),
        _load("--config", config, **base),
        _load(**base, LOGGER_SERVICE_CONFIG=config),
    ):
        assert getattr(settings, option.field) == expected


def test_the_command_line_goes_before_the_environment_and_that_before_the_file(tmp_path: Path) -> None:
    config = _config(tmp_path, 'data_dir = "file"\ndurability = "os"\nlog_level = "error"\n')
    settings = _load(
        "--config", config, "--data-dir", "line", LOGGER_SERVICE_DATA_DIR="env", LOGGER_SERVICE_DURABILITY="memory"
    )
    assert (settings.data_dir, settings.durability, settings.log_level) == (Path("line"), "memory", "error")


def test_a_config_on_the_command_line_replaces_that_of_the_environment(tmp_path: Path) -> None:
    config = _config(tmp_path, 'data_dir = "file"\n')
    assert _load("--config", config, LOGGER_SERVICE_CONFIG="/nowhere").data_dir == Path("file")


@pytest.mark.parametrize(
    ("argv", "environment", "said"),
    [
        ([], {}, "--data-dir: is required"),
        (["--data-dir", ""], {}, "--data-dir: must not be empty"),
        (["--data-dir", "d", "--listen", "50051"], {}, "--listen: must be HOST:PORT"),
        (["--data-dir", "d", "--listen", ":50051"], {}, "--listen: must be HOST:PORT"),
        (["--data-dir", "d", "--listen", "::1:50051"], {}, "--listen: must be HOST:PORT"),
        (["--data-dir", "d", "--listen", "h:65536"], {}, "--listen: must be HOST:PORT"),
        (["--data-dir", "d", "--listen", "h:-1"], {}, "--listen: must be HOST:PORT"),
        (["--data-dir", "d", "--listen", "no-such-host.invalid:1"], {}, "--listen: there is no host"),
        (["--data-dir", "d"], {"LOGGER_SERVICE_LISTEN": "x"}, "LOGGER_SERVICE_LISTEN: must be HOST:PORT"),
        (["--data-dir", "d", "--durability", "ssd"], {}, "--durability: must be one of disk, os, memory, not 'ssd'"),
        (["--data-dir", "d", "--backend", ""], {}, "--backend: must not be empty"),
        (["--data-dir", "d", "--backend", "csv", "--backend", "csv"], {}, "--backend: a name stands twice"),
        (["--data-dir", "d"], {"LOGGER_SERVICE_ALLOW_INSECURE": "on"}, "LOGGER_SERVICE_ALLOW_INSECURE: must be true"),
        (["--data-dir", "d"], {"LOGGER_SERVICE_DATADIR": "x"}, "LOGGER_SERVICE_DATADIR: there is no such setting"),
        (["--data-dir", "d", "--listen", "0.0.0.0:1"], {}, "--listen: 0.0.0.0:1 is reachable from other machines"),
        (["--data-dir", "d"], {"LOGGER_SERVICE_LISTEN": "[::]:1"}, "LOGGER_SERVICE_LISTEN: [::]:1 is reachable"),
        (["--config", "/nowhere.toml"], {}, "--config: /nowhere.toml cannot be read: No such file or directory"),
    ],
)
def test_what_is_wrong_is_named_with_its_rule(argv: list[str], environment: dict[str, str], said: str) -> None:
    with pytest.raises(SettingsError) as error:
        _load(*argv, **environment)
    assert str(error.value).startswith(said)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("datadir = 'x'", "datadir in {path}: there is no such setting"),
        ("config = 'x'", "config in {path}: there is no such setting"),
        ("data_dir = 3", "data_dir in {path}: must be a text, not 3"),
        ("data_dir = 'd'\nallow_insecure = 'maybe'", "allow_insecure in {path}: must be true or false"),
        ("data_dir = 'd'\nbackend = []", "backend in {path}: must be one or more names"),
        ("data_dir = 'd'\nbackend = [1]", "backend in {path}: must be a text, not 1"),
        ("data_dir = 'd'\ndurability = 1", "durability in {path}: must be one of"),
        ("data_dir = ", "--config: {path} is not TOML"),
        ("data_dir = 'a'\ndata_dir = 'b'", "--config: {path} is not TOML"),
    ],
)
def test_what_is_wrong_in_a_file_is_named_with_its_rule(tmp_path: Path, text: str, said: str) -> None:
    path = _config(tmp_path, text)
    with pytest.raises(SettingsError) as error:
        _load("--config", path)
    assert str(error.value).startswith(said.format(path=path))
    assert "\n" not in str(error.value)


def test_beyond_loopback_where_the_operator_allows_it() -> None:
    assert _load("--data-dir", "d", "--listen", "0.0.0.0:1", "--allow-insecure").listen == Address("0.0.0.0", 1)


@pytest.mark.parametrize(
    "variable",
    [
        "LOGGER_SERVICE_SERVICE_HOST",
        "LOGGER_SERVICE_SERVICE_PORT",
        "LOGGER_SERVICE_SERVICE_PORT_GRPC",
        "LOGGER_SERVICE_PORT",
        "LOGGER_SERVICE_PORT_50051_TCP",
        "LOGGER_SERVICE_PORT_50051_TCP_PROTO",
        "LOGGER_SERVICE_PORT_50051_TCP_PORT",
        "LOGGER_SERVICE_PORT_50051_TCP_ADDR",
        "LOGGER_SERVICE_METRICS_SERVICE_HOST",
        "LOGGER_SERVICE_METRICS_PORT_9090_TCP_ADDR",
    ],
)
def test_variables_that_kubernetes_sets_are_not_settings(variable: str) -> None:
    _load("--data-dir", "d", **{variable: "tcp://10.0.0.1:50051"})


def test_addresses() -> None:
    assert parse_address("localhost:0") == Address("localhost", 0)
    assert str(parse_address("[::1]:5")) == "[::1]:5"
    assert str(Address("127.0.0.1", 5)) == "127.0.0.1:5"


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False)],
)
def test_loopback(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected
