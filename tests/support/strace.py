"""Watching a server's system calls."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest


def strace_command(trace: Path, calls: str, *options: str) -> tuple[str, ...]:
    """Returns the command that runs a server under strace, which writes to `trace`; skips where there is no strace.

    Only the calls that are traced stop at strace, so that the server runs at its own speed.
    """
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    return ("strace", "-f", "--seccomp-bpf", "-qq", "-e", f"trace={calls}", "-o", str(trace), *options)
