"""What the tests of the bare contract share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.server import ServerProcess
from tests.support.wire import Wire


@pytest.fixture
def wire(server: ServerProcess) -> Iterator[Wire]:
    """Stubs of a server of the test's own."""
    with Wire(server.address) as wire:
        yield wire
