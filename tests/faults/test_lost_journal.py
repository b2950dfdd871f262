"""A journal that is gone, older than the files, or left behind: the files are continued, and nothing whole is lost."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from logger_client import GrpcLogger
from logger_service.contract.errors import DeliveryError
from tests.support.run_files import read_csv_run

JOURNAL = ".logger-service"
ROWS = 500


class Story:
    """A run that is written to in chapters, while something happens to its server's journal in between."""

    def __init__(self, server) -> None:
        self.server = server
        self.logger = self.open()
        self.rows = 0

    def open(self) -> GrpcLogger:
        """Opens another writer on the run."""
        return GrpcLogger("team/run", self.server.address, connect_timeout=60)

    def write(self) -> None:
        """Logs the next rows, without waiting for them."""
        for row in range(self.rows, self.rows + ROWS):
            self.logger.log_scalar("explicit", row / 7, row)
            self.logger.log_scalar("automatic", row / 3)
            self.logger.log_metrics({"a": row, "b": -row}, 2 * row)
        self.logger.log_str("text", f"row {self.rows}", self.rows)
        self.rows += ROWS

    def chapter(self) -> None:
        """Logs the next rows and waits until they stand in the files."""
        self.write()
        self.logger.flush()

    @property
    def run_dir(self) -> Path:
        return self.server.data_dir / "default" / "team" / "run"

    @property
    def journal(self) -> Path:
        return self.server.data_dir / JOURNAL

    def check(self) -> None:
        """Every row that was logged stands once, in order."""
        files = read_csv_run(self.run_dir)
        rows = range(self.rows)
        assert files.scalars["explicit"] == [(row, row / 7) for row in rows]
        assert files.scalars["automatic"] == [(row, row / 3) for row in rows]
        assert files.scalars["a"] == [(2 * row, float(row)) for row in rows]
        assert files.scalars["b"] == [(2 * row, float(-row)) for row in rows]
        assert files.texts["text"] == [(row, f"row {row}") for row in range(0, self.rows, ROWS)]

    def expect_lost(self) -> None:
        """The connected client reports, once, that the journal lacks what it had acknowledged, and goes on."""
        self.write()
        with pytest.raises(DeliveryError, match=r"lost its journal, and with it batches \d+ to \d+"):
            self.logger.flush()
        self.logger.flush()
        self.check()

    def end(self) -> None:
        """Everything still works: another chapter, by the same and by a new writer, and a restart."""
        self.chapter()
        self.check()
        self.logger.shutdown()
        self.logger = self.open()
        self.chapter()
        self.check()
        self.server.restart()
        self.chapter()
        self.logger.shutdown()
        self.check()
        assert self.server.terminate() == 0
        self.check()


@pytest.fixture
def story(server) -> Story:
    return Story(server)


@pytest.mark.parametrize("ending", ["kill", "terminate"])
def test_journal_deleted(story, ending):
    story.chapter()
    story.chapter()
    getattr(story.server, ending)()
    shutil.rmtree(story.journal)
    story.server.start()
    story.expect_lost()
    ledger = story.logger.flush()
    assert {notice.kind for notice in ledger.notices} >= {"RUN_ADOPTED"}
    story.end()


def test_journal_from_many_checkpoints_ago(story, tmp_path):
    story.chapter()
    assert story.server.terminate() == 0
    shutil.copytree(story.journal, tmp_path / "old")
    for _ in range(3):
        story.server.start()
        story.chapter()
        assert story.server.terminate() == 0  # Ends with a checkpoint.
    shutil.rmtree(story.journal)
    shutil.copytree(tmp_path / "old", story.journal)
    story.server.start()
    story.expect_lost()
    story.end()


def test_journal_from_the_same_checkpoint_interval(story, tmp_path):
    story.chapter()
    # Nobody writes at this moment, so that a copy of the files is a copy of the journal.
    shutil.copytree(story.journal, tmp_path / "old")
    story.chapter()
    story.server.kill()
    shutil.rmtree(story.journal)
    shutil.copytree(tmp_path / "old", story.journal)
    story.server.start()
    story.expect_lost()
    story.end()


def test_journal_from_before_the_run(story, tmp_path):
    with GrpcLogger("other", story.server.address) as other:
        other.log_scalar("x", 1.0, 0)
    shutil.copytree(story.journal, tmp_path / "old")
    with GrpcLogger("younger", story.server.address) as younger:
        for row in range(ROWS):
            younger.log_scalar("automatic", row)
        younger.flush()
        story.server.kill()
        shutil.rmtree(story.journal)
        shutil.copytree(tmp_path / "old", story.journal)
        story.server.start()
        younger.log_scalar("automatic", ROWS)
        with pytest.raises(DeliveryError, match=r"lost its journal, and with it batches \d+ to \d+"):
            younger.flush()
    found = read_csv_run(story.server.data_dir / "default" / "younger").scalars
    assert found == {"automatic": [(row, float(row)) for row in range(ROWS + 1)]}


def test_data_moved_away_from_its_journal(story, tmp_path):
    story.chapter()
    story.chapter()
    story.server.kill()
    moved = tmp_path / "moved"
    moved.mkdir()
    (story.server.data_dir / "default").rename(moved / "default")
    story.server.data_dir = moved
    story.server.start()
    story.expect_lost()
    story.end()


def test_journal_deleted_with_nobody_connected(story):
    story.chapter()
    story.logger.shutdown()
    story.server.kill()
    shutil.rmtree(story.journal)
    story.server.start()
    story.logger = story.open()
    story.end()


def tear(path: Path) -> None:
    """Cuts the last line of a file in the middle."""
    data = path.read_bytes()
    last_line = data[data.rstrip(b"\n").rfind(b"\n") + 1 :]
    path.write_bytes(data[: len(data) - max(1, len(last_line) // 2)])


def leave_half_a_line(path: Path) -> None:
    """Appends the beginning of a line."""
    with path.open("ab") as file:
        file.write(b'{"step": 9' if path.suffix == ".jsonl" else b"9")


def zero_the_tail(path: Path) -> None:
    """Turns the end of a file into zeros, as a file system may after a power failure."""
    with path.open("r+b") as file:
        size = file.seek(0, 2)
        file.seek(size - min(size, 20))
        file.write(b"\0" * 4096)


def append_zeros(path: Path) -> None:
    """Makes a file longer, with zeros."""
    with path.open("ab") as file:
        file.write(b"\0" * 4096)


def damaged_files(run_dir: Path) -> list[Path]:
    return [*run_dir.rglob("scalars/*.csv"), *run_dir.rglob("texts/*.jsonl")]


@pytest.mark.parametrize("damage", [tear, leave_half_a_line, zero_the_tail, append_zeros])
def test_torn_files_are_mended_from_the_journal(story, damage):
    story.chapter()
    story.chapter()
    story.server.kill()
    files = damaged_files(story.run_dir)
    assert len(files) == 5
    for path in files:
        damage(path)
    story.server.start()
    story.logger.flush()
    story.check()
    story.end()


@pytest.mark.parametrize("damage", [leave_half_a_line, append_zeros])
def test_torn_files_are_mended_without_a_journal(story, damage):
    story.chapter()
    story.logger.shutdown()
    story.server.kill()
    for path in damaged_files(story.run_dir):
        damage(path)
    shutil.rmtree(story.journal)
    story.server.start()
    story.logger = story.open()
    story.end()
