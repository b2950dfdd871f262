"""The two journals agree on whatever is committed to them."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from logger_service.journal.base import (
    Change,
    CounterRows,
    CursorRow,
    ForgetRejections,
    Journal,
    NoticeRow,
    RejectionRow,
    RequestRow,
)
from logger_service.journal.memory import MemoryJournal
from logger_service.journal.sqlite import SqliteJournal

from .rows import LATER_NS, batch_row, read_all, run_row, writer_row

_RUNS = st.sampled_from(["a", "b"])
_WRITERS = st.sampled_from(["w", "x"])
_SMALL = st.integers(0, 5)
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)

_CHANGES = st.one_of(
    st.builds(run_row, _RUNS, epoch=_SMALL, closed=st.booleans(), notes=_TEXT),
    st.builds(writer_row, _RUNS, _WRITERS, sequence=_SMALL, position=_SMALL),
    st.builds(batch_row, st.integers(1, 4), _RUNS, payload=st.binary(max_size=20), writer_id=_WRITERS),
    st.builds(RejectionRow, _RUNS, _WRITERS, _SMALL, st.sampled_from(["", "csv"]), st.binary(max_size=3)),
    st.builds(ForgetRejections, _RUNS, _WRITERS, _SMALL),
    st.builds(CursorRow, _RUNS, _WRITERS, _SMALL, _SMALL, _SMALL, _TEXT, st.dictionaries(_TEXT, _SMALL, max_size=3)),
    st.builds(CounterRows, _RUNS, _SMALL, st.dictionaries(st.tuples(_WRITERS, _TEXT), _SMALL, max_size=3)),
    st.builds(RequestRow, _RUNS, st.binary(max_size=1), st.binary(max_size=3), st.integers(LATER_NS, LATER_NS + 4)),
    st.builds(NoticeRow, _RUNS, _SMALL, _TEXT, _TEXT),
)
_COMMIT = st.tuples(st.lists(_CHANGES, max_size=6), st.integers(LATER_NS - 2, LATER_NS + 3))
_TRIM = st.tuples(st.dictionaries(_RUNS, _SMALL), st.integers(0, 3))


def _commit(journal: Journal, changes: list[Change], now_ns: int) -> str:
    try:
        journal.commit(changes, now_ns)
    except ValueError as error:
        return str(error)
    return ""


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(_COMMIT, _TRIM), max_size=12))
def test_sqlite_and_memory_agree(steps: list[tuple[list[Change], int] | tuple[dict[str, int], int]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "journal.db"
        memory, sqlite = MemoryJournal(), SqliteJournal(path, "os")
        try:
            for what, number in [([run_row("a")], LATER_NS), *steps]:
                if isinstance(what, dict):
                    assert sqlite.trim(what, number) == memory.trim(what, number)
                else:
                    assert _commit(sqlite, what, number) == _commit(memory, what, number)
            assert sqlite.load() == memory.load()
            sqlite.close()
            sqlite = SqliteJournal(path, "os")
            assert sqlite.load() == memory.load()
            for run_id in ("a", "b"):
                assert read_all(sqlite, run_id) == read_all(memory, run_id)
            assert list(sqlite.damaged()) == []
        finally:
            sqlite.close()
