"""The buffer: what goes in comes out, in order per name, in few records that are as small as it says."""

from __future__ import annotations

import math
import struct
import sys
from collections.abc import Callable
from types import FrameType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logger_service.contract import buffer as buffer_module
from logger_service.contract.buffer import ROW_VALUES, RecordBuffer
from logger_service.contract.groups import RECORD_VALUES, Group
from logger_service.contract.wire import MAX_COLUMNS, batch_points, encode_records, points
from logger_service.v1 import records_pb2
from tests.unit.contract.recorded import scalars, texts

NAMES = ["a", "b", "c", "d/e"]
CALLS = st.lists(
    st.tuples(
        st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True),
        st.none() | st.integers(-(2**63), 2**63 - 1),
        st.booleans(),
    ),
    max_size=30,
)


def bits(value: float) -> bytes:
    return struct.pack("<d", value)


@settings(deadline=None)
@given(CALLS, st.sets(st.integers(0, 29), max_size=3))
def test_every_value_comes_out_once_and_in_order_per_name(
    calls: list[tuple[list[str], int | None, bool]], takes: set[int]
):
    buffer = RecordBuffer()
    records: list[records_pb2.Record] = []
    logged: dict[str, list[tuple[int | None, float]]] = {}
    value = 0.0
    for index, (names, step, single) in enumerate(calls):
        if single:
            buffer.add_scalar(names[0], value, step, index)
            names = names[:1]
        else:
            buffer.add_row(tuple(names), [value + column for column in range(len(names))], step, index)
        for name in names:
            logged.setdefault(name, []).append((step, value))
            value += 1.0
        if index in takes:
            records += encode_records(buffer.take())
    count, size = buffer.points, buffer.size_bytes
    rest = encode_records(buffer.take())
    assert batch_points(rest) == count
    assert records_pb2.Batch(records=rest).ByteSize() <= size
    assert scalars(records + rest) == logged
    assert (buffer.points, buffer.size_bytes, buffer.take()) == (0, 0, [])


def test_rows_with_the_same_names_share_a_group():
    buffer = RecordBuffer()
    for step in range(100):
        buffer.add_row(("a", "b"), [1.0, 2.0], step, step)
        buffer.add_row(tuple("ab"), [3.0, 4.0], step, step)  # An equal tuple, not the same one.
        buffer.add_scalar("c", 5.0, step, step)
    first, second = buffer.take()
    assert isinstance(first, Group)
    assert isinstance(second, Group)
    assert (first.names, len(first.times), second.names) == (("a", "b"), 200, ("c",))


def test_a_name_in_changing_company_keeps_its_order():
    buffer = RecordBuffer()
    buffer.add_row(("a", "b"), [0.0, 0.0], 0, 0)
    buffer.add_row(("b", "c"), [1.0, 1.0], 1, 1)
    buffer.add_row(("a", "b"), [2.0, 2.0], 2, 2)
    buffer.add_scalar("a", 3.0, 3, 3)
    buffer.add_row(("a",), [4.0], 4, 4)
    groups = buffer.take()
    assert [group.names for group in groups if isinstance(group, Group)] == [("a", "b"), ("b", "c"), ("a", "b"), ("a",)]
    assert [step for step, _ in scalars(encode_records(groups))["b"]] == [0, 1, 2]
    assert [step for step, _ in scalars(encode_records(groups))["a"]] == [0, 2, 3, 4]


def test_steps_given_and_automatic_are_groups_apart():
    buffer = RecordBuffer()
    for step in (1, None, None, 2):
        buffer.add_scalar("a", 0.0, step, 0)
        buffer.add_row(("b", "c"), [0.0, 0.0], step, 0)
    records = encode_records(buffer.take())
    assert [list(record.metrics.steps) for record in records if record.metrics.names[0] == "a"] == [[1], [], [2]]
    assert [step for step, _ in scalars(records)["c"]] == [1, None, None, 2]


def test_values_are_kept_to_the_bit():
    values = [math.nan, math.inf, -math.inf, -0.0, 0.0, 5e-324, 1.7976931348623157e308, 2.0**53]
    buffer = RecordBuffer()
    for value in values:
        buffer.add_scalar("a", value, None, 0)
    kept = [value for _, value in scalars(encode_records(buffer.take()))["a"]]
    assert list(map(bits, kept)) == list(map(bits, values))


def test_times_and_texts_go_with_their_call():
    buffer = RecordBuffer()
    buffer.add_row(("a",), [1.0], 7, 123, [("t", "x"), ("u", "y")])
    buffer.add_row((), [], None, 124, [("t", "z")])
    records = encode_records(buffer.take())
    assert list(records[0].metrics.time_unix_nano) == [123]
    assert texts(records) == [("t", 7, "x"), ("u", 7, "y"), ("t", None, "z")]
    assert [record.text.time_unix_nano for record in records[1:]] == [123, 123, 124]


def test_a_long_group_becomes_several_records_and_a_wide_row_several_groups():
    buffer = RecordBuffer()
    for step in range(RECORD_VALUES + 1):
        buffer.add_scalar("a", 0.0, step, step)
    assert [points(record) for record in encode_records(buffer.take())] == [RECORD_VALUES, 1]
    names = tuple(f"{'n' * 900}/{index}" for index in range(MAX_COLUMNS + 1))
    for step in range(3):
        buffer.add_row(names, [float(index) for index in range(len(names))], step, step)
    size = buffer.size_bytes
    records = encode_records(buffer.take())
    assert records_pb2.Batch(records=records).ByteSize() <= size
    assert all(record.ByteSize() < 1 << 20 and len(record.metrics.names) <= ROW_VALUES for record in records)
    assert scalars(records)[names[-1]] == [(step, float(len(names) - 1)) for step in range(3)]
    assert len(scalars(records)) == len(names)


@pytest.mark.parametrize(
    ("names", "texts_", "error"),
    [
        (("a", "b/"), [], ValueError),
        (("a", "a"), [], ValueError),
        (("a", 3), [], TypeError),
        (("a",), [("t", "x"), ("t/", "y")], ValueError),
        (("a",), [("t", "\ud800")], ValueError),
        ((*(f"n{index}" for index in range(ROW_VALUES + 5)), "n0"), [], ValueError),
    ],
)
def test_a_row_that_is_refused_leaves_nothing(names: tuple[str, ...], texts_: list[tuple[str, str]], error: type):
    buffer = RecordBuffer()
    buffer.add_row(("b", "a"), [1.0, 2.0], 0, 0)
    before = buffer.size_bytes
    with pytest.raises(error):
        buffer.add_row(names, [0.0] * len(names), 0, 0, texts_)
    buffer.add_row(("b", "a"), [3.0, 4.0], 1, 1)
    assert buffer.size_bytes - before < before
    records = encode_records(buffer.take())
    assert scalars(records) == {"b": [(0, 1.0), (1, 3.0)], "a": [(0, 2.0), (1, 4.0)]}
    assert not texts(records)


def test_a_row_must_fit_its_names():
    buffer = RecordBuffer()
    names = ("a", "b")
    for points_before in (0, 2):
        with pytest.raises(ValueError, match="2 names with 1 values"):
            buffer.add_row(names, [1.0], 0, 0)
        assert buffer.points == points_before
        buffer.add_row(names, [1.0, 2.0], 0, 0)


@pytest.mark.parametrize("name", ["", "a/", "../a", 3])
def test_a_scalar_without_a_name_is_refused(name: str):
    buffer = RecordBuffer()
    with pytest.raises((TypeError, ValueError)):
        buffer.add_scalar(name, 1.0, None, 0)
    assert buffer.take() == []


@pytest.mark.parametrize("step", [None, 1])
@pytest.mark.parametrize("kind", ["scalar", "row", "another row"])
def test_an_interrupt_at_any_line_of_a_call_leaves_what_was_added_before_and_later_whole(kind: str, step: int | None):
    """As Ctrl-C, which may come at any of them."""

    def add(buffer: RecordBuffer, value: float, names: tuple[str, ...] = ("a", "b")) -> None:
        if kind == "scalar":
            buffer.add_scalar("a", value, step, 0)
        else:
            buffer.add_row(names, [value, -value], step, 0)

    interrupted_names = ("b", "c") if kind == "another row" else ("a", "b")
    at = 0
    was_interrupted = True
    while was_interrupted:
        buffer = RecordBuffer()
        add(buffer, 1.0)
        at += 1
        was_interrupted = interrupt_at_line(at, lambda buffer=buffer: add(buffer, 2.0, interrupted_names))
        add(buffer, 3.0)
        found = scalars(encode_records(buffer.take()))
        whole = {name: [value for _, value in points] for name, points in found.items()}
        for name, sign in (("a", 1.0),) if kind == "scalar" else (("a", 1.0), ("b", -1.0)):
            assert [value for value in whole[name] if abs(value) != 2.0] == [sign, 3 * sign]
            assert len(whole[name]) <= 3
            assert all(given == step for given, _ in found[name])
    assert at > 5


def interrupt_at_line(number: int, call: Callable[[], None]) -> bool:
    """Calls, and interrupts the call at the so manieth line of the buffer; returns whether there is such a line."""
    left = number

    def trace(frame: FrameType, event: str, _: object) -> object:
        nonlocal left
        if frame.f_code.co_filename != buffer_module.__file__ or frame.f_code.co_name == "_mend":
            return None
        if event == "line":
            left -= 1
            if left == 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False
