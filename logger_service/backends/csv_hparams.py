"""Hyperparameters of a CSV run: each record as text in `texts/hparams<N>.txt`, all of them typed in `hparams.json`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from logger_service.backends.files import FileKind, FileSet
from logger_service.backends.json_text import dump_json
from logger_service.backends.whole import whole_text

HPARAMS_PATH = "hparams.json"
TEXT_KIND = FileKind("texts", "hparams", ".txt", whole_text)

_TEXT_PATH = re.compile(r"texts/hparams(\d+)\.txt")


class HparamsFiles:
    """Writes the hyperparameters of one run. `hparams.json` is rewritten whole, from what the state keeps.

    Args:
        files: The run's files, just opened.
        state: What `state` returned at the last checkpoint; empty: nothing.
        shared: Others may add to the same run, one at a time: what they added is taken up before more is.
    """

    def __init__(self, files: FileSet, state: Mapping[str, Any], *, shared: bool = False) -> None:
        self._files = files
        self._shared = shared
        self._records: list[Any] = list(state.get("records", []))
        self._next_text = int(state.get("next_text", 0))
        self._added: list[tuple[Mapping[str, Any], bytes]] = []
        self._unwritten = False
        self._recovering = True

    @property
    def count(self) -> int:
        """How many records there are."""
        return len(self._records)

    def add(self, hparams: Mapping[str, Any]) -> None:
        """Adds a record. Reads and writes no file.

        Raises:
            ValueError: It has no text.
        """
        text = "\n".join(f"{key}: {value}" for key, value in sorted(hparams.items()))
        self._added.append((hparams, text.encode()))

    def prepare(self) -> None:
        """Puts the texts of what was added into the buffers of the files.

        Raises:
            OSError: What others have added could not be read. May be called again.
        """
        if not self._added:
            return
        if self._shared:
            self._take_up()
        for hparams, text in self._added:
            self._files.append(self._files.file(f"texts/hparams{self._next_text}.txt"), text)
            self._next_text += 1
            self._records.append(hparams)
        self._added.clear()
        self._unwritten = True

    def write(self) -> None:
        """Writes `hparams.json`, if it is not as it should be.

        Raises:
            OSError: It could not be written. May be called again.
        """
        if self._unwritten and not self._recovering:
            self._files.tree.replace(HPARAMS_PATH, (dump_json(self._records, indent=2) + "\n").encode())
            self._unwritten = False

    def discard(self) -> None:
        """Forgets what was added and is not written."""
        self._added.clear()
        self._unwritten = False

    def end_recovery(self) -> bool:
        """Takes up records that the files hold beyond those that were added, and returns whether there were any."""
        self._recovering = False
        held = self._held()
        expected = [dump_json(record) for record in self._records]
        found = [dump_json(record) for record in held]
        newer = len(found) > len(expected) and found[: len(expected)] == expected
        if newer:
            self._records = held
        self._unwritten = not newer and found != expected
        self._skip_texts(self._files.paths())
        return newer

    def state(self) -> dict[str, Any]:
        """Returns what the next opening needs."""
        if self._shared:
            self._take_up()
        return {"records": list(self._records), "next_text": self._next_text}

    def _take_up(self) -> None:
        """Takes up what others have added since."""
        if not self._unwritten:  # Else what is ours is not in the file yet.
            self._records = self._held()
        self._skip_texts(path for path, _ in self._files.tree.sizes("texts"))
        self._files.tree.rest()

    def _skip_texts(self, paths: Iterable[str]) -> None:
        """Has the next text go to a file that is not there yet."""
        found = (_TEXT_PATH.fullmatch(path) for path in paths)
        self._next_text = max([self._next_text, *(int(match[1]) + 1 for match in found if match)])

    def _held(self) -> list[Any]:
        try:
            held = json.loads(self._files.tree.read(HPARAMS_PATH))
        except (FileNotFoundError, ValueError):  # Not there, or torn by a crash of the machine: it is written anew.
            return []
        finally:
            self._files.tree.rest()
        return held if isinstance(held, list) else []
