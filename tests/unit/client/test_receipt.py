"""What a synchronous call waits with."""

from __future__ import annotations

import threading

from logger_client.delivery.receipt import Receipt


def test_an_outcome_without_refusals():
    receipt = Receipt()
    assert receipt.waits
    receipt.settle()
    assert not receipt.waits
    assert receipt.wait(0) == []


def test_refusals_come_with_the_outcome():
    receipt = Receipt()
    assert receipt.refuse("one")
    assert receipt.refuse("two")
    threading.Thread(target=receipt.settle).start()
    assert receipt.wait(None) == ["one", "two"]
    assert not receipt.refuse("too late")


def test_whoever_gave_up_waiting_is_told_nothing_more():
    receipt = Receipt()
    assert receipt.wait(0) is None
    assert not receipt.waits
    assert not receipt.refuse("nobody listens")
