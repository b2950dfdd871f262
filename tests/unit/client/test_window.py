"""Numbering, and what is kept until it is acknowledged."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from logger_client.delivery.receipt import Receipt
from logger_client.delivery.window import MIN_IN_FLIGHT, Entry, Window


def entry(ordinal: int, size: int = 10, receipt: Receipt | None = None) -> Entry:
    return Entry(b"x" * size, points=1, ordinal=ordinal, receipt=receipt)


def filled(count: int, max_bytes: int = 1 << 20, size: int = 10) -> Window:
    window = Window(max_bytes)
    for ordinal in range(1, count + 1):
        window.add(entry(ordinal, size))
    return window


def send_all(window: Window) -> list[int]:
    sent = []
    while (sending := window.next_to_send()) is not None:
        sent.append(sending.sequence)
    return sent


def test_batches_are_numbered_as_they_are_sent():
    window = filled(3)
    assert window.last_sequence == 0
    assert window.first_held == 1
    assert send_all(window) == [1, 2, 3]
    assert window.last_sequence == 3
    assert window.all_sent


def test_bytes_in_flight_are_bounded_beyond_the_least_number_of_batches():
    window = filled(MIN_IN_FLIGHT + 3, max_bytes=50)
    assert send_all(window) == list(range(1, MIN_IN_FLIGHT + 1))
    window.acknowledge(1, 0)
    assert send_all(window) == [MIN_IN_FLIGHT + 1]
    window = filled(20, max_bytes=150)
    assert send_all(window) == list(range(1, 16))


def test_acknowledgements_are_cumulative_and_may_repeat():
    window = filled(4)
    send_all(window)
    assert [entry.sequence for entry in window.acknowledge(2, 0)] == [1, 2]
    assert window.acknowledge(2, 2) == []
    assert window.acknowledge(1, 2) == []
    assert window.first_held == 3
    assert window.acknowledged_ordinal == 2
    assert len(window.unacknowledged()) == 2


def test_a_new_stream_sends_what_the_host_lacks_in_order_and_then_goes_on():
    window = filled(5)
    for _ in range(4):
        window.next_to_send()
    assert window.first_held == 1
    assert [entry.sequence for entry in window.resend(2)] == [1, 2]
    assert send_all(window) == [3, 4, 5]


def test_a_batch_that_is_waited_for_is_held_until_it_is_applied():
    receipt = Receipt()
    window = Window(1 << 20)
    window.add(entry(1, receipt=receipt))
    window.add(entry(2))
    send_all(window)
    window.acknowledge(2, 0)
    assert receipt.waits
    assert window.first_held == 1
    assert window.acknowledged_ordinal == 2
    # The host no longer needs it, and still must say when it is applied: so it is sent again, and only it.
    window.resend(2)
    assert send_all(window) == [1]
    window.acknowledge(2, 1)
    assert not receipt.waits
    assert window.first_held == 3


def test_a_batch_whose_waiter_gave_up_is_not_held():
    receipt = Receipt()
    window = Window(1 << 20)
    window.add(entry(1, receipt=receipt))
    send_all(window)
    assert receipt.wait(0) is None
    window.acknowledge(1, 0)
    assert window.first_held == 2


def test_a_new_writer_numbers_what_is_not_acknowledged_from_one():
    receipt = Receipt()
    window = Window(1 << 20)
    window.add(entry(1, receipt=receipt))
    for ordinal in (2, 3, 4):
        window.add(entry(ordinal))
    for _ in range(3):
        window.next_to_send()
    window.acknowledge(2, 0)
    assert [entry.ordinal for entry in window.renumber()] == [1, 2]
    assert window.first_held == 1
    assert send_all(window) == [1, 2]
    assert [entry.ordinal for entry in window.acknowledge(2, 0)] == [3, 4]


def test_clear_gives_up_what_is_in_flight_and_what_waits():
    window = filled(MIN_IN_FLIGHT + 2, max_bytes=1)
    send_all(window)
    assert len(window.clear()) == MIN_IN_FLIGHT + 2
    assert window.unacknowledged() == []
    assert window.next_to_send() is None


@given(st.lists(st.sampled_from(["add", "send", "accept", "reconnect"]), max_size=200), st.randoms())
def test_the_host_gets_every_batch_once_and_in_order(actions, random):
    """A host that accepts what follows, over connections that break at any moment."""
    window = Window(30)
    accepted: list[int] = []
    in_flight: list[Entry] = []
    added = 0
    for action in [*actions, "reconnect"]:
        if action == "add":
            added += 1
            window.add(entry(added))
        elif action == "send" and (sending := window.next_to_send()) is not None:
            in_flight.append(sending)
        elif action == "accept" and in_flight:
            arrived = in_flight.pop(0)
            if arrived.sequence == len(accepted) + 1:
                accepted.append(arrived.ordinal)
            assert arrived.sequence <= len(accepted), "a gap"
            if random.random() < 0.5:  # Else the acknowledgement is lost.
                window.acknowledge(len(accepted), 0)
        elif action == "reconnect":
            in_flight.clear()
            assert window.first_held <= len(accepted) + 1
            window.resend(len(accepted))
    while (sending := window.next_to_send()) is not None:
        assert sending.sequence == len(accepted) + 1
        accepted.append(sending.ordinal)
        window.acknowledge(len(accepted), 0)
    assert accepted == list(range(1, added + 1))
    assert window.acknowledged_ordinal == added
