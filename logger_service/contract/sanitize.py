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
from logger_service.contract.elements import (
    NESTING_LIMIT,
    NUMBERS,
    Kind,
    double,
    doubles,
    kind_of,
    read_items,
    read_value,
)
from logger_service.contract.names import check_name

Sanitized: TypeAlias = "tuple[dict[str, Any], tuple[str, ...], list[float], list[tuple[str, str]]]"
"""What to return to the caller, the names of the row, its values, and (name, text) of each text."""

LIST_LIMIT = 1024
"""The greatest number of elements of a list, an array or a tensor in `log_metrics`."""
_REMEMBERED_NAMES = 1 << 16
_FLOATS = {float}


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
            What to return to the caller (flat, prefixed, Python values), names, values and texts. The same names come
            as the same tuple.

        Raises:
            TypeError: A key is not a `str`, or a value is none of the above; the message names the key.
            ValueError: A name breaks the rules of names or stands twice, or a value is too large.
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
            return (dict(zip(names, values, strict=True)) if self._prefix else entries.copy()), names, values, []
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
        return dict(zip(names, given, strict=True)), names, values, []

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
        leaves: dict[str, Any] = {}
        kinds: list[Kind] = []
        self._flatten(metrics, keys_sep, None, 1, leaves, kinds)
        if Kind.TENSOR in kinds:
            tensors.to_host(leaves, LIST_LIMIT)
        quick = self._quick(leaves, self._row) if leaves else None
        if quick is not None:
            return quick
        returned: dict[str, Any] = {}
        names: list[str] = []
        values: list[Any] = []
        texts: list[tuple[str, str]] = []
        listed = False
        for (name, leaf), kind in zip(leaves.items(), kinds, strict=True):
            if kind is Kind.NUMBER:
                returned[name] = leaf
                names.append(name)
                values.append(leaf)
            elif kind is Kind.SCALAR:
                returned[name] = number = leaf.item()
                names.append(name)
                values.append(number)
            elif kind is Kind.NONE:
                returned[name] = None
            elif kind is Kind.TEXT:
                returned[name] = text = str.__str__(leaf)
                texts.append((check_name(name), text))
            else:
                returned[name], elements = read_value(name, leaf, kind, LIST_LIMIT)
                if isinstance(returned[name], list):
                    listed = True
                    names.extend([f"{name}/{index}" for index in range(len(elements))])
                else:
                    names.append(name)
                values.extend(elements)
        row = tuple(names)
        if listed:  # Names of elements may be names of others too.
            _refuse_repeated(row)
        return returned, self._row(row), doubles(row, values), texts

    def _flatten(
        self,
        metrics: Any,
        keys_sep: str,
        path: str | None,
        depth: int,
        leaves: dict[str, Any],
        kinds: list[Kind],
    ) -> None:
        """Adds what is not nested any further to `leaves`, by name, and how it is taken to `kinds`."""
        if depth > NESTING_LIMIT:
            raise ValueError(f"the metrics are nested more than {NESTING_LIMIT} levels deep at {path!r}")
        for key, value in (tensors.plain_entries(metrics) or metrics).items():
            if path is None:
                name = self.prefixed(key)
            elif isinstance(key, str):
                name = f"{path}{keys_sep}{key}"
            else:
                raise TypeError(f"keys of metrics must be str, not {type(key).__name__} ({key!r} in {path!r})")
            kind = kind_of(value)
            if kind is Kind.WRAPPED:
                value = value.tolist()
                kind = kind_of(value)
            if kind is Kind.MAPPING or kind is Kind.COLLECTION:
                self._flatten(value, keys_sep, name, depth + 1, leaves, kinds)
            elif name in leaves:
                raise ValueError(f"the metrics have the name {name!r} twice")
            else:
                leaves[name] = value
                kinds.append(kind)


def scalar(name: Any, value: Any) -> float:
    """Returns the one number that `log_scalar` was given, as a double.

    Raises:
        TypeError: It is not a number, nor a tensor or an array.
        ValueError: It has more than one element, or none; or it is too large for a double.
    """
    kind = kind_of(value)
    if kind is Kind.NUMBER or kind is Kind.SCALAR:
        return double(name, value)
    if kind is not Kind.TENSOR and kind is not Kind.ARRAY:
        raise TypeError(f"the value of {name!r} must be one number; it is of type {type(value).__name__}")
    content, elements = read_value(name, value, kind, None)
    if isinstance(content, list):
        raise ValueError(
            f"the value of {name!r} has {len(elements)} elements; log_scalar takes one number: use log_metrics, "
            "which logs each, or log_histogram"
        )
    return double(name, content)


def _refuse_repeated(names: tuple[str, ...]) -> None:
    if len(set(names)) != len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the metrics have the name {repeated!r} twice")
