"""Runs on a disk that ignores case and Unicode forms: each name has its own file, whoever opens the run."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from logger_service.backends import CSVLogger
from logger_service.backends.base import Recovery
from logger_service.backends.case_blind import MARKER_PATH, is_case_blind
from logger_service.backends.csv import CsvBackend
from logger_service.backends.tree import RunTree
from logger_service.contract.names import file_path
from logger_service.v1 import records_pb2
from tests.support.blind_disk import fold, make_blind

NAMES = [
    *("loss", "Loss", "LOSS", "train/loss", "Train/loss", "train/Loss"),
    *("\u00e9", "e\u0301", "\u00c9", "stra\u00dfe", "strasse", "\u212a", "k"),
    *("a.csv/b", "A.CSV/b", "a%2Ecsv/b", "a%2ecsv/b", "a", "A"),
    *("hparams0.txt/x", "HPARAMS0.TXT/x", "L" * 300, "l" * 300),
]


@pytest.fixture
def blind(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A disk that ignores case; `undo` ends it."""
    make_blind(monkeypatch)
    return monkeypatch


def logged(step: int) -> records_pb2.Batch:
    """A batch with a point and a text for each name, and hyperparameters; each name has values of its own."""
    rows = records_pb2.MetricRows(names=NAMES, values=range(len(NAMES)), steps=[step], time_unix_nano=[7])
    texts = [records_pb2.TextRecord(name=name, step=step, time_unix_nano=7, text=name) for name in NAMES]
    records = [records_pb2.Record(metrics=rows), *(records_pb2.Record(text=text) for text in texts)]
    return records_pb2.Batch(records=[*records, records_pb2.Record(hparams=records_pb2.HparamsRecord())])


def check(root: Path, steps: int) -> None:
    """Every file holds what was logged to its name, and there is no other."""
    found = {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    expected = {f"texts/hparams{step}.txt": "" for step in range(steps)}
    for index, name in enumerate(NAMES):
        rows = [f"{step},{index}.0\n" for step in range(steps)]
        texts = [f'{{"step":{step},"time_unix_nano":7,"value":"{name}"}}\n' for step in range(steps)]
        expected["scalars/" + file_path(name, ".csv", case_blind=True)] = "".join(rows)
        expected["texts/" + file_path(name, ".jsonl", case_blind=True)] = "".join(texts)
    hparams = found.pop("hparams.json")
    assert {
        path: content.decode() for path, content in found.items() if path not in (MARKER_PATH, ".times")
    } == expected
    assert found.keys() - expected.keys() == {MARKER_PATH, ".times"}
    assert json.loads(hparams) == [{}] * steps


def every_row(count: int) -> dict[tuple[str, str], int]:
    return {(kind, name): count for kind in ("metrics", "text") for name in NAMES} | {("hparams", ""): count}


def test_each_name_has_its_own_file(tmp_path: Path, blind):
    backend = CsvBackend(str(tmp_path), {}, lengths={}, state={})
    assert backend.end_recovery() == Recovery()
    assert backend.apply(logged(0)) == []
    backend.write()
    backend.close()
    check(tmp_path, 1)
    # What stands in lower case stands where TorchRL puts it.
    assert (tmp_path / "scalars/train/loss.csv").read_text() == "0,3.0\n"
    assert len(list((tmp_path / "scalars/train").glob("Loss%~*.csv"))) == 1


@pytest.mark.parametrize("moved", [False, True], ids=["", "moved to a disk that sees"])
def test_a_replay_agrees(tmp_path: Path, blind, moved: bool):
    backend = CsvBackend(str(tmp_path), {}, lengths={}, state={})
    backend.end_recovery()
    backend.apply(logged(0))
    checkpoint = backend.checkpoint()
    for step in (1, 2):
        backend.apply(logged(step))
        backend.write()
    backend.close()
    if moved:
        blind.undo()
    state = json.loads(json.dumps(checkpoint.state))
    backend = CsvBackend(str(tmp_path), {}, lengths=checkpoint.lengths, state=state)
    for step in (1, 2, 3):
        backend.apply(logged(step))
    assert backend.end_recovery() == Recovery()
    backend.close()
    check(tmp_path, 4)


@pytest.mark.parametrize("moved", [False, True], ids=["", "moved to a disk that sees"])
def test_a_run_without_journal_is_continued_with_its_rows_counted(tmp_path: Path, blind, moved: bool):
    for steps in range(3):
        backend = CsvBackend(str(tmp_path), {}, lengths=None, state={})
        found = backend.end_recovery()
        assert found.rows == (every_row(steps) if steps else {})
        backend.apply(logged(steps))
        backend.checkpoint()
        backend.close()
        if moved:
            blind.undo()
    check(tmp_path, 3)


def test_direct_loggers_that_begin_a_run_together_agree(tmp_path: Path, blind):
    def log() -> None:
        with CSVLogger("run", tmp_path) as logger:
            for index, name in enumerate(NAMES):
                logger.log_scalar(name, index, 0)

    threads = [threading.Thread(target=log) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for index, name in enumerate(NAMES):
        path = tmp_path / "run/scalars" / file_path(name, ".csv", case_blind=True)
        assert path.read_text() == f"0,{index}.0\n" * 4
    with CSVLogger("run", tmp_path) as logger:
        logger.log_scalar("Loss", 5.0)
        logger.log_scalar("L" * 300, 6.0)
    for name, value in (("Loss", 5.0), ("L" * 300, 6.0)):
        path = tmp_path / "run/scalars" / file_path(name, ".csv", case_blind=True)
        assert path.read_text().splitlines()[-1] == f"4,{value}"  # The automatic step: its rows were counted.


def test_a_run_that_torchrl_began_is_continued_as_it_is(tmp_path: Path, blind):
    (tmp_path / "run/scalars").mkdir(parents=True)
    (tmp_path / "run/scalars/Loss.csv").write_text("0,1.0\n")
    with CSVLogger("run", tmp_path) as logger:
        logger.log_scalar("Loss", 2.0)
    assert (tmp_path / "run/scalars/Loss.csv").read_text() == "0,1.0\n1,2.0\n"
    assert not (tmp_path / "run" / MARKER_PATH).exists()


def test_a_disk_that_tells_them_apart_is_left_as_it_was(tmp_path: Path):
    assert not is_case_blind(RunTree(str(tmp_path)), begun="scalars")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_disk_that_cannot_hold_every_name_counts_as_blind(tmp_path: Path, monkeypatch, encoding: str):
    real = RunTree.open

    def narrow(tree: RunTree, path: str, flags: int, *, create: bool = False) -> int:
        if path.encode(encoding, "ignore").decode(encoding) != path:
            raise OSError(84, "Invalid or incomplete multibyte or wide character")
        return real(tree, path, flags, create=create)

    monkeypatch.setattr(RunTree, "open", narrow)
    with CSVLogger("run", tmp_path) as logger:
        logger.log_scalar("\u00e9", 1.0)
    path = tmp_path / "run/scalars" / file_path("\u00e9", ".csv", case_blind=True)
    assert path.name.startswith("_%~")
    assert path.read_text() == "0,1.0\n"
    assert not list((tmp_path / "run").glob(".probe*"))


@pytest.mark.parametrize(
    ("first", "second"),
    [("run", "Run"), ("a/b", "A/b"), ("a/b", "a/B"), ("a", "A/b"), ("\u00e9", "e\u0301"), ("a", "a/Scalars")],
)
def test_runs_do_not_share_a_directory(tmp_path: Path, blind, first: str, second: str):
    with CSVLogger(first, tmp_path) as logger:
        logger.log_scalar("loss", 1.0)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ValueError, match="the disk does not tell"):
        CSVLogger(second, tmp_path)
    assert sorted(tmp_path.rglob("*")) == before
    with CSVLogger(first, tmp_path) as logger:  # The run itself goes on.
        logger.log_scalar("loss", 2.0)
    assert (tmp_path / first / "scalars/loss.csv").read_text() == "0,1.0\n1,2.0\n"


def test_runs_that_differ_in_case_are_two_on_a_disk_that_sees(tmp_path: Path):
    for exp_name in ("run", "Run", "run/Scalars", "\u00e9", "e\u0301"):
        with CSVLogger(exp_name, tmp_path) as logger:
            logger.log_scalar("loss", 1.0)
    assert len(list(tmp_path.rglob("loss.csv"))) == 5


def test_the_names_of_these_tests_meet_on_such_a_disk():
    paths = [file_path(name, ".csv") for name in NAMES]
    assert len({fold(path) for path in paths}) < len(set(paths))
