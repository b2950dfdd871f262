"""What the server can be told, and from where: defaults < TOML file < environment < command line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Durability = Literal["disk", "os", "memory"]
LogFormat = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]


class SettingsError(Exception):
    """A setting is wrong. The text is one line that names where it was set and the rule it breaks."""


@dataclass(frozen=True)
class Address:
    """Where to listen."""

    host: str
    """A name or an IP address; an IPv6 address without brackets."""
    port: int
    """0: any free port."""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True)
class Settings:
    """Settings of `logger-service serve`."""

    data_dir: Path
    """Where runs are written; made if it is missing. Two servers never share one."""
    listen: Address = Address("127.0.0.1", 50051)
    """Where to listen. Beyond loopback only with `allow_insecure`."""
    journal_dir: Path | None = None
    """Where the journal lies; None: in `.logger-service` of `data_dir`. For a `data_dir` on a file system that SQLite
    cannot use, such as a network volume. It has a lock of its own. Not used with `durability` `memory`."""
    backend: tuple[str, ...] = ("csv",)
    """The backends of a run that asks for none."""
    durability: Durability = "disk"
    """What an acknowledged batch survives: `disk`, a crash of the machine; `os`, a crash of the server; `memory`,
    nothing until it is applied."""
    allow_insecure: bool = False
    """Whether to listen beyond loopback although anyone who reaches the port can read and write."""
    log_format: LogFormat | None = None
    """How logs are written to stderr; None: text on a terminal, else JSON lines."""
    log_level: LogLevel = "info"
    """The least severe level that is logged."""
