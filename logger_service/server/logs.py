"""The server's log: lines on stderr, text for people or JSON for programs, with ids as fields of their own."""

from __future__ import annotations

import json
import logging
import time
from typing import TextIO

from logger_service.server.settings import LogFormat, LogLevel

# What every record has; anything else was given as `extra` and is a field.
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def set_up(stream: TextIO, log_format: LogFormat | None, level: LogLevel) -> None:
    """Has everything that is logged written to a stream.

    Args:
        stream: Where to.
        log_format: How; None: text if the stream is a terminal, else JSON.
        level: The least severe level.
    """
    handler = logging.StreamHandler(stream)
    as_text = log_format == "text" or (log_format is None and stream.isatty())
    handler.setFormatter(TextFormatter() if as_text else JsonFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    if level == "debug":
        # It tells of every poll of its loop.
        logging.getLogger("asyncio").setLevel(logging.INFO)


def _fields(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in vars(record).items() if name not in _STANDARD}


class TextFormatter(logging.Formatter):
    """`2026-01-31 12:00:00.000 INFO    a writer connected  run_id=… writer_id=…`."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the record's line, followed by those of an exception."""
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
        fields = "".join(f" {name}={_shown(value)}" for name, value in _fields(record).items())
        # A message can hold what a client sent: it stays one line, and sends no escape sequences to a terminal.
        message = _printable(record.getMessage())
        line = f"{when}.{int(record.msecs):03d} {record.levelname:<7} {message}{' ' if fields else ''}{fields}"
        return line + (f"\n{self.formatException(record.exc_info)}" if record.exc_info else "")


class JsonFormatter(logging.Formatter):
    """One JSON object a line: `time` (RFC 3339, UTC), `level`, `logger`, `message`, the fields, and `exception`."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the record's line."""
        when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        entry: dict[str, object] = {
            "time": f"{when}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


def _printable(text: str) -> str:
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _shown(value: object) -> str:
    text = str(value)
    return text if text.isprintable() and text and " " not in text else json.dumps(text, ensure_ascii=True)
