"""The options behind `Settings`: their names, their parsers, their help."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any, get_args

from logger_service.server.settings import Address, Durability, LogFormat, LogLevel

PREFIX = "LOGGER_SERVICE_"
"""How the environment variables begin."""


@dataclass(frozen=True)
class Option:
    """One setting as users give it: `--data-dir`, `LOGGER_SERVICE_DATA_DIR`, or `data_dir` in the TOML file."""

    field: str
    """The field of `Settings`."""
    parse: Callable[[Any], Any]
    """Makes the field's value of a text, or of a value from TOML. Raises ValueError with the rule."""
    help: str
    metavar: str = ""
    repeatable: bool = False
    """Given several times on the command line, a list in TOML, separated by commas in the environment."""
    is_flag: bool = False
    """Takes no value on the command line."""

    @property
    def flag(self) -> str:
        """The command-line option."""
        return "--" + self.field.replace("_", "-")

    @property
    def variable(self) -> str:
        """The environment variable."""
        return PREFIX + self.field.upper()


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"must be a text, not {value!r}")
    if not value or "\0" in value:
        raise ValueError("must not be empty" if not value else "must not contain NUL")
    return value


def _path(value: object) -> Path:
    return Path(_text(value)).expanduser()


def _one_of(literal: Any) -> Callable[[object], str]:
    choices = get_args(literal)

    def parse(value: object) -> str:
        if value not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}, not {value!r}")
        return str(value)

    return parse


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    known = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
    if not isinstance(value, str) or value.lower() not in known:
        raise ValueError(f"must be true or false, not {value!r}")
    return known[value.lower()]


def _names(value: object) -> tuple[str, ...]:
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or not items:
        raise ValueError(f"must be one or more names, not {value!r}")
    names = tuple(_text(item.strip() if isinstance(item, str) else item) for item in items)
    if len(set(names)) != len(names):
        raise ValueError(f"a name stands twice in {', '.join(names)}")
    return names


def parse_address(value: object) -> Address:
    """Parses `HOST:PORT` or `[IPV6]:PORT`."""
    host, colon, port = _text(value).rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        host = ""
    if not colon or not host or not (port.isascii() and port.isdecimal()) or int(port) > 65_535:
        raise ValueError(f"must be HOST:PORT with a port from 0 to 65535, or [IPV6]:PORT, not {value!r}")
    return Address(host, int(port))


def is_loopback(host: str) -> bool:
    """Whether an address is only reached from this machine.

    Raises:
        ValueError: The name of the host is not known.
    """
    try:
        return ip_address(host).is_loopback
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise ValueError(f"there is no host {host!r}") from None
    return all(ip_address(str(address[4][0]).partition("%")[0]).is_loopback for address in found)


OPTIONS = (
    Option("data_dir", _path, "where runs are written; made if it is missing (required)", "DIR"),
    Option("listen", parse_address, "where to listen; port 0: any free one (default: 127.0.0.1:50051)", "HOST:PORT"),
    Option(
        "journal_dir",
        _path,
        "where the journal lies, when the data lies where SQLite cannot (default: DATA_DIR/.logger-service)",
        "DIR",
    ),
    Option(
        "backend",
        _names,
        "a backend of runs that ask for none; may be repeated (default: csv)",
        "NAME",
        repeatable=True,
    ),
    Option(
        "durability",
        _one_of(Durability),
        "what is acknowledged survives a crash of the machine (disk, the default), of the server (os), or of nothing "
        "until it is applied (memory)",
        "|".join(get_args(Durability)),
    ),
    Option(
        "allow_insecure",
        _flag,
        "listen beyond loopback although anyone who reaches the port can read and write",
        is_flag=True,
    ),
    Option(
        "log_format",
        _one_of(LogFormat),
        "how logs are written to stderr (default: text on a terminal, else json)",
        "|".join(get_args(LogFormat)),
    ),
    Option(
        "log_level",
        _one_of(LogLevel),
        "the least severe level that is logged (default: info)",
        "|".join(get_args(LogLevel)),
    ),
)
