"""Runs every test of this folder over every deployment."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.support.deployments import DEPLOYMENTS, Deployment


@pytest.fixture(scope="session", params=DEPLOYMENTS)
def _shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    deployment = DEPLOYMENTS[request.param](tmp_path_factory.mktemp(request.param))
    yield deployment
    deployment.stop()


@pytest.fixture
def deployment(_shared: Deployment) -> Iterator[Deployment]:
    """A deployment; what the test opens is shut down at its end."""
    yield _shared
    _shared.close()


@pytest.fixture
def exp_name(request: pytest.FixtureRequest) -> str:
    """The name of a run that is the test's own."""
    return re.sub(r"[^\w.-]+", "-", request.node.name).strip("-")


@pytest.fixture
def logger(deployment: Deployment, exp_name: str):
    """A logger for the run `exp_name`."""
    return deployment.open(exp_name)


@pytest.fixture
def read(deployment: Deployment, exp_name: str, logger):
    """Flushes `logger` and returns what the files of its run hold."""

    def flush_and_read():
        logger.flush()
        return deployment.read(exp_name)

    return flush_and_read
