"""`run.json` in a run's directory: who the run is, for a host whose journal does not know it."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from logger_service.contract.names import RESERVED_SEGMENTS, run_path

_log = logging.getLogger(__name__)

FILE_NAME = "run.json"


@dataclass(frozen=True)
class Identity:
    """Who a run is."""

    run_id: str
    epoch: int
    namespace: str
    exp_name: str
    created_unix_nano: int


def read(run_dir: Path) -> Identity | None:
    """Returns the identity that a directory claims; None: it claims none that can be read."""
    try:
        fields = json.loads((run_dir / FILE_NAME).read_text("utf-8"))
        identity = Identity(**{name: fields[name] for name in Identity.__dataclass_fields__})
        run_path(identity.namespace, identity.exp_name)
        if not (isinstance(identity.run_id, str) and isinstance(identity.epoch, int)):
            raise TypeError("run_id or epoch")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        _log.warning("%s cannot be read and is written anew: %s", run_dir / FILE_NAME, error)
        return None
    return identity


def write(run_dir: Path, identity: Identity) -> None:
    """Puts the identity into the directory, whole or not at all, and fsyncs it."""
    path = run_dir / FILE_NAME
    text = json.dumps(asdict(identity), indent=1)
    temporary = path.with_name(f".{FILE_NAME}.new")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_directory(run_dir)


def make_directory(run_dir: Path, data_dir: Path) -> None:
    """Makes a run's directory inside the data directory and fsyncs those that it made.

    Raises:
        OSError: Also where a symbolic link leads out of the data directory.
    """
    missing = [part for part in (run_dir, *run_dir.parents) if part.is_relative_to(data_dir) and not part.exists()]
    run_dir.mkdir(parents=True, exist_ok=True)
    if not run_dir.resolve().is_relative_to(data_dir.resolve()):
        raise OSError(f"{run_dir} leads out of the data directory")
    for made in missing:
        sync_directory(made.parent)


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
        identity = read(Path(directory))
        if identity is not None and data_dir / run_path(identity.namespace, identity.exp_name) == Path(directory):
            yield identity
