"""Fixtures for loggers against real and scripted servers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from logger_client import DeliveryError, GrpcLogger
from tests.integration.client.scripted_server import Script, ScriptedServer


@pytest.fixture
def scripted() -> Iterator[Callable[..., ScriptedServer]]:
    """Starts scripted servers: `scripted(first_stream, second_stream, ...)`."""
    servers: list[ScriptedServer] = []

    def start(*scripts: Script) -> ScriptedServer:
        servers.append(ScriptedServer(*scripts))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def connect() -> Iterator[Callable[..., Any]]:
    """Makes loggers: `connect(server, exp_name="run", **arguments)`. What is left of them at the end is given up."""
    loggers: list[Any] = []

    def make(server: Any, exp_name: str = "run", **arguments: Any) -> GrpcLogger:
        loggers.append(GrpcLogger(exp_name, server.address, connect_timeout=60, **arguments))
        return loggers[-1]

    yield make
    for logger in loggers:
        with contextlib.suppress(TimeoutError, DeliveryError):
            logger.shutdown(timeout=0)
