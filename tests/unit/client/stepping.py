"""Ctrl-C at a step of one's choice."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def interrupted_at(step: int, work: Callable[[], object]) -> bool:
    """Does something, with Ctrl-C at a step of it.

    A step is where Python calls the handlers of signals: where a function begins, and where one of C has returned.

    Returns:
        Whether it had so many steps.
    """
    left = step

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal left
        if event in ("call", "c_return"):
            left -= 1
            if left == 0:
                raise KeyboardInterrupt

    try:
        sys.setprofile(count)
        work()
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)
    return left <= 0
