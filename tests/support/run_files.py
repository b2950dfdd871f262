"""Reads a run's files into plain Python values, without the code that wrote them."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from logger_service.contract.names import name_of


@dataclass
class RunFiles:
    """What a run's files hold, whatever their format."""

    scalars: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    """(step, value) by name, as they stand. Where a file does not tell its name, its path is in the name's place."""
    texts: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    """(step, text) by name, likewise."""
    histograms: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Histograms by name, likewise: bins, moments and step, without the time."""
    hparams: list[dict[str, Any]] = field(default_factory=list)
    """Every `log_hparams` call."""
    hparams_texts: int = 0
    """How many of them can be read as text."""


def read_csv_run(run_dir: Path) -> RunFiles:
    """Reads the CSV layout: `scalars/<name>.csv`, `texts/<name>.jsonl`, `histograms/<name>.jsonl`, hyperparameters."""
    files = RunFiles()
    for name, path in _named(run_dir / "scalars", ".csv"):
        files.scalars[name] = read_scalars(path)
    for name, path in _named(run_dir / "texts", ".jsonl"):
        lines = path.read_text("utf-8").splitlines()
        files.texts[name] = [(row["step"], row["value"]) for row in map(json.loads, lines)]
    for name, path in _named(run_dir / "histograms", ".jsonl"):
        rows = files.histograms[name] = list(map(json.loads, path.read_text("utf-8").splitlines()))
        for row in rows:
            assert row.pop("time_unix_nano") > 0
    if (run_dir / "hparams.json").exists():
        files.hparams = json.loads((run_dir / "hparams.json").read_text("utf-8"))
    files.hparams_texts = len(list((run_dir / "texts").glob("hparams*.txt")))
    return files


def read_scalars(path: Path) -> list[tuple[int, float]]:
    """Returns the rows of one `step,value` file; an incomplete line is an error."""
    text = path.read_text("ascii")
    assert text == "" or text.endswith("\n"), f"{path} ends in a torn line"
    return [(int(step), float(value)) for step, value in csv.reader(text.splitlines())]


def content(run_dir: Path) -> dict[str, bytes]:
    """Returns every file for users by its path, without the times at which calls were made."""
    folders = ("scalars", "texts", "histograms")
    found = [run_dir / "hparams.json", *(path for folder in folders for path in (run_dir / folder).rglob("*"))]
    return {
        path.relative_to(run_dir).as_posix(): re.sub(rb'"time_unix_nano":\d+', b"", path.read_bytes())
        for path in found
        if path.is_file()
    }


def _named(folder: Path, suffix: str) -> Iterator[tuple[str, Path]]:
    for path in folder.rglob(f"*{suffix}"):
        if path.is_file():
            relative = path.relative_to(folder).as_posix()
            yield name_of(relative, suffix) or relative, path
