"""The numbers in the values of one call, read in order; for those on devices, the places that they will take."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Any

import numpy as np

from logger_service.contract import cuda, tensors
from logger_service.contract.arrays import check_array
from logger_service.contract.kinds import NESTING_LIMIT, Kind, kind_of
from logger_service.contract.late import Hole, Late, nested

LIST_LIMIT = 1024
"""The greatest number of elements of a list, an array or a tensor in `log_metrics`."""
_NUMPY_SCALARS: set[type] = {np.dtype(code).type for code in "?bhilqBHILQefd"}
# Looked up once: to find a member of an enum takes some versions of Python as long as to read a number.
_NUMBER, _SCALAR, _TENSOR, _ARRAY, _LIST = Kind.NUMBER, Kind.SCALAR, Kind.TENSOR, Kind.ARRAY, Kind.LIST
_IN_LISTS = (_NUMBER, _SCALAR, _TENSOR, _ARRAY)
_is_cpu = attrgetter("is_cpu")


class Reading:
    """Reads values one after the other.

    Args:
        returned: Takes the content of each value, a number or a (nested) list, under its name.

    Attributes:
        names: The names of the row: a value's own, or `name/0`, `name/1` … for what is a list.
        values: The numbers that belong to them; of those that are late, 0.
        has_lists: Whether anything is a list.
    """

    def __init__(self, returned: dict[str, Any]) -> None:
        self.names: list[str] = []
        self.values: list[Any] = []
        self.has_lists = False
        self._returned = returned
        self._name = ""  # Of the value that is read.
        self._late: list[Any] = []
        self._holes: list[Hole] = []
        self._late_names: set[str] = set()

    def add(self, name: str, value: Any, kind: Kind) -> None:
        """Reads a value.

        Raises:
            TypeError: It cannot be logged; the message names the key.
            ValueError: It has too many elements.
        """
        begin = len(self.values)
        self._name = name
        try:
            is_one = self._read(self._returned, name, value, kind)
        except TypeError as error:
            raise TypeError(f"the value of {name!r} cannot be logged: {error}") from error
        except _TooLongError:
            raise ValueError(
                f"the value of {name!r} has more than {LIST_LIMIT} elements, which is what log_metrics takes: "
                "use log_histogram"
            ) from None
        except _TooDeepError:
            raise ValueError(f"the value of {name!r} is nested more than {NESTING_LIMIT} levels deep") from None
        if is_one:
            self.names.append(name)
        else:
            self.has_lists = True
            self.names.extend([f"{name}/{index}" for index in range(len(self.values) - begin)])

    def start_late(self, row: list[float]) -> Late | None:
        """Has what is on devices copied, into the places it left and into the row that was made of `values`."""
        return Late(self._late, self._holes, row, frozenset(self._late_names)) if self._late else None

    def _read(self, container: Any, key: Any, value: Any, kind: Kind) -> bool:
        """Reads a value into a place; returns whether it is one number."""
        values = self.values
        if kind is _NUMBER:
            container[key] = value
            values.append(value)
            return True
        if kind is _SCALAR:
            container[key] = number = value.item()
            values.append(number)
            return True
        if kind is _TENSOR:
            count = value.numel()
            _refuse_long(count)
            if not value.is_cpu and not tensors.is_distributed(value):
                return self._await(container, key, value, count)
            container[key], elements = tensors.read(value)
        elif kind is _ARRAY:
            count = value.size
            _refuse_long(count)
            container[key], elements = _read_array(value)
        elif kind is _LIST:
            content: list[Any] = []
            container[key] = content
            self._read_list(content, value, len(values), 1)
            return False
        else:
            raise TypeError(f"it is of type {type(value).__name__}")
        values.extend(elements)
        return bool(count == 1)

    def _read_list(self, content: list[Any], value: Any, begin: int, depth: int) -> None:
        """Reads what is in a list, with what is nested in it as lists too."""
        if depth > NESTING_LIMIT:
            raise _TooDeepError
        for index, element in enumerate(value):
            content.append(None)
            kind = kind_of(element)
            if kind is _LIST:
                content[index] = []
                self._read_list(content[index], element, begin, depth + 1)
            elif kind in _IN_LISTS:
                self._read(content, index, element, kind)
            else:
                raise TypeError(f"an element is of type {type(element).__name__}")
            _refuse_long(len(self.values) - begin)

    def _await(self, container: Any, key: Any, value: Any, count: int) -> bool:
        """Leaves a place for a tensor that is on a device."""
        tensors.check(value)
        if count == 0:
            container[key] = nested([], value.shape)
            return False
        container[key] = None
        self._late_names.add(self._name)
        self._late.append(value)
        self._holes.append((container, key, len(self.values), None if count == 1 else tuple(value.shape)))
        self.values.extend([0.0] * count)
        return count == 1


class _TooLongError(Exception):
    """A value has too many elements."""


class _TooDeepError(Exception):
    """A list is nested too deeply."""


def read_items(values: list[Any], kinds: set[type], all_of_them: bool) -> list[Any] | None:
    """Returns the Python numbers in NumPy scalars and plain tensors of one element, which have these types.

    One `item()` each is the fastest way on a CPU: 0.24 us, half of what stacking and one `tolist()` take.

    Returns:
        None if there is anything else, or tensors are on CUDA devices.
    """
    others = kinds - _NUMPY_SCALARS
    if not all(kind.__name__ == "Tensor" and kind.__module__ == "torch" for kind in others):
        return None
    # To look at each takes half as long as to read it. On devices of other kinds than CUDA's each is waited for here.
    if others and cuda.is_in_use():
        some = values if all_of_them and kinds == others else [value for value in values if type(value) in others]
        if not all(map(_is_cpu, some)):
            return None
    try:
        if all_of_them:
            return [value.item() for value in values]
        return [value.item() if type(value) in kinds else value for value in values]
    except RuntimeError:  # A tensor of more elements than one, or of none.
        return None


def one_number(name: Any, value: Any, kind: Kind) -> Any:
    """Returns the number in a tensor or an array that has one element.

    Raises:
        TypeError: It is none that can be read; the message names the key.
        ValueError: It has more elements, or none.
        RuntimeError: As `tensors.read`.
    """
    try:
        if kind is _TENSOR:
            count = value.numel()
            if count == 1:
                return tensors.read(value)[0]
            tensors.check(value)
        else:
            count = value.size
            if count == 1:
                return _read_array(value)[0]
            check_array(value)
    except TypeError as error:
        raise TypeError(f"the value of {name!r} cannot be logged: {error}") from error
    raise ValueError(
        f"the value of {name!r} has {count} elements; log_scalar takes one number: use log_metrics, which logs each, "
        "or log_histogram"
    )


def _read_array(value: np.ndarray[Any, Any] | np.generic) -> tuple[Any, list[Any]]:
    check_array(value)
    value = np.asarray(value)  # Some subclasses have lists of another form.
    if value.dtype.itemsize > 8:  # `item` and `tolist` leave a long double as it is.
        value = value.astype(np.float64)
    if value.size == 1:
        number = value.item()
        return number, [number]
    return value.tolist(), value.reshape(-1).tolist()


def _refuse_long(count: int) -> None:
    if count > LIST_LIMIT:
        raise _TooLongError


def doubles(names: Iterable[str], values: list[Any]) -> list[float]:
    """Returns numbers as doubles.

    Raises:
        TypeError: One of them is no number; the message names the key.
        ValueError: One of them is too large, or a number that is none.
    """
    try:
        return list(map(float, values))
    except (OverflowError, TypeError, ValueError):
        return [double(name, value) for name, value in zip(names, values, strict=True)]


def double(name: Any, number: Any) -> float:
    """Returns one number as a double. Raises as `doubles`."""
    try:
        return float(number)
    except OverflowError:
        raise ValueError(f"the value of {name!r} is too large for a double") from None
    except TypeError as error:  # What says that it is a number, and cannot be made one.
        raise TypeError(f"the value of {name!r} cannot be logged: {error}") from error
    except ValueError as error:  # A signalling Decimal.
        raise ValueError(f"the value of {name!r} cannot be logged: {error}") from error
