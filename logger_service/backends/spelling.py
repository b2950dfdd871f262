"""Keeps a run out of another one's directory on disks that ignore case, or in which Unicode form a name is.

Names of runs are not escaped for such disks, as a directory of runs may lie on another one tomorrow. Instead a run is
refused whose directory is there under another spelling.
"""

from __future__ import annotations

import os
import unicodedata

from logger_service.contract.names import RESERVED_SEGMENTS


def check_spelling(root: str, path: str) -> None:
    """Checks that what is there of the path of a run is there as it is spelled.

    Whoever makes the directory checks before, so that what is refused leaves nothing behind, and after it, as others
    may make theirs at the same time.

    Args:
        root: What holds runs.
        path: The run's directory, relative to it, with `/`.

    Raises:
        ValueError: It is there under another spelling; the message says which.
    """
    for segment in path.split("/"):
        held = _held_as(root, segment)
        if held is None:
            return
        if held != segment:
            raise ValueError(f"exp_name: the disk does not tell {segment!r} from {held!r}, which is there already")
        folded = segment.casefold()
        if folded != segment and folded in RESERVED_SEGMENTS and _is_one(root, segment, folded):
            raise ValueError(
                f"exp_name: the disk does not tell {segment!r} from {folded!r}, which the file layout keeps"
            )
        root = os.path.join(root, segment)


def _held_as(directory: str, name: str) -> str | None:
    """How the disk spells an entry of a directory; None: it is not there."""
    if _look(directory, name) is None:
        return None
    others = {name.swapcase(), *(unicodedata.normalize(form, name) for form in ("NFC", "NFD")), name.rstrip(". ")}
    if not any(_is_one(directory, name, other) for other in others - {name}):
        return name  # Nearly always: no directory is listed for it.
    names = os.listdir(directory)
    if name in names:
        return name
    return next((other for other in names if _is_one(directory, name, other)), name)


def _is_one(directory: str, name: str, other: str) -> bool:
    first, second = _look(directory, name), _look(directory, other)
    return first is not None and second is not None and os.path.samestat(first, second)


def _look(directory: str, name: str) -> os.stat_result | None:
    try:
        return os.lstat(os.path.join(directory, name))
    except OSError:  # It is not there, or cannot be: what is done to it next will tell.
        return None
