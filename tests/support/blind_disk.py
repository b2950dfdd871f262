"""A disk that ignores case and Unicode forms, made of one that does not.

For code that opens files through `RunTree`.
"""

from __future__ import annotations

import os
import threading
import unicodedata
from typing import Any

import pytest

from logger_service.backends import spelling, tree

_ONE_AT_A_TIME = threading.Lock()
"""To look for an entry and to make it is one step of a disk."""


def fold(text: str) -> str:
    """What such a disk compares."""
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", text).casefold())


class _BlindOs:
    """The module `os`, for which an entry of a directory is there under any spelling, and keeps its first one."""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def open(self, path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        with _ONE_AT_A_TIME:
            return os.open(_spelled(path, dir_fd), flags, mode, dir_fd=dir_fd)

    def mkdir(self, path: str, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        with _ONE_AT_A_TIME:
            os.mkdir(_spelled(path, dir_fd), mode, dir_fd=dir_fd)

    def unlink(self, path: str, *, dir_fd: int | None = None) -> None:
        with _ONE_AT_A_TIME:
            os.unlink(_spelled(path, dir_fd), dir_fd=dir_fd)

    def rename(self, source: str, target: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        with _ONE_AT_A_TIME:
            source, target = _spelled(source, src_dir_fd), _spelled(target, dst_dir_fd)
            os.rename(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    def lstat(self, path: str) -> os.stat_result:
        directory, name = os.path.split(path)
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            return os.lstat(_spelled(name, descriptor), dir_fd=descriptor)
        finally:
            os.close(descriptor)


def _spelled(name: str, directory: int | None) -> str:
    if directory is None:
        return name
    return next((entry for entry in os.listdir(directory) if fold(entry) == fold(name)), name)


def make_blind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has all disks ignore case and Unicode forms, until `monkeypatch` undoes it."""
    for module in (tree, spelling):
        monkeypatch.setattr(module, "os", _BlindOs())
