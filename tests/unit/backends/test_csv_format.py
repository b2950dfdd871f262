"""Lines of CSV: the same bytes with orjson and pyarrow and without them, and the same doubles when they are read."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logger_service.backends import csv_format

BIT_PATTERNS = st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack("<d", bits.to_bytes(8, "little"))[0])
DIGITS = st.integers(-(10**17), 10**17)
DECIMALS = st.builds(lambda digits, power: float(f"{digits}e{power}"), DIGITS, st.integers(-30, 20))
FINITE = st.one_of(BIT_PATTERNS.filter(math.isfinite), DECIMALS)
DOUBLES = st.one_of(BIT_PATTERNS, DECIMALS, st.floats(), st.integers(-(2**53), 2**53).map(float))
STEPS = st.integers(-(2**63), 2**63 - 1)
FORMATTERS = [csv_format.format_fast, csv_format.format_with_python]


def arrays(rows: list[tuple[int, float]]):
    return np.array([step for step, _ in rows], np.int64), np.array([value for _, value in rows], np.float64)


def same_double(first: float, second: float) -> bool:
    return (math.isnan(first) and math.isnan(second)) or struct.pack("<d", first) == struct.pack("<d", second)


@settings(max_examples=300)
@given(st.lists(st.tuples(STEPS, DOUBLES), min_size=1, max_size=100))
def test_both_formatters_write_the_same_bytes_that_read_back_as_the_same_doubles(rows: list[tuple[int, float]]):
    steps, values = arrays(rows)
    with_python = bytes(csv_format.format_with_python(steps, values, [len(rows)])[0])
    if np.isfinite(values).all():
        assert bytes(csv_format.format_fast(steps, values, [len(rows)])[0]) == with_python
    assert (
        bytes(csv_format.format_rows(np.tile(steps, 64), np.tile(values, 64), [64 * len(rows)])[0]) == with_python * 64
    )
    lines = with_python.decode().splitlines()
    assert len(lines) == len(rows)
    for line, (step, value) in zip(lines, rows, strict=True):
        step_text, value_text = line.split(",")
        assert int(step_text) == step
        assert same_double(float(value_text), value)


def test_both_formatters_agree_around_every_power_of_ten():
    middles = np.array([float(f"1e{power}") for power in range(-324, 309)])
    values = np.concatenate([np.nextafter(middles, 0), middles, np.nextafter(middles, np.inf), middles * 0.3, -middles])
    steps = np.arange(len(values))
    chunks = [bytes(formatter(steps, values, [len(values)])[0]) for formatter in FORMATTERS]
    assert chunks[0] == chunks[1]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (0.5, "0.5"),
        (1e-5, "0.00001"),
        (-1.5e-5, "-0.000015"),
        (1e-6, "1e-6"),
        (1.5e-7, "1.5e-7"),
        (1e-10, "1e-10"),
        (9999999999999998.0, "9999999999999998.0"),
        (1e16, "1e+16"),
        (5e-324, "5e-324"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (math.nan, "nan"),
        (-math.nan, "nan"),
    ],
)
def test_how_a_double_is_written(value: float, text: str):
    assert csv_format.format_double(value) == text
    many = csv_format.format_rows(np.full(100, 7), np.full(100, value), [100])[0]
    assert bytes(many).decode() == f"7,{text}\n" * 100


@given(st.lists(st.integers(0, 140), min_size=1, max_size=5))
def test_columns_are_cut_where_they_end(sizes: list[int]):
    ends = np.cumsum(sizes).tolist()
    steps, values = np.arange(ends[-1]), np.linspace(-1, 1, ends[-1], dtype=np.float64)
    expected = [
        "".join(f"{step},{csv_format.format_double(float(values[step]))}\n" for step in range(end - size, end)).encode()
        for size, end in zip(sizes, ends, strict=True)
    ]
    for formatter in (*FORMATTERS, csv_format.format_rows):
        assert [bytes(chunk) for chunk in formatter(steps, values, ends)] == expected


@given(st.integers(1, 200), st.integers(1, 5), st.booleans())
def test_columns_with_the_same_steps_and_with_others(rows: int, columns: int, same: bool):
    steps = np.tile(np.arange(rows), columns)
    steps[-1] += not same
    values = np.random.default_rng(rows).normal(size=rows * columns)
    ends = list(range(rows, rows * columns + 1, rows))
    chunks = [[bytes(chunk) for chunk in formatter(steps, values, ends)] for formatter in FORMATTERS]
    assert chunks[0] == chunks[1]


@pytest.mark.parametrize("missing", ["pyarrow", "orjson"])
def test_it_works_without_the_libraries(run_python, missing: str):
    code = """if True:
        import sys
        sys.modules[sys.argv[1]] = None
        import numpy as np
        from logger_service.backends.csv_format import format_rows
        rows = format_rows(np.arange(1000), np.full(1000, 0.1), [1000])[0]
        print(rows == b"".join(b"%d,0.1\\n" % step for step in range(1000)))
    """
    assert run_python(code, missing).stdout == "True\n"
