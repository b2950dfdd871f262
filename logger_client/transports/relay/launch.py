"""Starts the relay's process, which is to find what this one finds, whatever lies in the working directory."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Sequence

import logger_client

# `-c` has put the working directory first, which this process may not look into: all of its path is replaced, before
# anything is imported that is not part of the interpreter itself.
_CODE = "import sys; sys.path[:] = sys.argv[1:]; from logger_client.transports.relay.process import main; main()"


def start(end: socket.socket) -> subprocess.Popen[bytes]:
    """Starts the process, with the socket as its standard input.

    Raises:
        OSError, RuntimeError: It cannot be started; RuntimeError: the interpreter ends.
    """
    home = os.path.dirname(os.path.dirname(os.path.abspath(logger_client.__file__)))
    environment = {name: value for name, value in os.environ.items() if name != "GRPC_ENABLE_FORK_SUPPORT"}
    spawn = sys.modules.get("multiprocessing.spawn")
    executable = spawn.get_executable() if spawn is not None else sys.executable
    return subprocess.Popen(
        [executable, *_flags(), "-c", _CODE, *search_path(sys.path, home)],
        stdin=end.fileno(),
        stdout=subprocess.DEVNULL,
        env=environment,
        # What a terminal sends to the whole group is not for the relay: the child may still have something to deliver.
        start_new_session=True,
    )


def _flags() -> list[str]:
    """The options by which this process does not look at its environment while it starts."""
    if sys.flags.isolated:
        return ["-I"]
    return ["-E"] if sys.flags.ignore_environment else []


def search_path(path: Sequence[object], home: str) -> list[str]:
    """Returns where the relay looks for modules.

    It is this process's own path, in its order, with two exceptions. The standard library comes first: this process has
    long loaded what it needs of it, so that a `queue.py` beside a script, or in a directory that was added since, does
    no harm here, and must do none there. And in place of the working directory, which may have changed since, stands
    what was found through it.

    Args:
        path: The path of this process.
        home: Where `logger_client` was found.
    """
    entries = [os.path.abspath(entry) for entry in path if isinstance(entry, str) and entry]
    if home not in entries:
        entries.insert(0 if "" in path else len(entries), home)
    library = os.path.dirname(os.__file__)
    return sorted(entries, key=lambda entry: entry not in (library, os.path.join(library, "lib-dynload")))
