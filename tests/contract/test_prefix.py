"""`with_prefix`: views that put a prefix before every name."""

from __future__ import annotations

import pytest
from tensordict import TensorDict


def test_prefix_goes_before_every_name(logger, read):
    view = logger.with_prefix("eval")
    view.log_scalar("loss", 1.0, 0)
    view.log_str("notes", "text", 0)
    assert view.log_metrics({"a": 2.0, "b": {"c": 3.0}}, 0) == {"eval/a": 2.0, "eval/b/c": 3.0}
    assert view.log_metrics(TensorDict({"d": TensorDict({"e": 4.0})}), 0) == {"eval/d/e": 4.0}
    files = read()
    assert files.scalars == {
        "eval/loss": [(0, 1.0)],
        "eval/a": [(0, 2.0)],
        "eval/b/c": [(0, 3.0)],
        "eval/d/e": [(0, 4.0)],
    }
    assert files.texts == {"eval/notes": [(0, "text")]}


def test_hparams_are_untouched(logger, read):
    logger.with_prefix("eval").log_hparams({"rate": 0.5})
    assert read().hparams == [{"rate": 0.5}]


def test_slashes_are_stripped_and_prefixes_composed(logger, read):
    view = logger.with_prefix("/a/").with_prefix("b//")
    assert view.prefix == "a/b"
    view.log_scalar("/loss", 1.0, 0)
    assert read().scalars == {"a/b/loss": [(0, 1.0)]}


def test_empty_prefix_is_the_logger_itself(logger):
    assert logger.with_prefix("") is logger
    view = logger.with_prefix("a")
    assert view.with_prefix("") is view


@pytest.mark.parametrize(
    ("prefix", "error"), [("/", ValueError), ("//", ValueError), (3, TypeError), (None, TypeError)]
)
def test_bad_prefix_is_refused(logger, prefix, error):
    with pytest.raises(error):
        logger.with_prefix(prefix)


def test_the_rest_stays_with_the_logger(logger, exp_name):
    view = logger.with_prefix("eval")
    assert view.exp_name == exp_name
    assert view.log_dir == logger.log_dir
    assert view.service_backend == logger.service_backend
    assert view.is_alive
    assert repr(logger) in repr(view)
    assert "eval" in repr(view)


def test_client_and_start_keep_the_view(logger, read):
    view = logger.with_prefix("eval")
    assert view.start().prefix == "eval"
    worker = view.client()
    assert worker.prefix == "eval"
    worker.log_scalar("loss", 1.0, 0)
    worker.flush()
    assert read().scalars == {"eval/loss": [(0, 1.0)]}
