"""What `log_metrics` takes, turned into plain numbers and texts, all of it or none.

Python and NumPy numbers, bool, tensors and arrays of one element   one scalar
other tensors, other arrays, lists of numbers                       returned as a list; `name/0`, `name/1` … logged
str                                                                 a text
None                                                                returned, not logged
mappings, TensorDicts                                               flattened
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from logger_service.contract import tensors
from logger_service.contract.elements import Reading, double, doubles, one_number, read_items
from logger_service.contract.flatten import flatten
from logger_service.contract.kinds import NUMBERS, Kind, kind_of
from logger_service.contract.late import Late
from logger_service.contract.names import check_name, first_repeated

Sanitized: TypeAlias = "tuple[dict[str, Any], tuple[str, ...], list[float], list[tuple[str, str]], Late | None]"
"""What to return to the caller, the names of the row, its values, (name, text) of each text, and what is still missing
in the first and the third: the content of tensors on devices."""

_REMEMBERED_NAMES = 1 << 16
_FLOATS = {float}
# Looked up once, as in `elements`.
_TEXT, _NONE = Kind.TEXT, Kind.NONE


class Sanitizer:
    """Does so for one logger, or one view with a prefix. Remembers the names of rows, since they come again and again.

    Args:
        prefix: What the names begin with, without the `/` that follows it; empty: nothing.
    """

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._names: dict[tuple[Any, ...], tuple[str, ...]] = {}
        self._rows: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._remembered = 0

    def __call__(self, metrics: Any, keys_sep: str = "/") -> Sanitized:
        """Turns metrics into what a sink takes.

        Args:
            metrics: A mapping or a TensorDict.
            keys_sep: What joins the keys of nested ones.

        Returns:
            What to return to the caller (flat, prefixed, Python values), names, values, texts and what is late. The
            same names come as the same tuple.

        Raises:
            TypeError: A key is not a `str`, or a value is none of the above; the message names the key.
            ValueError: A name breaks the rules of names or stands twice, or a value is too large.
            RuntimeError: A tensor is on a CUDA device, and a CUDA graph is being captured.
        """
        entries = metrics if type(metrics) is dict else tensors.plain_entries(metrics)
        if entries:
            quick = self._quick(entries, self._names_of)
            if quick is not None:
                return quick
        return self._any(metrics, keys_sep)

    def prefixed(self, key: Any) -> str:
        """Returns the name that a key stands for.

        Raises:
            TypeError: The key is not a `str`.
        """
        if not isinstance(key, str):
            raise TypeError(f"names of metrics must be str, not {type(key).__name__} ({key!r})")
        return f"{self._prefix}/{key.lstrip('/')}" if self._prefix else key

    def _quick(
        self, entries: dict[str, Any], names_of: Callable[[tuple[str, ...]], tuple[str, ...]]
    ) -> Sanitized | None:
        """The fast way: a flat dict of nothing but numbers and plain tensors of one element.

        Returns:
            None if it is not that.
        """
        kinds = set(map(type, entries.values()))
        if kinds == _FLOATS:
            values = list(entries.values())
            names = names_of(tuple(entries))
            return (dict(zip(names, values, strict=True)) if self._prefix else entries.copy()), names, values, [], None
        given = list(entries.values())
        others = kinds - NUMBERS
        if others:
            read = read_items(given, others, others == kinds)
            if read is None:
                return None
            given = read
        names = names_of(tuple(entries))
        kinds = set(map(type, given))
        if kinds == _FLOATS:
            values = given
        elif kinds <= NUMBERS:
            try:
                values = list(map(float, given))
            except OverflowError:
                return None  # The other way says which it is.
        else:
            return None
        return dict(zip(names, given, strict=True)), names, values, [], None

    def _names_of(self, keys: tuple[Any, ...]) -> tuple[str, ...]:
        """Returns the names of the keys of a flat row."""
        names = self._names.get(keys)
        if names is None:
            names = tuple(map(self.prefixed, keys))
            _refuse_repeated(names)
            names = self._row(names)
            self._names[keys] = names
        return names

    def _row(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Returns the one tuple of these names, checked when they come first."""
        known = self._rows.get(names)
        if known is None:
            known = tuple(map(check_name, names))
            if self._remembered > _REMEMBERED_NAMES:
                self._names.clear()
                self._rows.clear()
                self._remembered = 0
            self._rows[known] = known
            self._remembered += len(known)
        return known

    def _any(self, metrics: Any, keys_sep: str) -> Sanitized:
        """The way for everything."""
        if not isinstance(keys_sep, str):
            raise TypeError(f"keys_sep must be a str, not {type(keys_sep).__name__}")
        if kind_of(metrics) not in (Kind.MAPPING, Kind.COLLECTION):
            raise TypeError(f"metrics must be a mapping or a TensorDict, not {type(metrics).__name__}")
        leaves, kinds = flatten(metrics, keys_sep, self.prefixed)
        texts: list[tuple[str, str]] = []
        returned: dict[str, Any] = dict.fromkeys(leaves)
        if Kind.TEXT in kinds or Kind.NONE in kinds:
            numbers = []
            for (name, leaf), kind in zip(leaves.items(), kinds, strict=True):
                if kind is _TEXT:
                    returned[name] = text = str.__str__(leaf)
                    texts.append((check_name(name), text))
                elif kind is not _NONE:
                    numbers.append((name, leaf, kind))
            leaves, kinds = {name: leaf for name, leaf, _ in numbers}, [kind for *_, kind in numbers]
        quick = self._quick(leaves, self._row) if leaves else None
        if quick is not None:
            content, names, values, *_ = quick
            returned.update(content)
            return returned, names, values, texts, None
        reading = Reading(returned)
        for (name, leaf), kind in zip(leaves.items(), kinds, strict=True):
            reading.add(name, leaf, kind)
        row = tuple(reading.names)
        if reading.has_lists:  # Names of elements may be names of others too.
            _refuse_repeated(row)
        names, values = self._row(row), doubles(row, reading.values)
        return returned, names, values, texts, reading.start_late(values)


def scalar(name: Any, value: Any) -> float:
    """Returns the one number that `log_scalar` was given, as a double.

    Raises:
        TypeError: It is not a number, nor a tensor or an array.
        ValueError: It has more than one element, or none; or it is too large for a double.
        RuntimeError: It is a tensor on a CUDA device, and a CUDA graph is being captured.
    """
    kind = kind_of(value)
    if kind is Kind.NUMBER or kind is Kind.SCALAR:
        return double(name, value)
    if kind is not Kind.TENSOR and kind is not Kind.ARRAY:
        raise TypeError(f"the value of {name!r} must be one number; it is of type {type(value).__name__}")
    return double(name, one_number(name, value, kind))


def _refuse_repeated(names: tuple[str, ...]) -> None:
    repeated = first_repeated(names)
    if repeated is not None:
        raise ValueError(f"the metrics have the name {repeated!r} twice")
