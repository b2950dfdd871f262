"""Rules of names, and where on disk a name goes.

Everything that is logged has a name, whose segments are split at `/`. File backends put a name at the path that
`file_path` gives it: by the name alone, never by what already exists (a replay must agree), injectively, and as TorchRL
does for ordinary names. What a file system cannot hold is escaped:

    %2E        the dot of a directory segment that ends like a file, so that `a` and `a.csv/b` can both exist
    %25        a percent sign that would otherwise read as one of these
    %~HASH     stands for the rest of a segment that is too long, which begins as that segment does

Some disks do not tell `Loss` from `loss`, nor one Unicode form of a text from another; there are such that know still
other equalities, alter what they are given, or refuse it. For a run on such a disk paths are made `case_blind`: what is
not made of lower-case letters, digits and signs that all disks keep gets a hash as well.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any

NAME_LIMIT_BYTES = 1024
"""The greatest size of a name in UTF-8."""
RESERVED_SEGMENTS = frozenset({"scalars", "videos", "texts", "histograms", "run.json", "hparams.json"})
"""What a run's directory holds itself, so that no run inside that directory may be called so."""

_SEGMENT_LIMIT_BYTES = 255  # What Linux file systems hold.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_LOOKS_ESCAPED = re.compile(r"%(?=2E|25|~)")
_LOOKS_ESCAPED_BLINDLY = re.compile(_LOOKS_ESCAPED.pattern, re.IGNORECASE)
_ESCAPE = re.compile(r"%(2E|25)")
_PORTABLE = r"0-9 !#$%&'()+,\-.;=@\[\]^_`{}"  # No `~`: FAT has a second name for each file, such as `longna~1`.
_KEPT_BY_ALL_DISKS = re.compile(rf"[a-z{_PORTABLE}]+(?<![. ])")  # A dot or space at the end is dropped by some.
_ALTERED_BY_SOME_DISK = re.compile(rf"[^A-Za-z{_PORTABLE}]")


def first_repeated(names: Sequence[str]) -> str | None:
    """Returns the first name that stands in a row for the second time; None: each stands once."""
    seen = set(names)
    if len(seen) == len(names):
        return None
    seen.clear()
    return next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]


def check_name(name: Any) -> str:
    """Returns the name, if it is one.

    Raises:
        TypeError: It is not a `str`.
        ValueError: It breaks a rule of names; the message says which.
    """
    return _check(name, "name")


def check_namespace(namespace: Any) -> str:
    """Returns the namespace of a run, if it is one: one segment that does not begin with a dot.

    Raises:
        TypeError: It is not a `str`.
        ValueError: It breaks a rule; the message says which.
    """
    text = _check(namespace, "namespace")
    if "/" in text:
        raise ValueError(f"namespace {_shown(text)} has more than one segment: it must not contain '/'")
    if text.startswith("."):
        raise ValueError(f"namespace {_shown(text)} begins with a dot")
    return text


def check_exp_name(exp_name: Any) -> str:
    """Returns the name of a run, if it is one: by the rules of names, and no segment is one of the file layout's own.

    Raises:
        TypeError: It is not a `str`.
        ValueError: It breaks a rule; the message says which.
    """
    text = _check(exp_name, "exp_name")
    for segment in text.split("/"):
        if segment.startswith("."):
            raise ValueError(f"exp_name {_shown(text)} has a segment that begins with a dot")
        if segment in RESERVED_SEGMENTS:
            raise ValueError(f"exp_name {_shown(text)} has the segment {segment!r}, which the file layout keeps")
    return text


def exp_path(exp_name: str) -> str:
    """Returns the directory of a run, relative to its namespace or log directory."""
    return "/".join(_directory(segment, (), False) for segment in check_exp_name(exp_name).split("/"))


def run_path(namespace: str, exp_name: str) -> str:
    """Returns the directory of a run relative to the data directory, with `/`."""
    return f"{_directory(check_namespace(namespace), (), False)}/{exp_path(exp_name)}"


def file_path(name: str, suffix: str, *, case_blind: bool = False) -> str:
    """Returns the relative path, with `/`, of the file for a name: `a/b` with `.csv` goes to `a/b.csv`.

    Two names never share a path, no path is another one's directory, and none leads out of where it begins.

    Args:
        name: A name that `check_name` has passed.
        suffix: What the file is called beyond the name. In one directory there may be several suffixes only if their
            extensions (from the last dot on) are equal, but for `.txt` beside `.jsonl`.
        case_blind: All this must hold for paths that differ in case or in their Unicode form only.

    Returns:
        The path. None of its segments is longer than 255 bytes.
    """
    *directories, last = name.split("/")
    segments = [_directory(segment, _file_endings(suffix), case_blind) for segment in directories]
    segments.append(_fitted(_escaped(last, case_blind), last, suffix, case_blind))
    return "/".join(segments)


def name_of(path: str, suffix: str, *, case_blind: bool = False) -> str | None:
    """Returns the name whose `file_path` is `path`; None if the path does not tell, or no name goes there."""
    if not path.endswith(suffix):
        return None
    name = _ESCAPE.sub(lambda escape: "." if escape[1] == "2E" else "%", path[: len(path) - len(suffix)])
    try:
        check_name(name)
    except ValueError:
        return None
    return name if file_path(name, suffix, case_blind=case_blind) == path else None


def _check(name: Any, what: str) -> str:
    if not isinstance(name, str):
        raise TypeError(f"{what} must be a str, not {type(name).__name__}")
    text = str.__str__(name)
    if not text:
        raise ValueError(f"{what} is empty")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise ValueError(f"{what} {_shown(text)} has a surrogate, which UTF-8 cannot hold") from None
    if size > NAME_LIMIT_BYTES:
        raise ValueError(f"{what} {_shown(text)} has {size} bytes of UTF-8; at most {NAME_LIMIT_BYTES} are allowed")
    if _CONTROL.search(text):
        raise ValueError(f"{what} {_shown(text)} has a control character")
    for segment in text.split("/"):
        if not segment:
            raise ValueError(f"{what} {_shown(text)} has an empty segment (a leading, trailing or double '/')")
        if segment in (".", ".."):
            raise ValueError(f"{what} {_shown(text)} has the segment {segment!r}")
    return text


def _shown(text: str) -> str:
    return ascii(text) if len(text) <= 80 else f"{text[:77]!a}..."


def _file_endings(suffix: str) -> tuple[str, ...]:
    """The endings of what stands beside the files of this suffix: hparams stand beside the texts, as `.txt`."""
    extension = suffix[suffix.rfind(".") :]
    return (extension, ".txt") if extension == ".jsonl" else (extension,)


def _escaped(segment: str, case_blind: bool) -> str:
    return (_LOOKS_ESCAPED_BLINDLY if case_blind else _LOOKS_ESCAPED).sub("%25", segment)


def _directory(segment: str, endings: tuple[str, ...], case_blind: bool) -> str:
    escaped = _escaped(segment, case_blind)
    if endings and segment.endswith(endings):
        stem, _, extension = escaped.rpartition(".")
        escaped = f"{stem}%2E{extension}"
    return _fitted(escaped, segment, "", case_blind)


def _fitted(escaped: str, segment: str, suffix: str, case_blind: bool) -> str:
    """`escaped + suffix`, or, if a disk cannot hold that, its beginning and a hash of the segment in place of the rest.

    What begins a path that has a hash need not differ from others, but the disk has to list it as it was made.
    """
    if case_blind and not _KEPT_BY_ALL_DISKS.fullmatch(segment):
        return _hashed(_ALTERED_BY_SOME_DISK.sub("_", escaped).encode(), segment, suffix)
    if len(escaped) + len(suffix) <= _SEGMENT_LIMIT_BYTES // 4:  # Characters of UTF-8 have at most 4 bytes.
        return escaped + suffix
    encoded = escaped.encode()
    if len(encoded) + len(suffix.encode()) <= _SEGMENT_LIMIT_BYTES:
        return escaped + suffix
    return _hashed(encoded, segment, suffix)


def _hashed(beginning: bytes, segment: str, suffix: str) -> str:
    tail = f"%~{hashlib.sha256(segment.encode()).hexdigest()[:40]}{suffix}"
    return beginning[: _SEGMENT_LIMIT_BYTES - len(tail.encode())].decode(errors="ignore") + tail
