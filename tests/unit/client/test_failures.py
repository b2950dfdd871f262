"""What did not arrive: logged at once, raised once."""

from __future__ import annotations

import logging

from logger_client.delivery.failures import Failures
from logger_service.contract.errors import Reason
from logger_service.v1 import records_pb2


def rejections(backend: str = "") -> records_pb2.BatchRejections:
    rejection = records_pb2.Rejection(
        record=0, reason=Reason.INVALID_NAME.value, message="name '../x' has a segment '..'", points=3
    )
    unknown = records_pb2.Rejection(record=1, reason=999, message="of a newer server", points=1)
    return records_pb2.BatchRejections(sequence=4, rejections=[rejection, unknown], backend=backend)


def test_it_is_told_once(caplog):
    failures = Failures("default/run")
    assert failures.take() == ""
    failures.add_rejections(rejections())
    failures.add_rejections(rejections())
    text = failures.take()
    assert "6 points: refused by the server (INVALID_NAME): name '../x' has a segment '..'" in text
    assert "2 points: refused by the server (UNKNOWN): of a newer server" in text
    assert failures.take() == ""


def test_it_is_logged_at_once_but_not_again_and_again(caplog):
    failures = Failures("default/run")
    with caplog.at_level(logging.ERROR, "logger_client"):
        for _ in range(100):
            failures.add_rejections(rejections(backend="csv"))
    assert len(caplog.records) == 2
    assert "default/run" in caplog.text
    assert "the csv backend" in caplog.text


def test_any_number_of_reasons_takes_little_room(caplog):
    failures = Failures("default/run")
    for number in range(10_000):
        failures.add(f"reason {number}", 2)
    assert len(caplog.records) <= 20
    text = failures.take()
    assert "reason 0" in text
    assert "19,980 points: other reasons" in text


def test_a_lost_journal_is_told_with_its_range():
    failures = Failures("default/run")
    failures.add_lost("ab" * 16, 3, 17)
    text = failures.take()
    assert "batches 3 to 17" in text
    assert "ab" * 16 in text
    assert failures.take() == ""
