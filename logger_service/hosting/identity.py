"""`run.json` in a run's directory: who the run is, for a host whose journal does not know it."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from logger_service.backends import spelling
from logger_service.backends.tree import RunTree
from logger_service.contract.errors import Reason, ServiceError
from logger_service.contract.names import RESERVED_SEGMENTS, run_path

_log = logging.getLogger(__name__)

T = TypeVar("T")

FILE_NAME = "run.json"
ID = re.compile(r"[0-9a-f]{32}")
"""What ids of runs and writers are: 32 lower-case hexadecimal digits."""
MOST = 2**63 - 1
"""The greatest epoch, sequence or count that is taken: more than that no journal has to hold."""


@dataclass(frozen=True)
class Identity:
    """Who a run is."""

    run_id: str
    epoch: int
    namespace: str
    exp_name: str
    created_unix_nano: int

    @property
    def log_dir(self) -> str:
        """Where its files are, relative to the data directory, with `/`."""
        return run_path(self.namespace, self.exp_name)


def read(data_dir: Path, log_dir: str) -> Identity | None:
    """Returns the identity that a run's directory claims; None: it claims none that can be read."""
    try:
        fields = json.loads(_in(data_dir, lambda tree: tree.read(f"{log_dir}/{FILE_NAME}")))
        return _checked(Identity(**{name: fields[name] for name in Identity.__dataclass_fields__}))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        _log.warning("%s of %s cannot be read and is written anew: %s", FILE_NAME, log_dir, error)
        return None


def _checked(claimed: Identity) -> Identity:
    """Returns what a file claims, if a run can be so."""
    if not (isinstance(claimed.run_id, str) and ID.fullmatch(claimed.run_id)):
        raise ValueError("run_id is not 32 lower-case hexadecimal digits")
    for name, least in (("epoch", 1), ("created_unix_nano", 0)):
        number = getattr(claimed, name)
        if type(number) is not int or not least <= number <= MOST:
            raise ValueError(f"{name} is not an integer of {least} to 2**63 - 1")
    run_path(claimed.namespace, claimed.exp_name)
    return claimed


def write(data_dir: Path, claimed: Identity) -> None:
    """Puts the identity into the run's directory, which is made if it is missing, whole or not at all, and fsyncs it.

    Raises:
        OSError: Also where a symbolic link stands in the way, which might lead out of the data directory.
        ServiceError: As `check_spelling`.
    """
    content = json.dumps(asdict(claimed), indent=1) + "\n"

    def replace(tree: RunTree) -> None:
        tree.make_directory(claimed.log_dir)
        check_spelling(data_dir, claimed.log_dir)
        tree.replace(f"{claimed.log_dir}/{FILE_NAME}", content.encode())
        tree.sync()

    _in(data_dir, replace)


def check_spelling(data_dir: Path, log_dir: str) -> None:
    """Checks that a run's directory is no other run's.

    Raises:
        ServiceError: INVALID_NAME: the disk does not tell its path from one that is there already.
    """
    try:
        spelling.check_spelling(str(data_dir), log_dir)
    except ValueError as error:
        raise ServiceError(Reason.INVALID_NAME, str(error), field="exp_name") from None


def _in(data_dir: Path, use: Callable[[RunTree], T]) -> T:
    tree = RunTree(str(data_dir))
    try:
        return use(tree)
    finally:
        tree.rest()


def sync_directory(path: Path) -> None:
    """Makes the names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def find_all(data_dir: Path) -> Iterator[Identity]:
    """Walks a data directory for runs, without entering what lies inside a run's own layout."""
    for directory, folders, files in os.walk(data_dir):
        folders[:] = [name for name in folders if name not in RESERVED_SEGMENTS and not name.startswith(".")]
        if FILE_NAME not in files:
            continue
        log_dir = Path(directory).relative_to(data_dir).as_posix()
        claimed = read(data_dir, log_dir)
        if claimed is not None and claimed.log_dir == log_dir:
            yield claimed
