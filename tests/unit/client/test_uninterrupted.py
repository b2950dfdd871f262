"""Work that is done by a helper while the main thread waits."""

from __future__ import annotations

import signal
import threading

import pytest

from logger_client import uninterrupted as module
from logger_client.uninterrupted import in_background, uninterrupted

DEADLINE_S = 60.0


@pytest.fixture(autouse=True)
def _no_helpers(monkeypatch):
    """Begins without helpers of other tests."""
    monkeypatch.setattr(module, "_idle", [])


def test_the_main_thread_gets_results_and_errors_of_a_helper():
    assert uninterrupted(threading.get_ident) != threading.get_ident()
    with pytest.raises(ZeroDivisionError):
        uninterrupted(lambda: 1 // 0)


def test_one_helper_does_what_comes_one_after_the_other():
    assert len({uninterrupted(threading.get_ident) for _ in range(100)}) == 1
    assert len(module._idle) == 1


def test_other_threads_do_it_themselves():
    idents: list[int] = []
    thread = threading.Thread(target=lambda: idents.extend([uninterrupted(threading.get_ident), threading.get_ident()]))
    thread.start()
    thread.join()
    assert idents[0] == idents[1]


def test_ctrl_c_ends_the_waiting_and_not_the_work():
    finished = threading.Event()
    go_on = threading.Event()

    def work() -> None:
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        assert go_on.wait(DEADLINE_S)
        finished.set()

    with pytest.raises(KeyboardInterrupt):
        uninterrupted(work)
    go_on.set()
    assert finished.wait(DEADLINE_S)


def test_without_a_thread_it_is_done_here(monkeypatch):
    def refuse(*arguments):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(module._thread, "start_new_thread", refuse)
    done: list[int] = []
    assert uninterrupted(threading.get_ident) == threading.get_ident()
    in_background(lambda: done.append(threading.get_ident()))
    assert done == [threading.get_ident()]


def test_nobody_waits_for_what_is_done_in_the_background():
    may, has = threading.Event(), threading.Event()
    in_background(lambda: has.set() if may.wait(DEADLINE_S) else None)
    assert not has.is_set()
    may.set()
    assert has.wait(DEADLINE_S)


def test_an_idle_helper_ends(monkeypatch):
    monkeypatch.setattr(module, "_IDLE_S", 0.001)
    ended = threading.Event()
    serve = module._Helper.serve

    def watched(helper) -> None:
        serve(helper)
        ended.set()

    monkeypatch.setattr(module._Helper, "serve", watched)
    assert uninterrupted(lambda: 1) == 1
    assert ended.wait(DEADLINE_S)
    assert module._idle == []
    assert uninterrupted(lambda: 2) == 2


def test_a_forked_child_has_helpers_of_its_own(run_python):
    run_python("""
import os
from logger_client import uninterrupted as module
assert module.uninterrupted(lambda: 1) == 1
assert module._idle
pid = os.fork()
if not pid:
    os._exit(module.uninterrupted(lambda: 7))
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
""")
