"""The log: one line a record, ids as fields, nothing that a client sent breaks out of its line."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator

import pytest

from logger_service.server import logs


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def _log(stream: io.StringIO, log_format: logs.LogFormat | None) -> str:
    logs.set_up(stream, log_format, "info")
    log = logging.getLogger("logger_service.test")
    log.debug("not shown")
    log.warning("run %s: odd\n\x1b[31m", "r", extra={"run_id": "0f", "client": "a b\n", "n": 3})
    return stream.getvalue()


def test_text() -> None:
    written = _log(io.StringIO(), "text")
    assert re.fullmatch(
        r'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} WARNING run r: odd\\n\\x1b\[31m  run_id=0f client="a b\\n" n=3\n',
        written,
    )


def test_json() -> None:
    (line,) = _log(io.StringIO(), "json").splitlines()
    entry = json.loads(line)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", entry.pop("time"))
    assert entry == {
        "level": "warning",
        "logger": "logger_service.test",
        "message": "run r: odd\n\x1b[31m",
        "run_id": "0f",
        "client": "a b\n",
        "n": 3,
    }


def test_text_on_a_terminal_and_json_elsewhere() -> None:
    assert not _log(_Terminal(), None).startswith("{")
    assert _log(io.StringIO(), None).startswith("{")


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_exceptions_are_written_whole(log_format: logs.LogFormat) -> None:
    stream = io.StringIO()
    logs.set_up(stream, log_format, "info")
    try:
        raise ValueError("the cause")
    except ValueError:
        logging.getLogger("x").exception("it failed")
    written = stream.getvalue()
    assert "it failed" in written
    assert "Traceback" in written
    assert "ValueError: the cause" in written
    if log_format == "json":
        assert len(written.splitlines()) == 1
