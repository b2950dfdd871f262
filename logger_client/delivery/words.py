"""Numbers of things in messages."""

from __future__ import annotations


def counted(number: int, one: str, many: str) -> str:
    """Returns `1 batch`, `2 batches`."""
    return f"{number:,} {one if number == 1 else many}"


def points(number: int) -> str:
    """Returns `1 point`, `2 points`."""
    return counted(number, "point", "points")
