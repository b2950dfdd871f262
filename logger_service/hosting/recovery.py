"""What a recovery found in a run's files, in words for the run's owner."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from logger_service.backends.base import Recovery

_NAMED = 5


def notices(found: Recovery, points: int, *, adopted: bool) -> Iterator[tuple[str, str]]:
    """Tells what a run's owner should know.

    Args:
        found: What was found.
        points: How many points the files hold that no writer of this journal wrote.
        adopted: Whether the journal knew nothing of the files.

    Returns:
        Kinds and messages of notices.
    """
    if adopted and found.rows:
        yield "RUN_ADOPTED", f"the journal did not know the run; its files ({points:,} points) were continued"
    elif found.kept:
        yield "FILES_NEWER", f"files held more than the journal, and were continued: {named(found.kept)}"
    if found.short:
        yield "FILES_SHORTER", f"files had lost bytes, and were continued: {named(found.short)}"


def named(files: Mapping[str, int]) -> str:
    """Lists some files with their bytes."""
    shown = ", ".join(f"{path} ({size:,} bytes)" for path, size in sorted(files.items())[:_NAMED])
    return shown if len(files) <= _NAMED else f"{shown} and {len(files) - _NAMED:,} more"
