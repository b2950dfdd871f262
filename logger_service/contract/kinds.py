"""How a value of `log_metrics` or `log_scalar` is taken, which its type tells."""

from __future__ import annotations

import enum
import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np

from logger_service.contract import tensors

NESTING_LIMIT = 64
"""The greatest number of mappings or lists inside one another."""
NUMBERS = frozenset({float, int, bool})
"""Python's own types of numbers."""
_REMEMBERED_TYPES = 1 << 10


class Kind(enum.Enum):
    """How a value is taken."""

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


_kinds: dict[type, Kind] = {}


def kind_of(value: Any) -> Kind:
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
    if isinstance(value, np.generic) and value.dtype.kind in "biuf" and value.dtype.itemsize <= 8:
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
