"""Where a relay looks for modules."""

from __future__ import annotations

import os

from logger_client.transports.relay.launch import search_path

LIBRARY = os.path.dirname(os.__file__)
DYNLOAD = os.path.join(LIBRARY, "lib-dynload")


def test_it_is_the_path_of_this_process_with_the_standard_library_first():
    path = ["/inserted", "/script", LIBRARY, DYNLOAD, "/site", "/home"]
    assert search_path(path, "/home") == [LIBRARY, DYNLOAD, "/inserted", "/script", "/site", "/home"]


def test_instead_of_the_working_directory_comes_what_was_found_through_it():
    assert search_path(["", LIBRARY, "/site"], "/home") == [LIBRARY, "/home", "/site"]
    assert search_path(["", LIBRARY, "/site"], "/site") == [LIBRARY, "/site"]


def test_what_was_found_by_other_means_comes_last():
    assert search_path([LIBRARY, "/site"], "/home") == [LIBRARY, "/site", "/home"]


def test_entries_are_made_absolute_and_what_is_none_is_left_out():
    assert search_path([LIBRARY, "relative", b"bytes", None], "/home") == [
        LIBRARY,
        os.path.abspath("relative"),
        "/home",
    ]
