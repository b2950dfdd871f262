"""`log_str` and `log_hparams`."""

from __future__ import annotations

import argparse
import dataclasses
import enum
from pathlib import PurePosixPath

import numpy as np
import pytest


def test_texts_are_kept_in_order(logger, read):
    texts = ["first", "", 'quotes " and \\', "two\nlines\r\n", "ünïcode ✓ \U0001f600", "tab\tnull-free"]
    for step, text in enumerate(texts):
        logger.log_str("notes/today", text, step)
    assert read().texts == {"notes/today": list(enumerate(texts))}


def test_texts_have_their_own_automatic_steps(logger, read):
    logger.log_scalar("name", 1.0)
    logger.log_str("name", "zero")
    logger.log_str("name", "one")
    logger.log_str("name", "ten", 10)
    logger.log_str("name", "three")
    files = read()
    assert files.texts == {"name": [(0, "zero"), (1, "one"), (10, "ten"), (3, "three")]}
    assert files.scalars == {"name": [(0, 1.0)]}


@pytest.mark.parametrize("text", [3, None, b"text", ["text"], 1.0], ids=repr)
def test_text_that_is_no_str_is_refused(logger, read, text):
    with pytest.raises(TypeError, match="notes"):
        logger.log_str("notes", text)
    assert read().texts == {}


def test_text_with_a_surrogate_is_refused(logger, read):
    with pytest.raises(ValueError, match=r"'notes'.*surrogate"):
        logger.log_str("notes", "half \ud83d")
    with pytest.raises(ValueError, match=r"'notes'.*surrogate"):
        logger.log_metrics({"loss": 1.0, "notes": "half \ud83d"})
    logger.log_str("notes", "whole \U0001f600")
    files = read()
    assert files.texts == {"notes": [(0, "whole \U0001f600")]}
    assert files.scalars == {}


class Mode(str, enum.Enum):
    FAST = "fast"


@pytest.mark.parametrize("text", [Mode.FAST, np.str_("fast")], ids=repr)
def test_texts_of_other_classes_are_texts(logger, read, text):
    logger.log_str("notes", text, 0)
    logger.log_metrics({"notes": text}, 1)
    assert read().texts == {"notes": [(0, "fast"), (1, "fast")]}


@dataclasses.dataclass
class Settings:
    rate: float
    layers: tuple[int, ...]


def test_hparams_keep_their_types(logger, read):
    logger.log_hparams(
        {
            "integer": 3,
            "large": 2**62 + 1,
            "float": 3.0,
            "flag": True,
            "nothing": None,
            "text": "3",
            "list": [1, 2.5, "x", None, [True]],
            "nested": {"a": {"b": 1}},
            "numpy": np.int32(4),
            "path": PurePosixPath("/data/set"),
        }
    )
    (hparams,) = read().hparams
    assert hparams == {
        "integer": 3,
        "large": 2**62 + 1,
        "float": 3.0,
        "flag": True,
        "nothing": None,
        "text": "3",
        "list": [1, 2.5, "x", None, [True]],
        "nested": {"a": {"b": 1}},
        "numpy": 4,
        "path": "/data/set",
    }
    assert [type(hparams[name]) for name in ("integer", "float", "flag", "text")] == [int, float, bool, str]


@pytest.mark.parametrize(
    "config",
    [Settings(0.5, (1, 2)), argparse.Namespace(rate=0.5, layers=[1, 2]), {"rate": 0.5, "layers": (1, 2)}],
    ids=lambda config: type(config).__name__,
)
def test_hparams_of_other_kinds(logger, read, config):
    logger.log_hparams(config)
    assert read().hparams == [{"rate": 0.5, "layers": [1, 2]}]


def test_each_hparams_call_stands_for_itself(logger, read):
    logger.log_hparams({"a": 1})
    logger.log_hparams({"b": 2})
    files = read()
    assert files.hparams == [{"a": 1}, {"b": 2}]
    assert files.hparams_texts == 2


def test_hparams_that_cannot_be_kept_are_refused_by_key(logger, read):
    with pytest.raises(TypeError, match="inner"):
        logger.log_hparams({"fine": 1, "outer": {"inner": object()}})
    assert read().hparams == []
