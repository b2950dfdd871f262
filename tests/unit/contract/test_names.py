"""Names: what is one, and where it goes on disk."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from logger_service.contract.names import (
    RESERVED_SEGMENTS,
    check_exp_name,
    check_name,
    check_namespace,
    exp_path,
    file_path,
    name_of,
    run_path,
)

# Pieces that meet: separators, what files end in, escapes, and what is long.
PIECES = st.sampled_from(
    [
        "a",
        "b",
        "/",
        ".",
        "..",
        ".csv",
        ".jsonl",
        ".txt",
        "%",
        "%2E",
        "%25",
        "%252E",
        "%2F",
        "%~",
        "%2e",
        "%25~",
        "A",
        ".CSV",
        ".JSONL",
        "e\u0301",
        "\u00c9",
        "\u00df",
        "ss",
        "\u212a",
        "2E",
        "25",
        "~",
        "é",
        "\\",
        " ",
        "x" * 120,
        "𝄞" * 40,
        "hparams0",
        "HPARAMS0.txt",
        "hparams0.txt",
        ".times",
        "%~" + "0" * 40,
    ]
)
# Segments about as long as a file system takes, which differ at the end only.
LONG = st.builds(
    lambda piece, size, end: piece * (size // len(piece.encode())) + end,
    st.sampled_from(["x", "X", "é", "e\u0301", "損", "𝄞", "%2E", "a.csv"]),
    st.integers(235, 262),
    st.sampled_from(["", "a", "A", "ab", ".csv", ".jsonl", "%2E", "é", "/x", ".csv/x", "%~", "."]),
)
NAMES = st.one_of(st.lists(PIECES, min_size=1, max_size=9).map("".join), LONG, st.text(max_size=300))
SUFFIXES = st.sampled_from([".csv", ".jsonl", "_12.mp4"])
# What disks take for equal; the last is of those that know no Unicode beyond their own table of upper-case letters.
FOLDS: dict[str, Callable[[str], str]] = {
    "sees": lambda path: path,
    "lower": str.lower,
    "upper": str.upper,
    "case": str.casefold,
    "NFC": lambda path: unicodedata.normalize("NFC", path),
    "NFD": lambda path: unicodedata.normalize("NFD", path),
    "NFD and case": lambda path: unicodedata.normalize("NFD", unicodedata.normalize("NFD", path).casefold()),
    "NFKC and case": lambda path: unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", path).casefold()),
    "ends": lambda path: "/".join(segment.rstrip(". ") for segment in path.lower().split("/")),
}


def variants(name: str) -> list[str]:
    """The name, and others that some disk takes for it."""
    made = [fold(name) for fold in FOLDS.values()]
    return [*dict.fromkeys([name, name.swapcase(), *made])]


def is_name(name: str) -> bool:
    try:
        check_name(name)
    except ValueError:
        return False
    return True


def is_exp_name(name: str) -> bool:
    try:
        check_exp_name(name)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(
    "name",
    [
        "loss",
        "train/loss",
        "a.b-c_d 1",
        "μ/σ²",
        "損失",
        "..a",
        "a..",
        "...",
        "a\\b",
        "x.csv",
        "C:",
        "%2F",
        "~",
        "a" * 1024,
        "é" * 512,
    ],
)
def test_names(name: str):
    assert check_name(name) == name


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("", "empty"),
        ("/", "empty segment"),
        ("/a", "empty segment"),
        ("a/", "empty segment"),
        ("a//b", "empty segment"),
        (".", r"segment '\.'"),
        ("..", r"segment '\.\.'"),
        ("a/../b", r"segment '\.\.'"),
        ("../../../x", r"segment '\.\.'"),
        ("/etc/passwd", "empty segment"),
        ("a\0b", "control character"),
        ("a\nb", "control character"),
        ("a\x7f", "control character"),
        ("a\x9f", "control character"),
        ("a\ud800", "surrogate"),
        ("a" * 1025, "1024"),
        ("é" * 513, "1024"),
    ],
)
def test_what_is_no_name_is_refused_with_the_rule(name: str, rule: str):
    with pytest.raises(ValueError, match=rule):
        check_name(name)


@pytest.mark.parametrize("name", [None, 3, b"a", ("a",)])
def test_a_name_is_a_str(name: object):
    with pytest.raises(TypeError, match="name must be a str"):
        check_name(name)


@pytest.mark.parametrize(
    ("name", "suffix", "path"),
    [
        ("loss", ".csv", "loss.csv"),
        ("train/loss", ".csv", "train/loss.csv"),
        (".hidden/.x", ".csv", ".hidden/.x.csv"),
        ("a b/μ", ".jsonl", "a b/μ.jsonl"),
        ("x.csv", ".csv", "x.csv.csv"),
        ("x.csv/y", ".csv", "x%2Ecsv/y.csv"),
        ("x.csv/y", ".jsonl", "x.csv/y.jsonl"),
        ("x.jsonl/y", ".jsonl", "x%2Ejsonl/y.jsonl"),
        ("hparams0.txt/y", ".jsonl", "hparams0%2Etxt/y.jsonl"),
        ("hparams0.txt/y", ".csv", "hparams0.txt/y.csv"),
        ("a\\b", ".csv", "a\\b.csv"),
        ("50%", ".csv", "50%.csv"),
        ("%2F", ".csv", "%2F.csv"),
        ("%2E", ".csv", "%252E.csv"),
        ("%25", ".csv", "%2525.csv"),
        ("%~", ".csv", "%25~.csv"),
    ],
)
def test_paths(name: str, suffix: str, path: str):
    assert file_path(name, suffix) == path
    assert name_of(path, suffix) == name


@pytest.mark.parametrize("name", ["n" * 252, "n" * 300, "é" * 300, "d" * 256 + "/x", "d" * 252 + ".csv/x"])
def test_a_long_segment_is_cut_and_hashed(name: str):
    path = file_path(name, ".csv")
    assert all(len(segment.encode()) <= 255 for segment in path.split("/"))
    assert path.endswith(".csv")
    assert path[:100] == name[:100]
    assert name_of(path, ".csv") is None
    assert file_path(name[:-1] + "!", ".csv") != path


@pytest.mark.parametrize(
    "path", ["a.txt", "../x.csv", "/x.csv", "a//b.csv", ".csv", "x.csv/y.csv", "a%2Eb.csv", "%2525%.txt"]
)
def test_paths_where_no_name_goes(path: str):
    assert name_of(path, ".csv") is None


@settings(deadline=None)
@given(NAMES, SUFFIXES, st.booleans())
def test_paths_are_confined_and_told_back(name: str, suffix: str, case_blind: bool):
    assume(is_name(name))
    path = file_path(name, suffix, case_blind=case_blind)
    segments = path.split("/")
    assert all(segment not in ("", ".", "..") and len(segment.encode()) <= 255 for segment in segments)
    assert len(segments) == len(name.split("/"))
    assert path.endswith(suffix)
    assert "\0" not in path
    if "%~" not in path:
        assert name_of(path, suffix, case_blind=case_blind) == name
    else:
        assert name_of(path, suffix, case_blind=case_blind) is None


def check_apart(files: list[str], others: set[str], fold: Callable[[str], str]) -> None:
    """No two files share a path, none is a directory of another one, and none stands where others do."""
    folded = {fold(file) for file in files}
    assert len(folded) == len(files)
    directories = {"/".join(file.split("/")[:end]) for file in folded for end in range(1, len(file.split("/")))}
    assert not folded & directories
    assert not (folded | directories) & others


BESIDE = {".csv": set(), ".jsonl": {f"hparams{number}.txt" for number in (0, 1, 10)}}
"""What stands in the same directory without being a name's."""


@settings(deadline=None)
@given(st.lists(NAMES, min_size=2, max_size=12, unique=True), st.sampled_from([".csv", ".jsonl"]))
def test_no_two_names_meet_on_disk(names: list[str], suffix: str):
    files = [file_path(name, suffix) for name in names if is_name(name)]
    check_apart(files, BESIDE[suffix], FOLDS["sees"])


@settings(deadline=None)
@given(st.lists(NAMES, min_size=1, max_size=6), st.sampled_from([".csv", ".jsonl"]), st.sampled_from(sorted(FOLDS)))
@example(["a.csv/b", "a%2ecsv/b"], ".csv", "lower")
@example(["a./b", "a/b"], ".csv", "ends")
@example(["HPARAMS0.TXT/x"], ".jsonl", "case")
def test_no_two_names_meet_on_a_disk_that_ignores_case(names: list[str], suffix: str, fold: str):
    unlike = dict.fromkeys(variant for name in names for variant in variants(name) if is_name(variant))
    files = [file_path(name, suffix, case_blind=True) for name in unlike]
    check_apart(files, BESIDE[suffix], FOLDS[fold])


@settings(deadline=None)
@given(NAMES, st.sampled_from([".csv", ".jsonl"]))
def test_a_disk_that_ignores_case_lists_paths_as_they_were_made(name: str, suffix: str):
    assume(is_name(name))
    path = file_path(name, suffix, case_blind=True)
    assert path.isascii()
    assert not set(path) & set('"*:<>?\\|')
    assert not any(segment.endswith((".", " ")) for segment in path.split("/"))


@settings(deadline=None)
@given(st.lists(NAMES, min_size=2, max_size=12, unique=True))
def test_no_two_runs_meet_on_disk(names: list[str]):
    runs = [name for name in names if is_name(name) and is_exp_name(name)]
    paths = {exp_path(name) for name in runs}
    assert len(paths) == len(runs)
    for path in paths:
        segments = path.split("/")
        assert all(len(segment.encode()) <= 255 and not segment.startswith(".") for segment in segments)
        assert not RESERVED_SEGMENTS & set(segments)


@pytest.mark.parametrize(
    ("name", "suffix", "path"),
    [
        ("loss", ".csv", "loss.csv"),
        ("train/loss_2 (x)", ".csv", "train/loss_2 (x).csv"),
        ("x.csv/y", ".csv", "x%2Ecsv/y.csv"),
        ("50%", ".csv", "50%.csv"),
        ("%2e", ".csv", "%252e.csv"),
        ("%25", ".csv", "%2525.csv"),
    ],
)
def test_lower_case_is_kept_on_a_disk_that_ignores_case(name: str, suffix: str, path: str):
    assert file_path(name, suffix, case_blind=True) == path
    assert name_of(path, suffix, case_blind=True) == name


@pytest.mark.parametrize(
    ("name", "beginning"),
    [
        ("Loss", "Loss"),
        ("train/AUC", "train/AUC"),
        ("\u00e9t\u00e9", "_t_"),
        ("a:b", "a_b"),
        ("longna~1", "longna_1"),
        ("a.", "a."),
        ("%2E", "%252E"),
        ("X" * 300, "X" * 209),
    ],
)
def test_other_segments_get_a_hash_there(name: str, beginning: str):
    path = file_path(name, ".csv", case_blind=True)
    assert path.removesuffix(path[-46:]) == beginning
    assert re.fullmatch(r"%~[0-9a-f]{40}\.csv", path[-46:])
    assert name_of(path, ".csv", case_blind=True) is None


def test_names_that_try_hard_all_have_their_file(tmp_path: Path):
    names = [
        "a",
        "a.csv",
        "a/b",
        "a.csv/b",
        "a.csv.csv",
        "a%2Ecsv/b",
        "%2E/%25/%252E",
        "s" * 300,
        "s" * 299,
        "s" * 300 + "/t",
    ]
    names += ["\\", "...", ".a", "C:\\x", "%~" + "0" * 40, "é" * 500, "/".join(["d"] * 512)]
    for name in names:
        path = tmp_path / file_path(name, ".csv")
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x") as file:
            file.write(name)
    assert sorted(path.read_text() for path in tmp_path.rglob("*.csv") if path.is_file()) == sorted(names)


@pytest.mark.parametrize("namespace", ["default", "team-a", "μ", "a.b"])
def test_namespaces(namespace: str):
    assert check_namespace(namespace) == namespace


@pytest.mark.parametrize("namespace", ["", "a/b", ".a", "..", ".logger-service", "a\n"])
def test_what_is_no_namespace(namespace: str):
    with pytest.raises(ValueError, match="namespace"):
        check_namespace(namespace)


@pytest.mark.parametrize("exp_name", ["run", "a/b", "a/scalars2", "Scalars", "a b"])
def test_exp_names(exp_name: str):
    assert check_exp_name(exp_name) == exp_name
    assert exp_path(exp_name) == exp_name
    assert run_path("default", exp_name) == f"default/{exp_name}"


@pytest.mark.parametrize(
    "exp_name",
    [
        "",
        "scalars",
        "a/scalars",
        "videos/a",
        "texts",
        "histograms",
        "a/run.json",
        "hparams.json",
        ".a",
        "a/.b",
        "../a",
        "/a",
        "a/",
    ],
)
def test_what_is_no_exp_name(exp_name: str):
    with pytest.raises(ValueError, match="exp_name"):
        check_exp_name(exp_name)


def test_a_run_with_a_long_name_has_a_directory(tmp_path: Path):
    first, second = run_path("n" * 300, "e" * 300 + "/x"), run_path("n" * 300, "e" * 299 + "f/x")
    assert first != second
    (tmp_path / first).mkdir(parents=True)
    (tmp_path / second).mkdir(parents=True)
