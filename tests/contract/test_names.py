"""Names: which are refused, and that all others work, stay apart and stay inside the run's directory."""

from __future__ import annotations

import pytest

REFUSED = [
    "",
    "/",
    "/a",
    "a/",
    "a//b",
    ".",
    "..",
    "../a",
    "a/../b",
    "a/./b",
    "nul\0",
    "line\n",
    "\x7f",
    "\x85",
    "surrogate\ud800",
    "x" * 1025,
    "é" * 512 + "x",
]
ALLOWED = [
    "loss",
    "a b",
    "ünïcode/✓",
    "UPPER",
    "x",
    "x.csv",
    "x.csv/y",
    "x.csv.csv/y",
    "x/y",
    "..a",
    ".hidden",
    "C:\\windows",
    "50%",
    "50%25",
    "%2E",
    "a%2Ecsv/b",
    "~",
    "a,b",
    '"quoted"',
    "l" * 300,
    "l" * 301,
    "l" * 251,
    "l" * 252,
    "l" * 299 + "m",
    "l" * 300 + "/x",
    "l" * 299 + "m/x",
    "dir" * 100 + "/leaf",
    "é" * 512,
    "-rf",
    "con",
    " ",
    "scalars/x",
    "Loss",
    "LOSS",
    "\u00e9",
    "e\u0301",
    "%2F",
    "a%2Fb",
    "%2e",
    "%~",
    "a\\b",
    "dot.",
    "dot. ",
    "dot",
    "x.jsonl/y",
    "hparams0",
    "hparams0.txt",
    "hparams0.txt/x",
    ".times",
    "..\\a",
]


@pytest.mark.parametrize("name", REFUSED, ids=lambda name: ascii(name[:20]))
def test_refused_at_every_call(logger, read, name):
    for call in (
        lambda: logger.log_scalar(name, 1.0, 0),
        lambda: logger.log_metrics({name: 1.0}, 0),
        lambda: logger.log_str(name, "text", 0),
    ):
        with pytest.raises(ValueError, match="name"):
            call()
    files = read()
    assert files.scalars == {}
    assert files.texts == {}


@pytest.mark.parametrize("name", [3, None, b"loss"], ids=repr)
def test_name_that_is_no_str_is_refused(logger, name):
    with pytest.raises(TypeError):
        logger.log_scalar(name, 1.0, 0)
    with pytest.raises(TypeError):
        logger.log_str(name, "text", 0)


def test_all_others_work_and_stay_apart(logger, read):
    for index, name in enumerate(ALLOWED):
        logger.log_scalar(name, index, index)
        logger.log_str(name, name, index)
    files = read()
    # The files of long names do not tell the name; what they hold does.
    assert sorted(files.scalars.values()) == [[(index, float(index))] for index in range(len(ALLOWED))]
    assert sorted(files.texts.values()) == [[(index, name)] for index, name in enumerate(ALLOWED)]


def test_names_that_look_alike_have_files_of_their_own(logger, deployment, exp_name):
    paths = {
        "a": "a.csv",
        "a.csv": "a.csv.csv",
        "a.csv/b": "a%2Ecsv/b.csv",
        "a%2Ecsv/b": "a%252Ecsv/b.csv",
        "loss": "loss.csv",
        "Loss": "Loss.csv",
        "\u00e9": "\u00e9.csv",
        "e\u0301": "e\u0301.csv",
        "b/c": "b/c.csv",
        "b%2Fc": "b%2Fc.csv",
        "b\\c": "b\\c.csv",
        "con": "con.csv",
        "d.": "d..csv",
        "d ": "d .csv",
    }
    logger.log_metrics({name: index for index, name in enumerate(paths)}, 3)
    for index, name in enumerate(paths):
        logger.log_scalar(name, index + 0.5, 4)
    logger.flush()
    scalars = deployment.run_dir(exp_name) / "scalars"
    found = {path.relative_to(scalars).as_posix(): path.read_text() for path in scalars.rglob("*") if path.is_file()}
    assert found == {path: f"3,{index}.0\n4,{index}.5\n" for index, path in enumerate(paths.values())}


def test_names_beside_the_files_of_the_layout(logger, read, deployment, exp_name):
    for name in ("hparams0", "hparams0.txt", "hparams0.txt/x", "hparams.json", ".times", "run.json", ".direct.json"):
        logger.log_str(name, name, 0)
        logger.log_scalar(name, 1.0, 0)
    logger.log_hparams({"lr": 1})
    files = read()
    assert files.texts == {name: [(0, name)] for name in files.texts}
    assert len(files.texts) == len(files.scalars) == 7
    assert files.hparams == [{"lr": 1}]
    assert (deployment.run_dir(exp_name) / "texts" / "hparams0.txt").read_text() == "lr: 1"


def test_ordinary_names_lie_where_torchrl_puts_them(logger, deployment, exp_name):
    logger.log_scalar("train/loss", 0.5, 3)
    logger.log_scalar("reward", 0.25, 0)
    logger.flush()
    scalars = deployment.run_dir(exp_name) / "scalars"
    assert (scalars / "train" / "loss.csv").read_text() == "3,0.5\n"
    assert (scalars / "reward.csv").read_text() == "0,0.25\n"


def test_nothing_leaves_the_runs_directory(logger, deployment, exp_name):
    before = set(deployment.run_dir(exp_name).parent.rglob("*"))
    for name in ALLOWED:
        logger.log_scalar(name, 1.0, 0)
    logger.flush()
    inside = deployment.run_dir(exp_name)
    after = set(inside.parent.rglob("*"))
    assert all(path == inside or path.is_relative_to(inside) for path in after - before)
