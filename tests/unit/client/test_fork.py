"""What begins anew in a forked child."""

from __future__ import annotations

import logging
import weakref

import pytest

from logger_client import fork


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    """Nothing else is watched, and this process is no child."""
    monkeypatch.setattr(fork, "_watched", weakref.WeakSet())
    monkeypatch.setattr(fork, "_state", fork._State())


class Inherited:
    """Something that may fail."""

    def __init__(self, error: Exception | None = None) -> None:
        self.has_begun = False
        self._error = error
        fork.watch(self)

    def begin_in_child(self) -> None:
        if self._error is not None:
            raise self._error
        self.has_begun = True


def test_one_that_fails_keeps_no_other_from_beginning(caplog):
    watched = [Inherited(), Inherited(MemoryError()), Inherited(), Inherited(ValueError("why")), Inherited()]
    with caplog.at_level(logging.ERROR, "logger_client"):
        fork._after_in_child()
    assert [each.has_begun for each in watched] == [True, False, True, False, True]
    assert [record.getMessage() for record in caplog.records] == 2 * ["Inherited cannot be used in this forked process"]
    assert "ValueError: why" in caplog.text


def test_what_is_gone_is_not_watched():
    Inherited(ValueError("why"))
    fork._after_in_child()
