"""The buffer between the threads that log and the one that sends."""

from __future__ import annotations

import logging
import signal
import threading
import time
from operator import methodcaller

import pytest

from logger_client.delivery import recorder as recorder_module
from logger_client.delivery.receipt import Receipt
from logger_client.delivery.recorder import SEAL_BYTES, Recorder, Sealed
from logger_service.contract.errors import LoggerClosedError
from logger_service.contract.wire import encode_records, text_record


def make(max_buffer_bytes: int = 64 << 20, on_full: str = "wait", max_record_bytes: int = 8 << 20) -> Recorder:
    return Recorder(
        "default/run", max_record_bytes=max_record_bytes, max_buffer_bytes=max_buffer_bytes, on_full=on_full
    )


def values(sealed: list[Sealed]) -> list[float]:
    return [value for part in sealed for record in encode_records(part.content) for value in record.metrics.values]


def fill(recorder: Recorder) -> int:
    """Logs until the recorder is full; returns how many points that took."""
    points = 0
    while not recorder._full:
        recorder.add_scalar("x", points, points)
        points += 1
    return points


def test_little_is_taken_after_a_while_and_much_at_once():
    recorder = make()
    recorder.add_scalar("x", 1.0, 0)
    recorder.add_row(("x", "y"), [2.0, 3.0], 1)
    [sealed] = recorder.take()
    assert (sealed.ordinal, sealed.points, sealed.dropped) == (1, 3, 0)
    assert values([sealed]) == [1.0, 2.0, 3.0]
    for number in range(30_000):
        recorder.add_scalar("x", number, number)
    taken = recorder.take()
    assert len(taken) >= 2
    assert all(part.size_bytes >= SEAL_BYTES for part in taken)
    assert values(taken + recorder.take()) == list(range(30_000))


def test_flushing_seals_at_once():
    recorder = make()
    assert recorder.seal() == 0
    recorder.add_scalar("x", 1.0, None)
    assert recorder.seal() == 1
    assert recorder.seal() == 1
    assert len(recorder.take()) == 1


def test_a_sleeping_sender_is_woken():
    recorder = make()
    taken: list[Sealed] = []
    sender = threading.Thread(target=lambda: taken.extend(recorder.take()))
    sender.start()
    recorder.add_scalar("x", 1.0, 0)
    sender.join()
    assert values(taken) == [1.0]


def test_the_first_call_starts_the_sender_or_says_why_not():
    recorder = make()
    starts = []

    def refuse() -> None:
        raise RuntimeError("no sender here")

    recorder.on_first = refuse
    with pytest.raises(RuntimeError, match="no sender here"):
        recorder.add_scalar("x", 1.0, 0)
    recorder.on_first = lambda: starts.append(1)
    for step in range(3):
        recorder.add_scalar("x", 2.0, step)
    assert starts == [1]
    assert values(recorder.take()) == [2.0] * 3


def test_a_refused_name_logs_nothing():
    recorder = make()
    with pytest.raises(ValueError, match="segment"):
        recorder.add_row(("fine", "a//b"), [1.0, 2.0], 0)
    assert recorder.seal() == 0


def test_a_record_that_the_server_would_refuse_is_refused_here():
    recorder = make(max_record_bytes=1000)
    with pytest.raises(ValueError, match=r"the text 't' has .* the server allows at most 1,000"):
        recorder.add_record(text_record("t", "x" * 1000, 0, 1))
    with pytest.raises(ValueError, match="allows at most 1,000"):
        recorder.add_row(("x",), [1.0], 0, [("t", "é" * 500)])
    assert recorder.seal() == 0
    recorder.add_record(text_record("t", "x" * 900, 0, 1))
    assert recorder.take()[0].points == 1


def test_waiting_for_room_ends_when_something_is_acknowledged():
    recorder = make(max_buffer_bytes=1 << 16)
    points = fill(recorder)
    released = threading.Event()
    returned_after_release: list[bool] = []

    def log() -> None:
        recorder.add_scalar("x", -1.0, 0)
        returned_after_release.append(released.is_set())

    blocked = threading.Thread(target=log)
    blocked.start()
    taken = recorder.take()
    released.set()
    recorder.release(sum(part.size_bytes for part in taken))
    blocked.join()
    assert returned_after_release == [True]
    assert values(taken + recorder.take()) == [*range(points), -1.0]


def test_waiting_for_room_can_be_interrupted_and_warns(monkeypatch, caplog):
    monkeypatch.setattr(recorder_module, "WARN_EVERY_S", 0.01)
    recorder = make(max_buffer_bytes=1 << 16)
    points = fill(recorder)

    class Impatient(Exception):
        pass

    def give_up(number, frame):
        if "logging waits for room" in caplog.text:
            raise Impatient

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    try:
        with pytest.raises(Impatient):
            recorder.add_scalar("x", -1.0, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert values(recorder.take()) == list(range(points)), "the interrupted call logged nothing"


def test_dropping_loses_the_newest_and_counts_them(caplog):
    recorder = make(max_buffer_bytes=1 << 16, on_full="drop")
    points = fill(recorder)
    with caplog.at_level(logging.WARNING, "logger_client"):
        for _ in range(100):
            recorder.add_scalar("x", -1.0, 0)
        recorder.add_row(("a", "b"), [1.0, 2.0], 0, [("t", "text")])
    assert len(caplog.records) == 1
    taken = recorder.take()
    assert values(taken) == list(range(points))
    recorder.release(sum(part.size_bytes for part in taken))
    recorder.add_scalar("x", 5.0, 0)
    [sealed] = recorder.take()
    assert values([sealed]) == [5.0]
    assert sealed.dropped == 103


def test_a_count_of_dropped_points_goes_out_by_itself_only_on_a_flush():
    recorder = make(max_buffer_bytes=1 << 16, on_full="drop")
    fill(recorder)
    recorder.take()
    recorder.add_scalar("x", -1.0, 0)
    last = recorder.seal()
    [sealed] = recorder.take()
    assert (sealed.ordinal, sealed.points, sealed.dropped) == (last, 0, 1)


def test_dropping_a_large_record_does_not_drop_small_ones():
    recorder = make(max_buffer_bytes=1 << 16, on_full="drop")
    recorder.add_scalar("x", 1.0, 0)
    recorder.add_record(text_record("t", "x" * (1 << 16), 0, 1))
    recorder.add_scalar("x", 2.0, 1)
    [sealed] = recorder.take()
    assert values([sealed]) == [1.0, 2.0]
    assert sealed.dropped == 1


def test_a_record_larger_than_the_buffer_goes_alone():
    recorder = make(max_buffer_bytes=1 << 16)
    recorder.add_record(text_record("t", "x" * (1 << 17), 0, 1))
    assert recorder.take()[0].points == 1


def test_encoding_makes_what_is_held_smaller():
    recorder = make(max_buffer_bytes=1 << 16)
    fill(recorder)
    taken = recorder.take()
    recorder.release(sum(part.size_bytes for part in taken) // 2)
    recorder.add_scalar("x", 1.0, 0)
    assert recorder.take()[0].points == 1


def test_closing_refuses_what_comes_and_keeps_what_came():
    recorder = make()
    recorder.add_scalar("x", 1.0, 0)
    recorder.close()
    for call in (
        lambda: recorder.add_scalar("x", 2.0, 1),
        lambda: recorder.add_row(("x",), [2.0], 1),
        lambda: recorder.add_record(text_record("t", "text", 1, 1)),
    ):
        with pytest.raises(LoggerClosedError):
            call()
    assert values(recorder.take()) == [1.0]
    assert recorder.take() is None


def test_closing_lets_those_go_that_wait_for_room():
    recorder = make(max_buffer_bytes=1 << 16)
    fill(recorder)
    raised: list[BaseException] = []

    def log() -> None:
        try:
            recorder.add_scalar("x", -1.0, 0)
        except LoggerClosedError as error:
            raised.append(error)

    blocked = threading.Thread(target=log)
    blocked.start()
    recorder.close()
    blocked.join()
    assert len(raised) == 1


def test_after_a_failure_everything_is_counted_as_undelivered():
    recorder = make()
    recorder.add_row(("x", "y"), [1.0, 2.0], 0)
    recorder.fail("why")
    recorder.add_scalar("x", 3.0, 1)
    assert recorder.take() is None
    assert recorder.take_undelivered() == 3
    assert recorder.take_undelivered() == 0
    recorder.close()
    with pytest.raises(LoggerClosedError):
        recorder.add_scalar("x", 4.0, 2)


def add_at_once(recorder: Recorder, fill=methodcaller("add_scalar", "x", 1.0, 0, 1), timeout_s: float = 1) -> Receipt:
    receipt = Receipt()
    assert recorder.add_at_once(fill, receipt, points=1, size_bytes=0, timeout_s=timeout_s)
    return receipt


def test_one_call_at_once():
    """It is taken without lingering, with the receipt of the call, after what came before it."""
    recorder = make()
    recorder.add_scalar("before", 0.0, 0)
    [before] = recorder.take()
    receipt = add_at_once(recorder)
    [sealed] = recorder.take()
    assert values([sealed]) == [1.0]
    assert sealed.receipt is receipt
    assert receipt.waits
    assert sealed.ordinal == before.ordinal + 1
    assert recorder.seal() == sealed.ordinal
    recorder.release(before.size_bytes + sealed.size_bytes)
    assert recorder._held_bytes == 0


def test_one_call_at_once_that_logs_nothing_is_settled():
    receipt = add_at_once(make(), fill=lambda buffer: None)
    assert receipt.wait(None) == []


def test_one_call_at_once_without_room_in_time_logs_nothing():
    recorder = make(max_buffer_bytes=1 << 16)
    fill(recorder)
    with pytest.raises(TimeoutError, match="nothing was logged"):
        add_at_once(recorder, timeout_s=0.01)


def test_a_failure_is_told_to_those_who_wait_and_counted_for_the_others():
    recorder = make()
    receipts = [add_at_once(recorder) for _ in range(3)]
    taken = recorder.take()
    receipts[1].abandon()
    recorder.put_back(taken[1:])
    recorder.fail("why")
    assert receipts[0].waits
    assert recorder.take_undelivered() == 1
    assert receipts[2].wait(None) == ["why"]


def test_many_threads_lose_and_double_nothing():
    recorder = make(max_buffer_bytes=1 << 17)
    taken: list[Sealed] = []

    def send() -> None:
        while (parts := recorder.take()) is not None:
            taken.extend(parts)
            recorder.release(sum(part.size_bytes for part in parts))

    def log(thread: int) -> None:
        for number in range(5000):
            recorder.add_scalar(f"t{thread}", number, number)

    sender = threading.Thread(target=send)
    sender.start()
    threads = [threading.Thread(target=log, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorder.close()
    sender.join()
    found: dict[str, list[float]] = {}
    for part in taken:
        for record in encode_records(part.content):
            found.setdefault(record.metrics.names[0], []).extend(record.metrics.values)
    assert found == {f"t{number}": list(range(5000)) for number in range(4)}
    assert [part.ordinal for part in taken] == list(range(1, len(taken) + 1))


def test_the_time_is_taken_at_the_call():
    recorder = make()
    before = time.time_ns()
    recorder.add_scalar("x", 1.0, 0)
    after = time.time_ns()
    [record] = encode_records(recorder.take()[0].content)
    assert before <= record.metrics.time_unix_nano[0] <= after
