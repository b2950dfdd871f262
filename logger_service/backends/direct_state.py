"""What a direct logger notes in the run's directory when it ends, so that the next one need not read all files.

It is no more than that: files that hold more than noted, as after a crash, are continued as they are and counted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from logger_service.backends.base import Checkpoint
from logger_service.backends.tree import RunTree
from logger_service.contract.steps import StepCounters

STATE_PATH = ".direct.json"

_VERSION = 1


class DirectState:
    """The note of one run.

    Args:
        run_dir: The run's directory.
    """

    def __init__(self, run_dir: str) -> None:
        self.counts: dict[tuple[str, str], int] = {}
        """Rows by (kind, name), as noted."""
        self._run_dir = run_dir
        self._lengths: dict[str, int] = {}

    def load(self) -> tuple[Mapping[str, int] | None, Mapping[str, Any]]:
        """Returns the noted lengths and state of the backend; None and nothing if there is no note."""
        try:
            note = self._read()
            if note["version"] != _VERSION:
                return None, {}
            counts = {(kind, name): int(count) for kind, name, count in note["counts"]}
            lengths = {str(path): int(length) for path, length in note["lengths"].items()}
            state = dict(note["state"])
        except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
            return None, {}  # Not there, or not whole: the files say all that matters.
        self.counts, self._lengths = counts, lengths
        return dict(lengths), state

    def save(self, checkpoint: Checkpoint, steps: StepCounters) -> None:
        """Notes a checkpoint and the counts that belong to it."""
        self._lengths.update(checkpoint.lengths)
        note = {
            "version": _VERSION,
            "counts": [[kind, name, count] for (kind, name), count in steps.counts.items()],
            "lengths": self._lengths,
            "state": checkpoint.state,
        }
        tree = RunTree(self._run_dir)
        try:
            tree.replace(STATE_PATH, json.dumps(note).encode())
            tree.sync()
        finally:
            tree.rest()

    def _read(self) -> Any:
        tree = RunTree(self._run_dir)
        try:
            return json.loads(tree.read(STATE_PATH))
        finally:
            tree.rest()
