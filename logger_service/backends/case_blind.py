"""Whether a run's disk tells names apart that differ in case or in their Unicode form only.

It is found out once, before the run has its first file, and noted in the run's directory, so that a name goes to the
same path for whoever opens the run later: with a journal or without, and wherever the directory was moved meanwhile.
"""

from __future__ import annotations

import errno
import os

from logger_service.backends.tree import RunTree

MARKER_PATH = ".case_blind"

_NOTE = b"Names of files that are not in lower case have a hash: the disk that this run began on ignores case.\n"
_PAIRS = ((".probe-a", ".PROBE-A"), (".probe-\u00e9", ".probe-e\u0301"))
"""Names that such a disk takes for one."""


def is_case_blind(tree: RunTree, begun: str) -> bool:
    """Returns whether the paths in a run's directory are to be `case_blind`.

    Of several processes that begin a run, one at a time may ask.

    Args:
        tree: The run's directory.
        begun: What the run has from its beginning on; to be made after this call.

    Raises:
        OSError: The disk cannot be asked.
    """
    if _is_there(tree, MARKER_PATH):
        return True
    if _is_there(tree, begun) or not any(_are_one(tree, *pair) for pair in _PAIRS):
        return False
    tree.replace(MARKER_PATH, _NOTE)
    tree.sync()  # Else a crash might leave a run that has begun, and no note.
    return True


def _are_one(tree: RunTree, made: str, other: str) -> bool:
    try:
        os.close(tree.open(made, os.O_WRONLY, create=True))
        try:
            return _is_there(tree, other)
        finally:
            tree.remove(made)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.EILSEQ):  # It cannot even hold one of them.
            return True
        raise


def _is_there(tree: RunTree, path: str) -> bool:
    try:
        os.close(tree.open(path, os.O_RDONLY))
    except FileNotFoundError:
        return False
    return True
