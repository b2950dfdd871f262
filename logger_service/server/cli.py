"""The command `logger-service`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import logger_service
from logger_service.server.errors import StartError
from logger_service.server.loading import CONFIG_VARIABLE, load
from logger_service.server.options import OPTIONS
from logger_service.server.settings import SettingsError


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status: 0, or 2 if what was asked for cannot be done."""
    arguments = vars(_parser().parse_args(argv))
    arguments.pop("command")
    try:
        settings = load(arguments, os.environ)
        # Loaded late, so that `--help` and errors come at once.
        try:
            from logger_service.server import app, logs
        except ModuleNotFoundError as missing:
            raise StartError(f"{missing.name} is not installed: pip install 'logger-service[server]'") from None

        logs.set_up(sys.stderr, settings.log_format, settings.log_level)
        app.run(settings)
    except (SettingsError, StartError) as error:
        print(f"logger-service serve: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = _Parser("logger-service", description="A logging service for training jobs.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"logger-service {logger_service.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    serve = commands.add_parser(
        "serve",
        help="serve until told to end",
        description="Serves until SIGTERM or SIGINT. Prints `listening on HOST:PORT` when it is ready.",
        epilog="Every option is also an environment variable (--data-dir: LOGGER_SERVICE_DATA_DIR) and a key of the "
        "TOML file (data_dir). The command line goes before the environment, and that before the file.",
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,
    )
    for option in OPTIONS:
        if option.is_flag:
            serve.add_argument(option.flag, dest=option.field, action="store_true", help=option.help)
        else:
            action = "append" if option.repeatable else "store"
            serve.add_argument(option.flag, dest=option.field, action=action, metavar=option.metavar, help=option.help)
    serve.add_argument("--config", metavar="FILE", help=f"a TOML file with settings; also {CONFIG_VARIABLE}")
    return parser


if __name__ == "__main__":
    sys.exit(main())
