"""Rows of numbers as lines of CSV, `step,value`, that parse back to the same doubles.

pyarrow, where it is installed, formats many rows at once; without it, and for a few rows, Python does, to the very same
bytes: a recovery compares what it would write with what stands in the files. The rule is Arrow's: the shortest digits
that read back as the same double, without an exponent if 1e-6 <= |value| < 1e10, and without a trailing `.0`.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

ARROW_MIN_ROWS = 128
"""From how many rows on pyarrow is faster than Python."""

Chunk: TypeAlias = "bytes | memoryview"


def format_rows(steps: npt.NDArray[np.int64], values: npt.NDArray[np.float64], ends: Sequence[int]) -> list[Chunk]:
    """Formats columns that lie one after the other.

    Args:
        steps: The step of each row.
        values: The value of each row.
        ends: Where each column ends; the last one is the number of rows.

    Returns:
        The lines of each column.
    """
    if len(values) >= ARROW_MIN_ROWS and _arrow() is not None:
        return format_with_arrow(steps, values, ends)
    return format_with_python(steps, values, ends)


def format_with_python(
    steps: npt.NDArray[np.int64], values: npt.NDArray[np.float64], ends: Sequence[int]
) -> list[Chunk]:
    """Does what `format_rows` does, without pyarrow."""
    lines = [f"{step},{format_double(value)}\n" for step, value in zip(steps.tolist(), values.tolist(), strict=True)]
    chunks: list[Chunk] = []
    begin = 0
    for end in ends:
        chunks.append("".join(lines[begin:end]).encode())
        begin = end
    return chunks


def format_with_arrow(
    steps: npt.NDArray[np.int64], values: npt.NDArray[np.float64], ends: Sequence[int]
) -> list[Chunk]:
    """Does what `format_rows` does, with pyarrow."""
    pa, pc = _arrow()
    text = pa.large_string()
    # Every line is made with the end of the line before it in front. One more row at the end gives the last line its
    # own; then a column is what lies between two newlines, and is cut out of the one buffer without a copy.
    step_texts = pc.binary_replace_slice(pc.cast(pa.array(np.append(steps, 0)), text), 0, 0, "\n")
    value_texts = pc.cast(pa.array(np.append(values, 0.0)), text)
    lines = pc.binary_join_element_wise(step_texts, value_texts, pa.scalar(",", text))
    _, offsets, data = lines.buffers()
    cuts = (np.frombuffer(offsets, np.int64)[lines.offset :][[0, *ends]] + 1).tolist()
    view = memoryview(data)
    return [view[begin:end] for begin, end in itertools.pairwise(cuts)]


def format_double(value: float) -> str:
    """Formats one double."""
    text = repr(value)
    magnitude = abs(value)
    if 1e-4 <= magnitude < 1e10:
        return text[:-2] if text.endswith(".0") else text
    if magnitude == 0.0:
        return text[:-2]
    if not magnitude < float("inf"):
        return text
    sign = "-" if value < 0 else ""
    mantissa, _, power = text.removeprefix("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    exponent = int(power or "0") + len(whole) - 1
    digits = (whole + fraction).rstrip("0")
    if -6 <= exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    point = "." if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{point}{digits[1:]}e{exponent:+d}"


@functools.cache
def _arrow() -> Any:
    """pyarrow and its compute functions, imported when first needed; None where it is not installed."""
    try:
        import pyarrow
        import pyarrow.compute
    except ImportError:
        return None
    return pyarrow, pyarrow.compute
