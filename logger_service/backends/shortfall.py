"""Remembers where files that lost committed bytes were continued, so that a second crash does not continue them twice.

A file that is shorter than committed is continued at its end, which the next recovery could not know: the committed
length is still that of before. So the ends are noted in the run's directory before anything is written there. The note
holds until a checkpoint has committed the new lengths; it is told from an outdated one by the committed length that it
notes, and by a number that the committed state has too and that grows with every such recovery.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from logger_service.backends.tree import RunTree

NOTE_PATH = ".short.json"

_log = logging.getLogger(__name__)


class Shortfall:
    """The ends of short files in one recovery.

    Args:
        tree: The run's directory.
        state: What `state` returned at the last checkpoint; empty: nothing.
    """

    def __init__(self, tree: RunTree, state: Mapping[str, Any]) -> None:
        self._tree = tree
        self._generation = int(state.get("generation", 0))
        self._bases = self._read()  # (committed, base) by path.
        self._noted = bool(self._bases)

    def base(self, path: str, committed: int) -> int:
        """Where the bytes begin that are not committed: at the committed length, unless the file was found short."""
        noted = self._bases.get(path)
        return noted[1] if noted is not None and noted[0] == committed else committed

    def add(self, path: str, committed: int, end: int) -> None:
        """A file is shorter than committed, and will be continued at `end`."""
        self._bases[path] = committed, end
        self._noted = False

    def note(self, written: set[str]) -> None:
        """To be called before files are written in recovery."""
        if not self._noted and not written.isdisjoint(self._bases):
            note = {"generation": self._generation, "bases": self._bases}
            self._tree.replace(NOTE_PATH, json.dumps(note).encode())
            self._tree.sync()
            self._noted = True

    def end_recovery(self) -> None:
        """From the next checkpoint on the lengths are committed as they are."""
        if self._bases:
            self._generation += 1
            self._bases = {}

    def state(self) -> dict[str, Any]:
        """Returns what belongs to the lengths."""
        return {"generation": self._generation}

    def _read(self) -> dict[str, tuple[int, int]]:
        try:
            note = json.loads(self._tree.read(NOTE_PATH))
            if note["generation"] == self._generation:
                return {path: (int(committed), int(base)) for path, (committed, base) in note["bases"].items()}
        except FileNotFoundError:
            return {}
        except (ValueError, KeyError, TypeError, AttributeError):
            _log.warning("%s in %s cannot be read; it is removed", NOTE_PATH, self._tree.root)
        self._tree.remove(NOTE_PATH)
        return {}
