"""Append-only files: what is appended arrives, in few system calls, in few open files, and nowhere else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from logger_service.backends.files import FileKind, FileSet
from logger_service.backends.handles import HandleCache
from logger_service.backends.tree import RunTree
from logger_service.backends.whole import whole_lines

KINDS = (FileKind("scalars", "", ".csv", whole_lines),)


def new_files(root: Path, handles: HandleCache | None = None) -> FileSet:
    files = FileSet(
        RunTree(str(root)), KINDS, lengths={}, state={}, handles=HandleCache(16) if handles is None else handles
    )
    files.end_recovery()
    return files


def append(files: FileSet, path: str, *chunks: bytes) -> None:
    for chunk in chunks:
        files.append(files.file(path), chunk)


class Calls:
    """Counts calls of a function of `os`, which it still calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        self.count = 0
        real = getattr(os, name)

        def counted(*args, **kwargs):
            self.count += 1
            return real(*args, **kwargs)

        monkeypatch.setattr(os, name, counted)


def test_buffers_arrive_in_order_when_they_are_written(tmp_path: Path):
    files = new_files(tmp_path / "new" / "run")
    append(files, "scalars/a/b.csv", b"1,1\n", memoryview(b"2,2\n"))
    append(files, "scalars/c.csv", b"3,3\n")
    assert files.pending == 12
    assert not (tmp_path / "new/run/scalars").exists()
    files.write()
    append(files, "scalars/a/b.csv", b"4,4\n")
    files.write()
    assert files.pending == 0
    assert (tmp_path / "new/run/scalars/a/b.csv").read_bytes() == b"1,1\n2,2\n4,4\n"
    assert (tmp_path / "new/run/scalars/c.csv").read_bytes() == b"3,3\n"
    files.close()


def test_appending_nothing_makes_an_empty_file(tmp_path: Path):
    files = new_files(tmp_path)
    append(files, "scalars/a.csv", b"")
    files.write()
    assert (tmp_path / "scalars/a.csv").read_bytes() == b""
    files.close()


@pytest.mark.parametrize("chunks", [1, 7, 5000])
def test_each_file_takes_one_system_call_a_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunks: int):
    files = new_files(tmp_path)
    writes = Calls(monkeypatch, "pwritev")
    for name in range(10):
        append(files, f"scalars/{name}.csv", *[b"1,1\n"] * chunks)
    files.write()
    assert writes.count == 10
    assert (tmp_path / "scalars/9.csv").read_bytes() == b"1,1\n" * chunks
    opens = Calls(monkeypatch, "open")
    for name in range(10):
        append(files, f"scalars/{name}.csv", b"2,2\n")
    files.write()
    assert (writes.count, opens.count) == (20, 0)
    files.close()


def test_open_files_are_capped_over_all_runs(tmp_path: Path):
    handles = HandleCache(8)
    runs = [new_files(tmp_path / str(run), handles) for run in range(3)]
    for turn in range(2):
        for files in runs:
            for name in range(50):
                append(files, f"scalars/{name}.csv", f"{turn},{name}\n".encode())
            files.write()
            assert len(handles) <= 8
    for files in runs:
        files.close()
    assert len(handles) == 0
    found = sorted(tmp_path.rglob("*.csv"))
    assert len(found) == 150
    assert all(path.read_text() == f"0,{path.stem}\n1,{path.stem}\n" for path in found)


def test_ten_thousand_files_under_a_limit_of_256_open_ones(run_python, tmp_path: Path):
    code = """if True:
        import os, resource, sys
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
        from tests.unit.backends.test_files import append
        from logger_service.backends.csv import CsvBackend
        from logger_service.v1.records_pb2 import Batch, MetricRows, Record
        backend = CsvBackend(sys.argv[1], {}, lengths={}, state={})
        backend.end_recovery()
        names = [f"group{index % 10}/{index}" for index in range(10_000)]
        for step in range(2):
            backend.apply(Batch(records=[Record(metrics=MetricRows(names=names, steps=[step], values=range(10_000)))]))
            backend.write()
        assert len(os.listdir("/proc/self/fd")) < 100, os.listdir("/proc/self/fd")
        print(len(backend.checkpoint().lengths))
        backend.close()
    """
    printed = run_python(code, str(tmp_path / "run"), env={"PYTHONPATH": os.getcwd()}).stdout
    assert printed == "10001\n"
    found = list((tmp_path / "run/scalars").rglob("*.csv"))
    assert len(found) == 10_000
    assert all(path.read_text() == f"0,{path.stem}.0\n1,{path.stem}.0\n" for path in found)


def test_descriptors_are_given_back_when_the_process_has_no_more(run_python, tmp_path: Path):
    code = """if True:
        import os, resource, sys
        from pathlib import Path
        from tests.unit.backends.test_files import HandleCache, append, new_files
        handles = HandleCache(1000)
        files = new_files(Path(sys.argv[1]), handles)
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        for name in range(200):
            append(files, f"scalars/{name}.csv", b"1,1\\n")
        files.write()
    """
    run_python(code, str(tmp_path), env={"PYTHONPATH": os.getcwd()})
    assert [path.read_bytes() for path in (tmp_path / "scalars").iterdir()] == [b"1,1\n"] * 200


def test_a_full_disk_loses_and_doubles_nothing(run_python, tmp_path: Path):
    """The limit of file sizes stands for the full disk: writes end short, then fail."""
    code = """if True:
        import resource, sys
        from pathlib import Path
        from tests.unit.backends.test_files import append, new_files
        files = new_files(Path(sys.argv[1]))
        expected = b""
        for size in range(100, 2000, 100):
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
            chunks = [b"%d,%d\\n" % (size, part) for part in range(30)]
            append(files, "scalars/large.csv", *chunks)
            expected += b"".join(chunks)
            append(files, f"scalars/small{size}.csv", b"1,1\\n")
            for attempt in range(2):
                try:
                    files.write()
                except OSError:
                    assert files.pending
            held = Path(sys.argv[1], "scalars/large.csv").read_bytes()
            assert held == expected[:len(held)]
            assert len(held) + files.pending == len(expected)
            assert Path(sys.argv[1], f"scalars/small{size}.csv").read_bytes() == b"1,1\\n"
        assert files.pending
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        print(files.checkpoint()["scalars/large.csv"] == len(expected))
        print(Path(sys.argv[1], "scalars/large.csv").read_bytes() == expected)
    """
    assert run_python(code, str(tmp_path), env={"PYTHONPATH": os.getcwd()}).stdout == "True\nTrue\n"


def test_one_file_that_cannot_be_written_does_not_hold_the_others(tmp_path: Path):
    files = new_files(tmp_path)
    (tmp_path / "scalars/b.csv").mkdir(parents=True)
    for name in "abc":
        append(files, f"scalars/{name}.csv", b"1,1\n")
    with pytest.raises(IsADirectoryError):
        files.write()
    assert (tmp_path / "scalars/a.csv").read_bytes() == (tmp_path / "scalars/c.csv").read_bytes() == b"1,1\n"
    (tmp_path / "scalars/b.csv").rmdir()
    files.write()
    assert (tmp_path / "scalars/b.csv").read_bytes() == b"1,1\n"
    assert files.pending == 0
    files.close()


@pytest.mark.parametrize("place", ["scalars", "scalars/a", "scalars/a/b.csv"])
@pytest.mark.parametrize("dangling", [False, True])
def test_symbolic_links_are_not_followed(tmp_path: Path, place: str, dangling: bool):
    outside = tmp_path / "outside"
    if not dangling:
        outside.mkdir()
        (outside / "a").mkdir()
        (outside / "b.csv").write_text("mine\n")
        (outside / "a" / "b.csv").write_text("mine\n")
    target = outside / "b.csv" if place.endswith(".csv") else outside
    link = tmp_path / "run" / place
    link.parent.mkdir(parents=True)
    link.symlink_to(target)
    before = {path: path.read_bytes() for path in outside.rglob("*") if path.is_file()}
    for lengths in ({}, {"scalars/a/b.csv": 2}, None):
        files = FileSet(RunTree(str(tmp_path / "run")), KINDS, lengths=lengths, state={})
        files.end_recovery()
        append(files, "scalars/a/b.csv", b"1,1\n")
        with pytest.raises(OSError):
            files.write()
        files.close()
    assert {path: path.read_bytes() for path in outside.rglob("*") if path.is_file()} == before
    assert outside.exists() is not dangling


@pytest.mark.parametrize("path", ["../a.csv", "scalars/../../a.csv", "/a.csv", "scalars//a.csv", "./a.csv"])
def test_no_path_leads_out_of_the_run(tmp_path: Path, path: str):
    files = new_files(tmp_path / "run")
    append(files, path, b"1,1\n")
    with pytest.raises(OSError):
        files.write()
    files.close()
    assert list(tmp_path.rglob("*.csv")) == []


def test_a_checkpoint_fsyncs_what_changed_and_the_directories_of_what_is_new(tmp_path: Path, monkeypatch):
    files = new_files(tmp_path / "run")
    files.checkpoint()
    synced: list[str] = []
    real = os.fsync

    def record(descriptor: int) -> None:
        synced.append(os.path.relpath(os.readlink(f"/proc/self/fd/{descriptor}"), tmp_path / "run"))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", record)
    append(files, "scalars/x/a.csv", b"1,1\n")
    append(files, "scalars/b.csv", b"1,1\n")
    assert files.checkpoint() == {"scalars/x/a.csv": 4, "scalars/b.csv": 4}
    assert sorted(synced) == [".", "scalars", "scalars/b.csv", "scalars/x", "scalars/x/a.csv"]
    synced.clear()
    append(files, "scalars/b.csv", b"2,2\n")
    files.write()
    assert synced == []
    assert files.checkpoint() == {"scalars/b.csv": 8}
    assert synced == ["scalars/b.csv"]
    assert files.checkpoint() == {}
    files.close()


def test_a_file_removed_behind_our_back_is_made_anew_without_a_hole(tmp_path: Path):
    handles = HandleCache(1)
    files = new_files(tmp_path, handles)
    append(files, "scalars/a.csv", b"1,1\n" * 100)
    append(files, "scalars/b.csv", b"1,1\n")
    files.write()
    (tmp_path / "scalars/a.csv").unlink()
    (tmp_path / "scalars/b.csv").unlink()
    for name in "cd":  # So that neither of the two is open any more.
        append(files, f"scalars/{name}.csv", b"1,1\n")
    files.write()
    append(files, "scalars/a.csv", b"2,2\n")
    assert files.checkpoint()["scalars/a.csv"] == 4
    assert (tmp_path / "scalars/a.csv").read_bytes() == b"2,2\n"
    files.close()
