"""Lines of CSV: the same bytes with pyarrow and without it, and the same doubles when they are read."""

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
DOUBLES = st.one_of(BIT_PATTERNS, DECIMALS, st.floats(), st.integers(-(2**53), 2**53).map(float))
STEPS = st.integers(-(2**63), 2**63 - 1)
FORMATTERS = [csv_format.format_with_arrow, csv_format.format_with_python]


def arrays(rows: list[tuple[int, float]]):
    return np.array([step for step, _ in rows], np.int64), np.array([value for _, value in rows], np.float64)


def same_double(first: float, second: float) -> bool:
    return (math.isnan(first) and math.isnan(second)) or struct.pack("<d", first) == struct.pack("<d", second)


@settings(max_examples=300)
@given(st.lists(st.tuples(STEPS, DOUBLES), min_size=1, max_size=100))
def test_both_formatters_write_the_same_bytes_that_read_back_as_the_same_doubles(rows: list[tuple[int, float]]):
    steps, values = arrays(rows)
    with_arrow, with_python = (bytes(formatter(steps, values, [len(rows)])[0]) for formatter in FORMATTERS)
    assert with_arrow == with_python
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
        (1.0, "1"),
        (-0.0, "-0"),
        (0.0, "0"),
        (0.5, "0.5"),
        (1e-6, "0.000001"),
        (1.5e-7, "1.5e-7"),
        (9999999999.5, "9999999999.5"),
        (1e10, "1e+10"),
        (12345678901.5, "1.23456789015e+10"),
        (1e16, "1e+16"),
        (5e-324, "5e-324"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (math.nan, "nan"),
        (-math.nan, "nan"),
    ],
)
def test_a_double_is_written_as_arrow_writes_it(value: float, text: str):
    assert csv_format.format_double(value) == text
    assert bytes(csv_format.format_with_arrow(np.array([7]), np.array([value]), [1])[0]).decode() == f"7,{text}\n"


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


def test_it_works_without_pyarrow(run_python):
    code = """if True:
        import sys
        sys.modules["pyarrow"] = None
        import numpy as np
        from logger_service.backends.csv_format import format_rows
        rows = format_rows(np.arange(1000), np.full(1000, 0.1), [1000])[0]
        print(rows == b"".join(b"%d,0.1\\n" % step for step in range(1000)))
    """
    assert run_python(code).stdout == "True\n"
