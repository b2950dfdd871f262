"""A host whose data directory lies on a disk that ignores case: recovery, adoption, and runs that are spelled alike."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest

from logger_service.contract.errors import Reason, ServiceError
from logger_service.contract.names import file_path
from tests.support.blind_disk import make_blind
from tests.unit.hosting.conftest import Hosts, Writer, flush, open_run, rows

NAMES = ("loss", "Loss", "train/LOSS", "train/Loss", "\u00e9", "e\u0301")


@pytest.fixture(autouse=True)
def blind(monkeypatch: pytest.MonkeyPatch) -> None:
    make_blind(monkeypatch)


def log(writer: Writer) -> None:
    """Logs one row of all names with automatic steps."""
    writer.send(rows(NAMES, [float(value) for value in range(len(NAMES))]))
    writer.wait_accepted()


def check(hosts: Hosts, count: int) -> None:
    """Each name has its rows, at the steps 0 to `count` - 1, in its own file, and there are no other files."""
    scalars = hosts.data_dir / "default" / "run" / "scalars"
    found = {path.relative_to(scalars).as_posix(): path.read_text() for path in scalars.rglob("*.csv")}
    assert found == {
        file_path(name, ".csv", case_blind=True): "".join(f"{step},{index}.0\n" for step in range(count))
        for index, name in enumerate(NAMES)
    }


def entries(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if ".logger-service" not in path.parts)


def test_a_crash_and_a_lost_journal(hosts: Hosts) -> None:
    host = hosts.start()
    run_id = open_run(host).run_id
    log(Writer(host, run_id))
    flush(host, run_id)
    log(Writer(host, run_id))
    hosts.crash(host)
    host = hosts.start()
    log(Writer(host, open_run(host).run_id))
    flush(host, run_id)
    check(hosts, 3)
    hosts.end(host)
    shutil.rmtree(hosts.journal_path.parent)
    host = hosts.start()
    assert open_run(host).run_id == run_id
    log(Writer(host, run_id))  # Their steps go on behind the rows of files whose paths do not tell the name.
    flush(host, run_id)
    check(hosts, 4)


@pytest.mark.parametrize(
    ("namespace", "exp_name"),
    [
        ("default", "Run"),
        ("default", "RUN/x"),
        ("Default", "other"),
        ("default", "run/Scalars"),
        ("default", "run/TEXTS"),
    ],
)
def test_a_run_that_is_spelled_like_another_is_refused(hosts: Hosts, namespace: str, exp_name: str) -> None:
    host = hosts.start()
    run_id = open_run(host).run_id
    log(Writer(host, run_id))
    flush(host, run_id)
    before = entries(hosts.data_dir)
    for _ in range(2):
        with pytest.raises(ServiceError, match="the disk does not tell") as refused:
            open_run(host, exp_name, namespace=namespace)
        assert (refused.value.reason, refused.value.field) == (Reason.INVALID_NAME, "exp_name")
    assert entries(hosts.data_dir) == before
    assert open_run(host).run_id == run_id
    check(hosts, 1)


def test_of_runs_that_begin_together_one_stays(hosts: Hosts) -> None:
    host = hosts.start()
    opened: list[str] = []
    refused: list[Reason] = []

    def begin(exp_name: str) -> None:
        try:
            opened.append(open_run(host, exp_name).run_id)
        except ServiceError as error:
            refused.append(error.reason)

    threads = [threading.Thread(target=begin, args=(exp_name,)) for exp_name in ("run", "Run", "RUN", "rUN")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) == 1
    assert refused == [Reason.INVALID_NAME] * 3
    assert len(list((hosts.data_dir / "default").iterdir())) == 1
