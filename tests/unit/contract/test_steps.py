"""Steps and automatic steps."""

from __future__ import annotations

import numpy as np
import pytest

from logger_service.contract.steps import StepCounters, check_step
from logger_service.contract.wire import column_steps, row_count
from logger_service.v1 import records_pb2


def rows(names: list[str], count: int, steps: list[int] | None = None) -> records_pb2.Record:
    metrics = records_pb2.MetricRows(names=names, steps=steps or [], values=[0.0] * (count * len(names)))
    return records_pb2.Record(metrics=metrics)


def text(name: str, step: int | None = None) -> records_pb2.Record:
    return records_pb2.Record(text=records_pb2.TextRecord(name=name, text="x", step=step))


def test_rows_without_steps_get_the_number_of_rows_before_them():
    counters = StepCounters()
    batch = records_pb2.Batch(
        records=[rows(["a"], 2), rows(["a", "b"], 3), rows(["b"], 1, [100]), rows(["b"], 1), text("a"), text("a")]
    )
    counters.fill(batch)
    first, both, given, last, text_0, text_1 = batch.records
    assert list(column_steps(first.metrics, 0)) == [0, 1]
    assert list(column_steps(both.metrics, 0)) == [2, 3, 4]
    assert list(column_steps(both.metrics, 1)) == [0, 1, 2]
    assert list(column_steps(given.metrics, 0)) == [100]
    assert not given.metrics.first_steps
    assert list(column_steps(last.metrics, 0)) == [4]  # Rows with a step of their own count too.
    assert (text_0.text.step, text_1.text.step) == (0, 1)  # Every kind has its own counter.
    assert row_count(both.metrics) == 3
    assert counters.counts == {("metrics", "a"): 5, ("metrics", "b"): 5, ("text", "a"): 2}


def test_a_step_of_0_is_a_step():
    counters = StepCounters()
    counters.load({("text", "a"): 7})
    batch = records_pb2.Batch(records=[text("a", 0), text("a")])
    counters.fill(batch)
    assert [record.text.step for record in batch.records] == [0, 8]


def test_a_replayed_batch_keeps_its_steps_and_counts():
    first = StepCounters()
    batch = records_pb2.Batch(records=[rows(["a", "b"], 2), text("t"), rows(["a"], 1)])
    first.fill(batch)
    replayed = records_pb2.Batch.FromString(batch.SerializeToString())
    second = StepCounters()
    second.fill(replayed)
    assert replayed == batch
    assert second.counts == first.counts


def test_hparams_and_empty_records_are_counted_or_passed_over():
    counters = StepCounters()
    counters.fill(
        records_pb2.Batch(
            records=[records_pb2.Record(hparams=records_pb2.HparamsRecord()), records_pb2.Record(), rows([], 0)]
        )
    )
    assert counters.counts == {("hparams", ""): 1}


def test_what_changed_is_told_once():
    counters = StepCounters()
    counters.load({("metrics", "old"): 3})
    assert counters.dirty() == {}
    counters.fill(records_pb2.Batch(records=[rows(["a"], 2)]))
    assert counters.dirty() == {("metrics", "a"): 2}
    assert counters.dirty() == {}
    counters.raise_to({("metrics", "old"): 5, ("metrics", "a"): 1, ("text", "t"): 1})
    assert counters.dirty() == {("metrics", "old"): 5, ("text", "t"): 1}
    assert counters.counts[("metrics", "a")] == 2


@pytest.mark.parametrize("step", [0, -(2**63), 2**63 - 1, np.int64(5), np.uint8(5), np.array(5), True])
def test_steps(step: object):
    checked = check_step(step)
    assert type(checked) is int
    assert checked == step


@pytest.mark.parametrize("step", [1.0, "1", np.float32(1), [1], np.array([1, 2])])
def test_what_is_no_step(step: object):
    with pytest.raises(TypeError, match="step must be an integer"):
        check_step(step)


@pytest.mark.parametrize("step", [2**63, -(2**63) - 1, np.uint64(2**63)])
def test_steps_beyond_64_bits(step: object):
    with pytest.raises(ValueError, match="int64"):
        check_step(step)


def test_integer_tensors_are_steps():
    torch = pytest.importorskip("torch")
    assert check_step(torch.tensor(7)) == 7
    with pytest.raises(TypeError):
        check_step(torch.tensor(7.0))
