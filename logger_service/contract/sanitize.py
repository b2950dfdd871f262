"""What `log_metrics` takes, turned into plain numbers and texts, all of it or none.

Python and NumPy numbers, bool, tensors and arrays of one element   one scalar
other tensors, other arrays, lists of numbers                       returned as a list; `name/0`, `name/1` … logged
str                                                                 a text
None                                                                returned, not logged
mappings, TensorDicts                                               flattened
"""

from __future__ import annotations

import enum
import numbers
from collections.abc import Callable, Iterable, Mapping
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
_REMEMBERED_TYPES = 1 << 10
_FLOATS = {float}
_NUMBERS = {float, int, bool}
_NUMPY_SCALARS = {np.dtype(code).type for code in "?bhilqBHILQefd"}


class Kind(enum.Enum):
    """How a value is taken, which its type tells."""

    NONE = enum.auto()
    TEXT = enum.auto()
    NUMBER = enum.auto()
    SCALAR = enum.auto()
    """A scalar of NumPy's."""
    TENSOR = enum.auto()
    ARRAY = enum.auto()
    LIST = enum.auto()
    MAPPING = enum.auto()
    COLLECTION = enum.auto()
    WRAPPED = enum.auto()
    OTHER = enum.auto()


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
        others = kinds - _NUMBERS
        if others:
            read = _items(given, others, others == kinds)
            if read is None:
                return None
            given = read
        names = names_of(tuple(entries))
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
        if _kind_of(metrics) not in (Kind.MAPPING, Kind.COLLECTION):
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
                returned[name], elements = _read(name, leaf, kind, LIST_LIMIT)
                if isinstance(returned[name], list):
                    listed = True
                    names.extend([f"{name}/{index}" for index in range(len(elements))])
                else:
                    names.append(name)
                values.extend(elements)
        row = tuple(names)
        if listed:  # Names of elements may be names of others too.
            _refuse_repeated(row)
        return returned, self._row(row), _doubles(row, values), texts

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
            kind = _kind_of(value)
            if kind is Kind.WRAPPED:
                value = value.tolist()
                kind = _kind_of(value)
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
    kind = _kind_of(value)
    if kind is Kind.NUMBER or kind is Kind.SCALAR:
        return _double(name, value)
    if kind is not Kind.TENSOR and kind is not Kind.ARRAY:
        raise TypeError(f"the value of {name!r} must be one number; it is of type {type(value).__name__}")
    content, elements = _read(name, value, kind, None)
    if isinstance(content, list):
        raise ValueError(
            f"the value of {name!r} has {len(elements)} elements; log_scalar takes one number: use log_metrics, "
            "which logs each, or log_histogram"
        )
    return _double(name, content)


_kinds: dict[type, Kind] = {}


def _kind_of(value: Any) -> Kind:
    """Returns how a value is taken. A type is looked at once: what it is does not change."""
    kind = _kinds.get(type(value))
    if kind is None:
        kind = _look_at(value)
        if len(_kinds) >= _REMEMBERED_TYPES:
            _kinds.clear()
        _kinds[type(value)] = kind
    return kind


def _look_at(value: Any) -> Kind:
    if value is None:
        return Kind.NONE
    if isinstance(value, str):
        return Kind.TEXT
    if isinstance(value, np.bool_ | np.integer | np.floating) and value.dtype.itemsize <= 8:
        return Kind.SCALAR
    if isinstance(value, np.ndarray | np.generic):
        return Kind.ARRAY
    if tensors.is_tensor(value):
        return Kind.TENSOR
    if tensors.is_wrapped(value):
        return Kind.WRAPPED
    if tensors.is_collection(value):
        return Kind.COLLECTION
    if isinstance(value, Mapping):
        return Kind.MAPPING
    if isinstance(value, list | tuple):
        return Kind.LIST
    # `Decimal` is a Number, but neither Real nor Complex.
    if isinstance(value, numbers.Real) or (
        isinstance(value, numbers.Number) and not isinstance(value, numbers.Complex)
    ):
        return Kind.NUMBER
    return Kind.OTHER


def _items(values: list[Any], kinds: set[type], all_of_them: bool) -> list[Any] | None:
    """Returns the Python numbers in NumPy scalars and plain tensors of one element, which have these types.

    One `item()` each is the fastest way on a CPU: 0.24 us, half of what stacking and one `tolist()` take.

    Returns:
        None if there is anything else, or tensors are not in host memory.
    """
    if not all(kind in _NUMPY_SCALARS or (kind.__name__ == "Tensor" and kind.__module__ == "torch") for kind in kinds):
        return None
    if not tensors.on_host(values):
        return None
    try:
        if all_of_them:
            return [value.item() for value in values]
        return [value.item() if type(value) in kinds else value for value in values]
    except RuntimeError:  # A tensor of more elements than one, or of none.
        return None


def _refuse_repeated(names: tuple[str, ...]) -> None:
    if len(set(names)) != len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the metrics have the name {repeated!r} twice")


def _read(name: Any, value: Any, kind: Kind, limit: int | None) -> tuple[Any, list[Any]]:
    """Returns the content as a number or a (nested) list, and its elements, row-major.

    Raises:
        TypeError: It cannot be logged; the message names the key.
        ValueError: It has more elements than the limit.
    """
    try:
        if kind is Kind.TENSOR:
            _refuse_long(name, value.numel(), limit)
            return tensors.read(value)
        if kind is Kind.ARRAY:
            _refuse_long(name, value.size, limit)
            return _read_array(value)
        if kind is Kind.LIST:
            elements: list[Any] = []
            return _read_list(name, value, limit, 1, elements), elements
        raise TypeError(f"it is of type {type(value).__name__}")
    except TypeError as error:
        raise TypeError(f"the value of {name!r} cannot be logged: {error}") from error


def _read_array(value: np.ndarray[Any, Any] | np.generic) -> tuple[Any, list[Any]]:
    dtype = value.dtype
    if dtype.kind not in "biuf":
        raise TypeError(f"it is an array of {dtype}")
    if dtype.itemsize > 8:  # `item` and `tolist` leave a long double as it is.
        value = value.astype(np.float64)
    if value.size == 1:
        number = value.item()
        return number, [number]
    return value.tolist(), value.reshape(-1).tolist()


def _read_list(
    name: str, value: list[Any] | tuple[Any, ...], limit: int | None, depth: int, elements: list[Any]
) -> list[Any]:
    """Returns a list, with what is nested in it as lists too, and adds its elements to `elements`."""
    if depth > NESTING_LIMIT:
        raise ValueError(f"the value of {name!r} is nested more than {NESTING_LIMIT} levels deep")
    content: list[Any] = []
    for element in value:
        kind = _kind_of(element)
        if kind is Kind.NUMBER:
            content.append(element)
            elements.append(element)
        elif kind is Kind.SCALAR:
            content.append(element.item())
            elements.append(content[-1])
        elif kind is Kind.LIST:
            content.append(_read_list(name, element, limit, depth + 1, elements))
        elif kind is Kind.TENSOR or kind is Kind.ARRAY:
            inner, read = _read(name, element, kind, limit)
            content.append(inner)
            elements.extend(read)
        else:
            raise TypeError(f"an element is of type {type(element).__name__}")
        _refuse_long(name, len(elements), limit)
    return content


def _refuse_long(name: str, count: int, limit: int | None) -> None:
    if limit is not None and count > limit:
        raise ValueError(
            f"the value of {name!r} has more than {limit} elements, which is what log_metrics takes: use log_histogram"
        )


def _doubles(names: Iterable[str], values: list[Any]) -> list[float]:
    try:
        return list(map(float, values))
    except (OverflowError, ValueError):
        return [_double(name, value) for name, value in zip(names, values, strict=True)]


def _double(name: Any, number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        raise ValueError(f"the value of {name!r} is too large for a double") from None
    except ValueError as error:  # A signalling Decimal.
        raise ValueError(f"the value of {name!r} cannot be logged: {error}") from error
