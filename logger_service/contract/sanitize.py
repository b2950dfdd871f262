"""What `log_metrics` takes, turned into plain numbers and texts, all of it or none.

Python and NumPy numbers, bool, tensors and arrays of one element   one scalar
other tensors, other arrays, lists of numbers                       returned as a list; `name/0`, `name/1` … logged
str                                                                 a text
None                                                                returned, not logged
mappings, TensorDicts                                               flattened
"""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from logger_service.contract import tensors
from logger_service.contract.names import check_name

Sanitized: TypeAlias = "tuple[dict[str, Any], tuple[str, ...], list[float], list[tuple[str, str]]]"
"""What to return to the caller, the names of the row, its values, and (name, text) of each text."""

LIST_LIMIT = 1024
"""The greatest number of elements of a list, an array or a tensor in `log_metrics`."""
NESTING_LIMIT = 64
"""The greatest number of mappings or lists inside one another."""
_REMEMBERED_NAMES = 1 << 16
_FLOATS = {float}
_NUMBERS = {float, int, bool}


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
            quick = self._flat(entries)
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

    def _flat(self, entries: dict[str, Any]) -> Sanitized | None:
        """The fast way: a flat dict of nothing but Python numbers, or nothing but plain tensors of one element."""
        kinds = set(map(type, entries.values()))
        if kinds == _FLOATS:
            values = list(entries.values())
            names = self._names_of(tuple(entries))
            return (dict(zip(names, values, strict=True)) if self._prefix else entries.copy()), names, values, []
        if kinds <= _NUMBERS:
            given = list(entries.values())
        elif len(kinds) == 1 and _is_plain_tensor(*kinds):
            read = tensors.read_scalars(entries.values())
            if read is None:
                return None
            given = read
        else:
            return None
        names = self._names_of(tuple(entries))
        kinds = set(map(type, given))
        if kinds == _FLOATS:
            values = given
        elif kinds <= _NUMBERS:
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
        if not (isinstance(metrics, Mapping) or tensors.is_collection(metrics)):
            raise TypeError(f"metrics must be a mapping or a TensorDict, not {type(metrics).__name__}")
        leaves = [(self.prefixed(key), value) for key, value in _leaves(metrics, keys_sep, "", 1)]
        _refuse_repeated(tuple(name for name, _ in leaves))
        host = tensors.to_host({name: value for name, value in leaves if tensors.is_tensor(value)})
        returned: dict[str, Any] = {}
        names: list[str] = []
        values: list[float] = []
        texts: list[tuple[str, str]] = []
        for name, leaf in leaves:
            if leaf is None:
                returned[name] = None
            elif isinstance(leaf, str):
                returned[name] = text = str.__str__(leaf)
                texts.append((check_name(name), text))
            else:
                returned[name], elements = _read(name, host.get(name, leaf))
                whole = not isinstance(returned[name], list)
                names.extend([name] if whole else (f"{name}/{index}" for index in range(len(elements))))
                values.extend(_double(name, element) for element in elements)
        row = tuple(names)
        if len(row) > len(returned):  # Names of elements may be names of others.
            _refuse_repeated(row)
        return returned, self._row(row), values, texts


def scalar(name: Any, value: Any) -> float:
    """Returns the one number that `log_scalar` was given, as a double.

    Raises:
        TypeError: It is not a number, nor a tensor or an array.
        ValueError: It has more than one element, or none; or it is too large for a double.
    """
    if isinstance(value, int | float):
        return _double(name, value)
    if isinstance(value, list | tuple):
        raise TypeError(f"the value of {name!r} must be one number, not {type(value).__name__}")
    content, elements = _read(name, value, limit=None)
    if isinstance(content, list):
        raise ValueError(
            f"the value of {name!r} has {len(elements)} elements; log_scalar takes one number: use log_metrics, "
            "which logs each, or log_histogram"
        )
    return _double(name, elements[0])


def _is_plain_tensor(kind: type) -> bool:
    return kind.__name__ == "Tensor" and kind.__module__ == "torch"


def _refuse_repeated(names: tuple[str, ...]) -> None:
    if len(set(names)) != len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the metrics have the name {repeated!r} twice")


def _leaves(metrics: Any, keys_sep: str, path: str, depth: int) -> Iterator[tuple[Any, Any]]:
    """Yields the values that are not nested any further, with their keys joined."""
    if depth > NESTING_LIMIT:
        raise ValueError(f"the metrics are nested more than {NESTING_LIMIT} levels deep at {path!r}")
    for key, value in metrics.items():
        if depth > 1 and not isinstance(key, str):
            raise TypeError(f"keys of metrics must be str, not {type(key).__name__} ({key!r} in {path!r})")
        joined = f"{path}{keys_sep}{key}" if depth > 1 else key
        value = tensors.unwrapped(value)
        if isinstance(value, Mapping) or tensors.is_collection(value):
            yield from _leaves(value, keys_sep, joined, depth + 1)
        else:
            yield joined, value


def _read(name: str, value: Any, limit: int | None = LIST_LIMIT) -> tuple[Any, list[Any]]:
    """Returns a number or a (nested) list of Python numbers, and the elements, row-major."""
    try:
        if tensors.is_tensor(value):
            _refuse_long(name, value.numel(), limit)
            return tensors.read(value)
        if isinstance(value, np.ndarray | np.generic):
            _refuse_long(name, value.size, limit)
            return _read_array(value)
        if isinstance(value, list | tuple):
            return _read_list(name, value, limit)
        if _is_real(value):
            return value, [value]
        raise TypeError(f"it is of type {type(value).__name__}")
    except TypeError as error:
        raise TypeError(f"the value of {name!r} cannot be logged: {error}") from error


def _read_array(value: np.ndarray[Any, Any] | np.generic) -> tuple[Any, list[Any]]:
    if value.dtype.kind not in "biuf":
        raise TypeError(f"an array of {value.dtype}")
    if value.dtype.itemsize > 8 and value.dtype.kind == "f":  # `tolist` keeps a long double.
        value = value.astype(np.float64)
    if value.size == 1:
        number = value.item()
        return number, [number]
    return value.tolist(), value.reshape(-1).tolist()


def _read_list(
    name: str, value: list[Any] | tuple[Any, ...], limit: int | None, depth: int = 1
) -> tuple[Any, list[Any]]:
    if depth > NESTING_LIMIT:
        raise ValueError(f"the value of {name!r} is nested more than {NESTING_LIMIT} levels deep")
    _refuse_long(name, len(value), limit)
    content = []
    flat: list[list[Any]] = []
    count = 0
    for element in value:
        if isinstance(element, list | tuple):
            inner, elements = _read_list(name, element, limit, depth + 1)
        elif tensors.is_tensor(element):
            inner, elements = tensors.read(element)
        elif isinstance(element, np.ndarray | np.generic):
            inner, elements = _read_array(element)
        elif _is_real(element):
            inner, elements = element, [element]
        else:
            raise TypeError(f"a list with an element of type {type(element).__name__}")
        content.append(inner)
        flat.append(elements)
        count += len(elements)
        _refuse_long(name, count, limit)
    return content, list(chain.from_iterable(flat))


def _is_real(value: Any) -> bool:
    """Whether it is a number without an imaginary part; `Decimal` is a Number, but neither Real nor Complex."""
    return isinstance(value, numbers.Number) and (
        isinstance(value, numbers.Real) or not isinstance(value, numbers.Complex)
    )


def _refuse_long(name: str, count: int, limit: int | None) -> None:
    if limit is not None and count > limit:
        raise ValueError(
            f"the value of {name!r} has {count} elements; log_metrics takes at most {limit}: use log_histogram"
        )


def _double(name: Any, number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        raise ValueError(f"the value of {name!r} is too large for a double") from None
    except ValueError as error:  # A signalling Decimal.
        raise ValueError(f"the value of {name!r} cannot be logged: {error}") from error
