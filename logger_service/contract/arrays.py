"""NumPy's arrays, as far as their numbers can be logged."""

from __future__ import annotations

from typing import Any

import numpy as np


def check_array(array: np.ndarray[Any, Any] | np.generic) -> None:
    """Checks that an array or a scalar has real numbers.

    Raises:
        TypeError: It has others, or something of it is masked: there it has no number, and would be read as if it had.
    """
    if array.dtype.kind not in "biuf":
        raise TypeError(f"it is an array of {array.dtype}")
    if is_masked(array):
        raise TypeError("it is masked, and where it is there is no number; log array.filled(…), or leave it out")


def is_masked(value: object) -> bool:
    """Whether anything of an array is masked, by `numpy.ma`, which NumPy loads when it is used."""
    if type(value) is np.ndarray or not isinstance(value, np.ndarray):
        return False
    # By name: another thread may be loading `numpy.ma` at this moment.
    if not any(cls.__module__.startswith("numpy.ma") and cls.__name__ == "MaskedArray" for cls in type(value).__mro__):
        return False
    return bool(np.ma.is_masked(value))
