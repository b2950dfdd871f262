"""The CSV backend: TorchRL's layout, exactly what was applied, and the same bytes when a journal is replayed."""

from __future__ import annotations

import json
import math
import os
import shutil
from pathlib import Path

import pytest

from logger_service.backends.base import Recovery
from logger_service.backends.csv import CsvBackend
from logger_service.backends.times import TIMES_PATH, frames, read_definition
from logger_service.backends.whole import read_exactly
from logger_service.contract.names import file_path
from logger_service.contract.values import to_map
from logger_service.v1 import errors_pb2, records_pb2, run_service_pb2


def rows(names, values, steps=(), times=None, first_steps=()) -> records_pb2.Record:
    count = len(values) // len(names)
    times = range(1000, 1000 + count) if times is None else times
    return records_pb2.Record(
        metrics=records_pb2.MetricRows(
            names=names, steps=steps, time_unix_nano=times, values=values, first_steps=first_steps
        )
    )


def text(name: str, step: int, value: str) -> records_pb2.Record:
    return records_pb2.Record(text=records_pb2.TextRecord(name=name, step=step, time_unix_nano=7, text=value))


def histogram(name: str, step: int, values: list[float]) -> records_pb2.Record:
    raw = records_pb2.RawValues(values=values)
    return records_pb2.Record(histogram=records_pb2.HistogramRecord(name=name, step=step, time_unix_nano=7, raw=raw))


def hparams(**values) -> records_pb2.Record:
    return records_pb2.Record(hparams=records_pb2.HparamsRecord(hparams=to_map(values)))


def batch(*records: records_pb2.Record) -> records_pb2.Batch:
    return records_pb2.Batch(records=records)


def open_backend(root: Path, lengths=None, state=None, batches=()) -> tuple[CsvBackend, Recovery]:
    backend = CsvBackend(str(root), {}, lengths={} if lengths is None else lengths, state=state or {})
    for replayed in batches:
        backend.apply(replayed)
        backend.write()
    return backend, backend.end_recovery()


def content(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def times_of(root: Path, kind: str, name: str, suffix: str = ".csv") -> list[tuple[str, int]]:
    """Lines of a file with their times, found as the description of `.times` says."""
    held = (root / "scalars" / file_path(name, suffix)).read_text().splitlines(keepends=True)
    row_at = {}
    at = 0
    for index, line in enumerate(held):
        row_at[at] = index
        at += len(line)
    row_at[at] = len(held)
    groups, times, row = {}, {}, 0
    descriptor = os.open(root / TIMES_PATH, os.O_RDONLY)
    try:
        for frame in frames(descriptor, 0, os.fstat(descriptor).st_size):
            if frame.kind == b"DEFN":
                definition = read_definition(descriptor, frame)
                groups[frame.group] = definition
                if definition.kind == kind and name in definition.names:
                    row = row_at[definition.lengths[definition.names.index(name)]]
            elif groups[frame.group].kind == kind and name in groups[frame.group].names:
                payload = read_exactly(descriptor, frame.begin, frame.end)
                for at in range(0, len(payload), 8):
                    times[row] = int.from_bytes(payload[at : at + 8], "little", signed=True)
                    row += 1
    finally:
        os.close(descriptor)
    return [(line, times.get(index, 0)) for index, line in enumerate(held)]


def test_the_layout_is_torchrls(tmp_path: Path):
    backend, _ = open_backend(tmp_path)
    assert [path for path in ("scalars", "videos", "texts") if (tmp_path / path).is_dir()] == [
        "scalars",
        "videos",
        "texts",
    ]
    rejections = backend.apply(
        batch(
            rows(["loss", "train/reward"], [0.5, 1.0, 0.25, -2.0], steps=[10, 20]),
            rows(["loss"], [math.nan], steps=[-3]),
            text("note", 4, "two\nlines, \u2028 \u00e4"),
            hparams(lr=1e-3, name="x", layers=[1, 2], nested={"b": None, "a": True}),
            hparams(lr=2.0, steps=3),
        )
    )
    backend.write()
    assert rejections == []
    assert (tmp_path / "scalars/loss.csv").read_text() == "10,0.5\n20,0.25\n-3,nan\n"
    assert (tmp_path / "scalars/train/reward.csv").read_text() == "10,1.0\n20,-2.0\n"
    written = (tmp_path / "texts/note.jsonl").read_text()
    assert len(written.splitlines()) == 1
    assert json.loads(written) == {"step": 4, "time_unix_nano": 7, "value": "two\nlines, \u2028 \u00e4"}
    assert (tmp_path / "texts/hparams0.txt").read_text() == (
        "layers: [1, 2]\nlr: 0.001\nname: x\nnested: {'a': True, 'b': None}"
    )
    assert (tmp_path / "texts/hparams1.txt").read_text() == "lr: 2.0\nsteps: 3"
    typed = json.loads((tmp_path / "hparams.json").read_text())
    assert typed == [
        {"lr": 1e-3, "name": "x", "layers": [1, 2], "nested": {"b": None, "a": True}},
        {"lr": 2.0, "steps": 3},
    ]
    assert isinstance(typed[1]["lr"], float)
    assert isinstance(typed[1]["steps"], int)
    backend.close()


def test_automatic_steps_differ_by_name(tmp_path: Path):
    backend, _ = open_backend(tmp_path)
    backend.apply(batch(rows(["a", "b"], [1.0, 2.0, 3.0, 4.0], first_steps=[5, 0])))
    backend.write()
    assert (tmp_path / "scalars/a.csv").read_text() == "5,1.0\n6,3.0\n"
    assert (tmp_path / "scalars/b.csv").read_text() == "0,2.0\n1,4.0\n"
    backend.close()


def test_other_kinds_are_rejected_and_the_rest_stands(tmp_path: Path):
    backend, _ = open_backend(tmp_path)
    others = [
        records_pb2.Record(video=records_pb2.VideoRecord(name="v", step=0)),
        records_pb2.Record(image=records_pb2.ImageRecord(name="i", step=0)),
    ]
    rejections = backend.apply(batch(others[0], rows(["a"], [1.0], steps=[0]), others[1]))
    assert [(rejection.record, rejection.reason, rejection.points) for rejection in rejections] == [
        (index, errors_pb2.ERROR_REASON_NOT_SERVED, 1) for index in (0, 2)
    ]
    assert "video" in rejections[0].message
    backend.write()
    assert (tmp_path / "scalars/a.csv").read_text() == "0,1.0\n"
    assert [
        capability.kind for capability in backend.capabilities() if capability.support == run_service_pb2.SUPPORT_NONE
    ] == [
        "video",
        "image",
    ]
    backend.close()


NAMES = ["a", "b/c", "b", "x" * 300, "a.csv/y", "ü/%2E", "hparams0.txt/z"]


def logged(count: int) -> list[records_pb2.Batch]:
    """Batches of all kinds, of sizes that Python and that pyarrow formats, with groups that share names."""
    made = []
    for index in range(count):
        size = 200 if index % 3 == 0 else 2
        columns = NAMES[index % 4 :]
        values = [index + part / 7 for part in range(size * len(columns))]
        made.append(
            batch(
                rows(columns, values, steps=range(size), times=range(index * 1000, index * 1000 + size)),
                rows(["a"], [index / 3], steps=[index]),
                text(NAMES[index % len(NAMES)], index, f"text {index}"),
                histogram(NAMES[index % len(NAMES)], index, values),
                *([hparams(index=index)] if index % 4 == 0 else []),
            )
        )
    return made


@pytest.mark.parametrize("checkpoint_at", [0, 4, 9])
@pytest.mark.parametrize("written", [9, 12])
def test_a_replay_writes_the_same_bytes(tmp_path: Path, checkpoint_at: int, written: int):
    batches = logged(12)
    once, _ = open_backend(tmp_path / "once")
    for each in batches:
        once.apply(each)
    once.checkpoint()
    once.close()
    backend, _ = open_backend(tmp_path / "run")
    for each in batches[:checkpoint_at]:
        backend.apply(each)
    checkpoint = backend.checkpoint()
    for each in batches[checkpoint_at:written]:
        backend.apply(each)
        backend.write()
    backend.close()
    state = json.loads(json.dumps(checkpoint.state))
    for path in (tmp_path / "run/scalars").rglob("*.csv"):  # Torn, as by a crash, but for what is committed.
        committed = checkpoint.lengths.get(path.relative_to(tmp_path / "run").as_posix(), 0)
        path.write_bytes(path.read_bytes()[: max(committed, path.stat().st_size - 5)])
    backend, found = open_backend(tmp_path / "run", checkpoint.lengths, state, batches[checkpoint_at:])
    assert found == Recovery()
    backend.close()
    assert content(tmp_path / "run") == content(tmp_path / "once")


def test_an_older_journal_cuts_and_doubles_nothing(tmp_path: Path):
    batches = logged(12)
    backend, _ = open_backend(tmp_path)
    for each in batches[:4]:
        backend.apply(each)
    checkpoint = backend.checkpoint()
    for each in batches[4:]:
        backend.apply(each)
    backend.checkpoint()  # Of which the copy of the journal knows nothing.
    backend.close()
    before = content(tmp_path)
    backend, found = open_backend(tmp_path, checkpoint.lengths, checkpoint.state, batches[4:7])
    assert content(tmp_path) == before
    assert found.short == found.mended == {}
    for name in NAMES:
        lines = (tmp_path / "scalars" / file_path(name, ".csv")).read_text().splitlines()
        assert found.rows["metrics", name] == len(lines)
    assert found.rows["hparams", ""] == 3
    assert found.rows["text", NAMES[3]] == 2  # A long one, whose path does not tell its name.
    backend.apply(batch(hparams(last=True), rows(["a"], [5.0], steps=[99], times=[123])))
    backend.checkpoint()
    backend.close()
    assert len(json.loads((tmp_path / "hparams.json").read_text())) == 4
    assert (tmp_path / "texts/hparams3.txt").read_text() == "last: True"
    assert times_of(tmp_path, "metrics", "a")[-1] == ("99,5.0\n", 123)


def test_a_run_without_journal_is_continued_with_its_rows_counted(tmp_path: Path):
    backend, _ = open_backend(tmp_path)
    backend.apply(batch(rows(["a", "b/c"], [1.0, 2.0, 3.0, 4.0], steps=[0, 1]), text("t", 0, "x"), hparams(lr=1)))
    backend.write()
    backend.close()
    with (tmp_path / "scalars/a.csv").open("ab") as file:
        file.write(b"2,7")
    backend = CsvBackend(str(tmp_path), {}, lengths=None, state={})
    found = backend.end_recovery()
    assert found.rows == {("metrics", "a"): 2, ("metrics", "b/c"): 2, ("text", "t"): 1, ("hparams", ""): 1}
    assert found.mended == {"scalars/a.csv": 3}
    backend.apply(batch(rows(["a"], [9.0], steps=[2]), hparams(lr=2)))
    backend.write()
    backend.close()
    assert (tmp_path / "scalars/a.csv").read_text() == "0,1.0\n1,3.0\n2,9.0\n"
    assert json.loads((tmp_path / "hparams.json").read_text()) == [{"lr": 1}, {"lr": 2}]
    assert (tmp_path / "texts/hparams1.txt").read_text() == "lr: 2"


def test_a_directory_of_torchrls_logger_is_continued(tmp_path: Path):
    (tmp_path / "scalars/a").mkdir(parents=True)
    (tmp_path / "scalars/a/b.csv").write_text("0,1.0\n1,2.0\n")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts/hparams0.txt").write_text("lr: 1")
    backend = CsvBackend(str(tmp_path), {}, lengths=None, state={})
    assert backend.end_recovery().rows == {("metrics", "a/b"): 2}
    backend.apply(batch(hparams(lr=2)))
    backend.checkpoint()
    backend.close()
    assert (tmp_path / "texts/hparams0.txt").read_text() == "lr: 1"
    assert (tmp_path / "texts/hparams1.txt").read_text() == "lr: 2"


def test_files_that_are_not_the_runs_own_are_left_alone(tmp_path: Path):
    for path in ("texts/hparams.txt", "texts/hparams0.txt.txt", "texts/hparams_old/0.txt", "texts/x.txt", "notes.csv"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(b"kept\0\0")
    before = content(tmp_path)
    backend = CsvBackend(str(tmp_path), {}, lengths=None, state={})
    assert backend.end_recovery() == Recovery()
    assert backend.checkpoint().lengths == {}
    backend.close()
    assert content(tmp_path) == before


def test_a_missing_file_is_named_and_counted_as_empty(tmp_path: Path):
    backend, _ = open_backend(tmp_path)
    backend.apply(batch(rows(["a", "b"], [1.0, 2.0], steps=[0])))
    checkpoint = backend.checkpoint()
    backend.close()
    (tmp_path / "scalars/a.csv").unlink()
    backend, found = open_backend(tmp_path, checkpoint.lengths, checkpoint.state)
    assert found == Recovery(short={"scalars/a.csv": 6}, rows={("metrics", "a"): 0})
    assert not (tmp_path / "scalars/a.csv").exists()
    backend.close()


def test_every_row_has_its_time(tmp_path: Path):
    backend, _ = open_backend(tmp_path)
    for index in range(3):
        backend.apply(batch(rows(["a", "b"], [1.0] * 4, steps=[0, 1], times=[index * 10, index * 10 + 1])))
        backend.apply(batch(rows(["b", "a"], [1.0] * 2, steps=[2], times=[index * 10 + 2])))
        checkpoint = backend.checkpoint()
    backend.close()
    expected = [index * 10 + part for index in range(3) for part in range(3)]
    for name in "ab":
        assert [time for _, time in times_of(tmp_path, "metrics", name)] == expected
    size = (tmp_path / TIMES_PATH).stat().st_size
    backend, _ = open_backend(tmp_path, checkpoint.lengths, checkpoint.state)
    backend.apply(batch(rows(["a", "b"], [1.0] * 2, steps=[0], times=[50])))
    backend.checkpoint()
    backend.close()
    assert (tmp_path / TIMES_PATH).stat().st_size == size + 16 + 8  # The group was found again.


@pytest.mark.parametrize("lost", ["scalars/a.csv", TIMES_PATH])
@pytest.mark.parametrize("kept_bytes", [0, 10, 50])
def test_a_loss_does_not_shift_the_times_of_later_rows(tmp_path: Path, lost: str, kept_bytes: int):
    backend, _ = open_backend(tmp_path)
    for index in range(10):
        backend.apply(batch(rows(["a", "b"], [1.0, 2.0], steps=[index], times=[index])))
    checkpoint = backend.checkpoint()
    backend.close()
    held = (tmp_path / lost).read_bytes()
    (tmp_path / lost).write_bytes(held[:kept_bytes])
    backend, found = open_backend(tmp_path, checkpoint.lengths, checkpoint.state)
    assert list(found.short) == ([lost] if len(held) > kept_bytes else [])
    for index in range(10, 13):
        backend.apply(batch(rows(["a", "b"], [1.0, 2.0], steps=[index], times=[index])))
    backend.checkpoint()
    backend.close()
    for name in "ab":
        for line, time in times_of(tmp_path, "metrics", name)[-3:]:
            assert int(line.split(",")[0]) == time


def test_times_are_zero_where_there_are_none(tmp_path: Path):
    backend, _ = open_backend(tmp_path)
    backend.apply(batch(rows(["a"], [1.0, 2.0], steps=[0, 1], times=[])))
    backend.checkpoint()
    backend.close()
    assert times_of(tmp_path, "metrics", "a") == [("0,1.0\n", 0), ("1,2.0\n", 0)]


def test_hparams_are_rewritten_whole_or_not_at_all(tmp_path: Path):
    backend, _ = open_backend(tmp_path)
    backend.apply(batch(hparams(lr=1, value=math.inf)))
    checkpoint = backend.checkpoint()
    backend.close()
    (tmp_path / "hparams.json").write_bytes(b"[{\0\0\0")  # As after a crash of a machine without barriers.
    backend, _ = open_backend(tmp_path, checkpoint.lengths, json.loads(json.dumps(checkpoint.state)))
    backend.close()
    assert json.loads((tmp_path / "hparams.json").read_text()) == [{"lr": 1, "value": "Infinity"}]
    assert not list(tmp_path.glob("*.tmp"))


def test_a_replay_without_pyarrow_continues_what_pyarrow_wrote(tmp_path: Path, run_python):
    backend, _ = open_backend(tmp_path / "run")
    batches = logged(3)
    for each in batches:
        backend.apply(each)
    backend.write()
    backend.close()
    shutil.copytree(tmp_path / "run", tmp_path / "before")
    for index, each in enumerate(batches):
        (tmp_path / f"batch{index}").write_bytes(each.SerializeToString())
    code = """if True:
        import sys
        sys.modules["pyarrow"] = None
        from pathlib import Path
        from logger_service.backends.csv import CsvBackend
        from logger_service.v1.records_pb2 import Batch
        backend = CsvBackend(sys.argv[1], {}, lengths={}, state={})
        for index in range(3):
            backend.apply(Batch.FromString(Path(f"{sys.argv[2]}/batch{index}").read_bytes()))
        print(backend.end_recovery())
    """
    assert run_python(code, str(tmp_path / "run"), str(tmp_path)).stdout == f"{Recovery()}\n"
    assert content(tmp_path / "run") == content(tmp_path / "before")
