"""Comparing recovery: whatever a crash left and whatever the journal still has, no line is lost, doubled or torn."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logger_service.backends.base import Recovery
from logger_service.backends.files import FileKind, FileSet
from logger_service.backends.tree import RunTree
from logger_service.backends.whole import whole_lines

PATHS = ("scalars/a.csv", "scalars/b/c.csv")
KINDS = (FileKind("scalars", "", ".csv", whole_lines),)
Line = tuple[str, bytes]

LINES = st.tuples(
    st.sampled_from(PATHS),
    st.builds(lambda step, value: b"%d,%d\n" % (step, value), st.integers(0, 12), st.integers(0, 99)),
)


def open_files(root: Path, lengths: dict[str, int] | None, state: dict | None = None) -> FileSet:
    return FileSet(RunTree(str(root)), KINDS, lengths=lengths, state=state or {})


def apply(files: FileSet, lines: Sequence[Line]) -> None:
    for path, line in lines:
        files.append(files.file(path), line)


def whole(lines: Sequence[Line], path: str) -> bytes:
    return b"".join(line for where, line in lines if where == path)


def read(root: Path, path: str) -> bytes:
    return (root / path).read_bytes() if (root / path).exists() else b""


def recover(root: Path, lengths: dict[str, int] | None, replay: Sequence[Line], state: dict | None = None) -> Recovery:
    files = open_files(root, lengths, state)
    for index in range(0, len(replay), 3):  # In several writes.
        apply(files, replay[index : index + 3])
        files.write()
    found = files.end_recovery()
    assert files.checkpoint().keys() <= set(PATHS)
    files.close()
    return found


@dataclass
class Crash:
    """A run whose process died."""

    root: Path
    lines: list[Line]
    """All that was ever logged."""
    committed: int
    """How many of them the journal's checkpoint covers."""
    lengths: dict[str, int]
    whole_on_disk: dict[str, int]
    """Up to which byte each file's content is whole."""


def crash(root: Path, lines: list[Line], committed: int, written: int, cuts: list[int], zeros: list[int]) -> Crash:
    files = open_files(root, {})
    files.end_recovery()
    apply(files, lines[:committed])
    lengths = dict(files.checkpoint())
    apply(files, lines[committed:written])
    files.write()
    files.close()
    whole_on_disk = {}
    for path, cut, zero in zip(PATHS, cuts, zeros, strict=True):
        content = read(root, path)
        kept = content[: max(lengths.get(path, 0), len(content) - cut)]
        if content or zero:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(kept + b"\0" * zero)
        whole_on_disk[path] = kept.rfind(b"\n") + 1
    return Crash(root, lines, committed, lengths, whole_on_disk)


CRASHES = st.tuples(
    st.lists(LINES, max_size=30),
    st.lists(st.integers(0, 30), min_size=3, max_size=3).map(sorted),
    st.lists(st.integers(0, 40), min_size=2, max_size=2),
    st.lists(st.sampled_from([0, 0, 1, 5000]), min_size=2, max_size=2),
)


@settings(max_examples=200, deadline=None)
@given(CRASHES, st.booleans(), st.integers(0, 30))
def test_after_any_crash_the_files_hold_what_they_held_and_what_the_journal_has(case, old_journal: bool, torn_at: int):
    lines, (committed, first, second), cuts, zeros = case
    replayed, written = (first, second) if old_journal else (second, first)
    with tempfile.TemporaryDirectory() as directory:
        died = crash(Path(directory), lines, committed, written, cuts, zeros)
        tail = lines[committed:replayed]
        # The first recovery dies half-way, before its checkpoint is committed.
        files = open_files(died.root, died.lengths)
        apply(files, tail[:torn_at])
        files.write()
        files.close()
        recover(died.root, died.lengths, tail)
        for path in PATHS:
            everything = whole(lines, path)
            length = max(len(whole(lines[:replayed], path)), died.whole_on_disk[path])
            assert read(died.root, path) == everything[:length]


@settings(max_examples=100, deadline=None)
@given(CRASHES)
def test_a_run_that_the_journal_does_not_know_is_continued(case):
    lines, (committed, written, _), cuts, zeros = case
    with tempfile.TemporaryDirectory() as directory:
        died = crash(Path(directory), lines, committed, written, cuts, zeros)
        for _ in range(2):
            found = recover(died.root, None, [])
            for path in PATHS:
                assert read(died.root, path) == whole(lines, path)[: died.whole_on_disk[path]]
                assert found.kept.get(path, 0) == died.whole_on_disk[path]
        assert found.mended == {}


@settings(max_examples=100, deadline=None)
@given(st.lists(LINES, max_size=20), st.integers(0, 20), st.integers(1, 60), st.integers(0, 20))
def test_files_that_lost_committed_bytes_are_continued_once(lines: list[Line], committed: int, lost: int, torn_at: int):
    """As when the data directory was restored from an older copy than the journal; the recovery itself dies, too."""
    path = PATHS[0]
    lines = [(path, line) for _, line in lines]
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        died = crash(root, lines, committed, committed, [0, 0], [0, 0])
        if not died.lengths:
            return
        content = read(root, path)[:-lost] if lost < died.lengths[path] else b""
        (root / path).write_bytes(content)
        tail = lines[committed:]
        for part in (tail[:torn_at], tail[:torn_at]):
            files = open_files(root, died.lengths)
            apply(files, part)
            files.write()
            files.close()
        files = open_files(root, died.lengths)
        apply(files, tail)
        found = files.end_recovery()
        expected = content[: content.rfind(b"\n") + 1] + whole(tail, path)
        assert read(root, path) == expected
        assert found.short[path] >= min(lost, died.lengths[path])
        lengths, state = {**died.lengths, **files.checkpoint()}, files.state()
        files.close()
        assert lengths[path] == len(expected)
        # From here on it is an ordinary run.
        assert recover(root, lengths, [(path, b"0,0\n")], state) == Recovery()
        assert read(root, path) == expected + b"0,0\n"
        assert not list(root.glob(".short.json"))


def written_run(root: Path, content: bytes, committed: int) -> dict[str, int]:
    (root / "scalars").mkdir(parents=True)
    (root / "scalars/a.csv").write_bytes(content)
    return {"scalars/a.csv": committed}


@pytest.mark.parametrize(
    ("content", "committed", "replay", "result", "found"),
    [
        (b"0,1\n", 4, b"", b"0,1\n", Recovery()),
        (b"0,1\n1,2\n", 4, b"1,2\n2,3\n", b"0,1\n1,2\n2,3\n", Recovery()),
        (b"0,1\n1,", 4, b"1,2\n", b"0,1\n1,2\n", Recovery()),
        (b"0,1\n1,2\n2,3\n", 4, b"1,2\n", b"0,1\n1,2\n2,3\n", Recovery(kept={"scalars/a.csv": 4})),
        (b"0,1\n1,2\n2,", 4, b"1,2\n", b"0,1\n1,2\n", Recovery(mended={"scalars/a.csv": 2})),
        (b"0,1\n1,\0\0", 4, b"1,2\n", b"0,1\n1,2\n", Recovery(mended={"scalars/a.csv": 2})),
        (b"0,1\n1,2\n\0\0\0", 4, b"1,2\n", b"0,1\n1,2\n", Recovery(mended={"scalars/a.csv": 3})),
        (
            b"0,1\n1,2\n2,3\n\0",
            4,
            b"",
            b"0,1\n1,2\n2,3\n",
            Recovery(kept={"scalars/a.csv": 8}, mended={"scalars/a.csv": 1}),
        ),
        (b"0,1\n", 8, b"2,3\n", b"0,1\n2,3\n", Recovery(short={"scalars/a.csv": 4})),
        (b"0,1\n1,", 8, b"2,3\n", b"0,1\n2,3\n", Recovery(short={"scalars/a.csv": 2}, mended={"scalars/a.csv": 2})),
        (b"0,1\n1,2\n", None, b"", b"0,1\n1,2\n", Recovery(kept={"scalars/a.csv": 8})),
        (b"0,1\n1,2", None, b"", b"0,1\n", Recovery(kept={"scalars/a.csv": 4}, mended={"scalars/a.csv": 3})),
        (b"0,1\n1,2\n", 0, b"0,1\n", b"0,1\n1,2\n", Recovery(kept={"scalars/a.csv": 4})),
    ],
)
def test_a_recovery_says_what_it_found(
    tmp_path: Path, content, committed, replay: bytes, result: bytes, found: Recovery
):
    lengths = written_run(tmp_path, content, committed or 0)
    if committed == 0:
        lengths = {}  # A file that the run made since the checkpoint.
    elif committed is None:
        lengths = None
    tail = [("scalars/a.csv", line) for line in replay.splitlines(keepends=True)]
    assert recover(tmp_path, lengths, tail) == found
    assert (tmp_path / "scalars/a.csv").read_bytes() == result


def test_equal_bytes_are_not_written_again(tmp_path: Path):
    lengths = written_run(tmp_path, b"0,1\n" * 1000, 400)
    (tmp_path / "scalars/a.csv").chmod(0o644)
    before = (tmp_path / "scalars/a.csv").stat().st_mtime_ns
    recover(tmp_path, lengths, [("scalars/a.csv", b"0,1\n")] * 900)
    assert (tmp_path / "scalars/a.csv").stat().st_mtime_ns == before


def test_lengths_after_a_recovery_are_those_of_the_files(tmp_path: Path):
    lengths = written_run(tmp_path, b"0,1\n1,2\n2,3\n3,", 4)
    files = open_files(tmp_path, lengths)
    apply(files, [("scalars/a.csv", b"1,2\n")])
    files.end_recovery()
    apply(files, [("scalars/a.csv", b"9,9\n")])
    assert files.checkpoint() == {"scalars/a.csv": 16}
    assert (tmp_path / "scalars/a.csv").read_bytes() == b"0,1\n1,2\n2,3\n9,9\n"
    files.close()


def test_a_full_disk_during_recovery_loses_nothing(tmp_path: Path):
    lengths = written_run(tmp_path, b"0,1\n1,2\n", 4)
    (tmp_path / "scalars/b").write_text("in the way of a directory")
    files = open_files(tmp_path, lengths)
    apply(files, [("scalars/a.csv", b"1,2\n"), ("scalars/b/c.csv", b"5,5\n"), ("scalars/a.csv", b"2,3\n")])
    for _ in range(2):
        with pytest.raises(OSError):
            files.write()
    (tmp_path / "scalars/b").unlink()
    files.end_recovery()
    files.close()
    assert (tmp_path / "scalars/a.csv").read_bytes() == b"0,1\n1,2\n2,3\n"
    assert (tmp_path / "scalars/b/c.csv").read_bytes() == b"5,5\n"
