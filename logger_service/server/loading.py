"""Merges `Settings` from where they come: defaults < TOML file < environment < command line."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from logger_service.server.options import OPTIONS, PREFIX, Option, is_loopback
from logger_service.server.settings import Settings, SettingsError

CONFIG_VARIABLE = PREFIX + "CONFIG"

# Kubernetes puts these into every pod of a namespace with a Service called `logger-service` or `logger-service-…`.
_OF_KUBERNETES = re.compile(
    PREFIX + r"(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)"
)


class _Given(NamedTuple):
    option: Option
    value: object
    source: str
    """Where it was given, for messages."""


def load(arguments: Mapping[str, Any], environment: Mapping[str, str]) -> Settings:
    """Returns the settings.

    Args:
        arguments: What the command line gives, by field, and `config`; without what it does not give.
        environment: The environment.

    Raises:
        SettingsError: One is wrong, unknown or missing.
    """
    config = arguments.get("config") or environment.get(CONFIG_VARIABLE)
    values: dict[str, Any] = {}
    listen_source = "--listen"
    for option, value, source in (
        *(_from_file(Path(config)) if config else ()),
        *_from_environment(environment),
        *(_Given(option, arguments[option.field], option.flag) for option in OPTIONS if option.field in arguments),
    ):
        try:
            values[option.field] = option.parse(value)
        except ValueError as error:
            raise SettingsError(f"{source}: {error}") from None
        if option.field == "listen":
            listen_source = source
    if "data_dir" not in values:
        raise SettingsError("--data-dir: is required")
    settings = Settings(**values)
    _check_exposure(settings, listen_source)
    return settings


def _from_file(path: Path) -> Iterator[_Given]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        with path.open("rb") as file:
            table = tomllib.load(file)
    except OSError as error:
        raise SettingsError(f"--config: {path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise SettingsError(f"--config: {path} is not TOML: {' '.join(str(error).split())}") from None
    known = {option.field: option for option in OPTIONS}
    for key, value in table.items():
        if key not in known:
            raise SettingsError(f"{key} in {path}: there is no such setting; there are {', '.join(known)}")
        yield _Given(known[key], value, f"{key} in {path}")


def _from_environment(environment: Mapping[str, str]) -> Iterator[_Given]:
    known = {option.variable: option for option in OPTIONS}
    for variable, value in environment.items():
        if variable in known:
            yield _Given(known[variable], value, variable)
        elif variable.startswith(PREFIX) and variable != CONFIG_VARIABLE and not _OF_KUBERNETES.fullmatch(variable):
            names = ", ".join((*known, CONFIG_VARIABLE))
            raise SettingsError(f"{variable}: there is no such setting; there are {names}")


def _check_exposure(settings: Settings, source: str) -> None:
    try:
        private = is_loopback(settings.listen.host)
    except ValueError as error:
        raise SettingsError(f"{source}: {error}") from None
    if not private and not settings.allow_insecure:
        raise SettingsError(
            f"{source}: {settings.listen} is reachable from other machines, by anyone who reaches the port; "
            "give --allow-insecure if that is meant, or listen on 127.0.0.1"
        )
