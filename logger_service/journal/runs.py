"""What a journal keeps in memory of each run: enough to check a commit without asking the database."""

from __future__ import annotations

from dataclasses import dataclass

KEPT_NOTICES = 100
"""The newest so many notices of a run are kept."""


@dataclass(slots=True)
class RunState:
    """A run, as of the last commit."""

    key: int
    """Its integer in the database."""
    first_position: int = 1
    last_position: int = 0
    held_bytes: int = 0
    last_write_ns: int = 0
    notices: int = 0
    """The number of its newest notice; they are numbered 1, 2, 3 …"""

    def copy(self) -> RunState:
        """Returns a copy, to be changed by a commit that may fail."""
        return RunState(
            self.key, self.first_position, self.last_position, self.held_bytes, self.last_write_ns, self.notices
        )


def unknown_run(run_id: str) -> ValueError:
    """Returns the error of a change that names a run the journal does not know."""
    return ValueError(f"run {run_id!r}: the journal does not know it; its RunRow comes first")


def out_of_order(run_id: str, position: int, last: int) -> ValueError:
    """Returns the error of a batch that does not follow the run's last one."""
    return ValueError(f"run {run_id!r}: a batch at position {position} does not follow the last one, {last}")
