"""Rows of numbers as lines of CSV, `step,value`, that parse back to the same doubles.

orjson and pyarrow, where they are installed, format many rows at once; without them, and for a few rows, Python does,
to the very same bytes: a recovery compares what it would write with what stands in the files. Doubles are written with
the shortest digits that read back as the same double, as `repr` does, but for two things in which orjson differs: no
exponent if 1e-5 <= |value|, and no zero in front of an exponent of one digit.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

FAST_MIN_ROWS = 64
"""From how many rows on the libraries are faster than Python."""

_COMMA, _NEWLINE = b",\n"

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
    if len(values) >= FAST_MIN_ROWS and _libraries() is not None and np.isfinite(values).all():
        return format_fast(steps, values, ends)
    return format_with_python(steps, values, ends)


def format_with_python(
    steps: npt.NDArray[np.int64], values: npt.NDArray[np.float64], ends: Sequence[int]
) -> list[Chunk]:
    """Does what `format_rows` does, without libraries."""
    lines = [f"{step},{format_double(value)}\n" for step, value in zip(steps.tolist(), values.tolist(), strict=True)]
    chunks: list[Chunk] = []
    begin = 0
    for end in ends:
        chunks.append("".join(lines[begin:end]).encode())
        begin = end
    return chunks


def format_fast(steps: npt.NDArray[np.int64], values: npt.NDArray[np.float64], ends: Sequence[int]) -> list[Chunk]:
    """Does what `format_rows` does, with orjson and pyarrow, for at least one value, all of them finite."""
    pa, pc, orjson = _libraries()
    # `[0.5,1.0]`: where a comma or the last bracket stands, a line ends. So changed, the texts lie as Arrow wants them.
    text = np.array(np.frombuffer(orjson.dumps(values, option=orjson.OPT_SERIALIZE_NUMPY), np.uint8))
    text[-1] = _COMMA
    line_ends = np.flatnonzero(text == _COMMA)
    text[line_ends] = _NEWLINE
    offsets = np.empty(len(values) + 1, np.int64)
    offsets[0] = 1
    np.add(line_ends, 1, out=offsets[1:])
    value_texts = pa.LargeStringArray.from_buffers(len(values), pa.py_buffer(offsets), pa.py_buffer(text))
    lines = pc.binary_join_element_wise(_step_texts(steps, ends), value_texts, pa.scalar(",", pa.large_string()))
    # The lines lie in one buffer, one after the other: a column is cut out of it without a copy.
    _, line_offsets, data = lines.buffers()
    cuts = np.frombuffer(line_offsets, np.int64)[lines.offset :][[0, *ends]].tolist()
    view = memoryview(data)
    return [view[begin:end] for begin, end in itertools.pairwise(cuts)]


def format_double(value: float) -> str:
    """Formats one double."""
    text = repr(value)
    if text[-4:-1] != "e-0":
        return text
    mantissa, exponent = text[:-4], text[-1]
    if exponent != "5":
        return f"{mantissa}e-{exponent}"
    sign = "-" if value < 0 else ""
    return f"{sign}0.0000{mantissa.lstrip('-').replace('.', '')}"


def _step_texts(steps: npt.NDArray[np.int64], ends: Sequence[int]) -> Any:
    """Formats steps. Columns that were logged together have the same ones: those are formatted once."""
    pa, pc, _ = _libraries()
    rows, columns = ends[0], len(ends)
    if columns > 1 and rows and len(steps) == rows * columns and (steps.reshape(columns, rows) == steps[:rows]).all():
        texts = pc.cast(pa.array(steps[:rows]), pa.large_string())
        return texts.take(pa.array(np.tile(np.arange(rows), columns)))
    return pc.cast(pa.array(steps), pa.large_string())


@functools.cache
def _libraries() -> Any:
    """pyarrow, its compute functions and orjson, imported when first needed; None where one is not installed."""
    try:
        import orjson
        import pyarrow
        import pyarrow.compute
    except ImportError:
        return None
    return pyarrow, pyarrow.compute, orjson
