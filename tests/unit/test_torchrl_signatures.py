"""The API is TorchRL's: every difference from it stands in one table of the README, and nothing else does."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
import torch
import torchrl.record.loggers as torchrl_loggers
from tensordict import TensorDict
from torchrl.record.loggers import _service as torchrl_service
from torchrl.record.loggers import common as torchrl_common

import logger_client
import logger_service.backends
from logger_client import GrpcLogger
from logger_service.backends import CSVLogger
from logger_service.contract.dispatch import DIRECT, SERVICE_BACKENDS
from logger_service.contract.logger import Logger
from logger_service.contract.prefix import PrefixLogger
from tests.support.served_host import ServedHost
from tests.support.signatures import NO, YES, Difference, compared, constructor, differences

README = Path(__file__).parents[2] / "README.md"
HEADING = "## Differences from TorchRL\n"
VIDEO = torch.zeros(1, 2, 3, 8, 8, dtype=torch.uint8)
IMAGE = torch.zeros(3, 8, 8, dtype=torch.uint8)

# Calls that do something else here: each is made on a new CSVLogger of either side.
CALLS: dict[str, Callable[[Any], object]] = {
    "log_metrics({'a': [1.0, 2.0]})": lambda logger: logger.log_metrics({"a": [1.0, 2.0]}),
    "log_metrics({'a': {'b': 1.0}})": lambda logger: logger.log_metrics({"a": {"b": 1.0}}),
    "log_metrics({'a': 'text', 'b': None})": lambda logger: logger.log_metrics({"a": "text", "b": None}),
    "log_metrics({'a': 1.0, 'b': object()})": lambda logger: logger.log_metrics({"a": 1.0, "b": object()}),
    "log_scalar('a', '0.5')": lambda logger: logger.log_scalar("a", "0.5"),
    "log_scalar('a', 1.0, step=2.5)": lambda logger: logger.log_scalar("a", 1.0, step=2.5),
    "log_scalar('../a', 1.0)": lambda logger: logger.log_scalar("../a", 1.0),
    "log_scalar('a/', 1.0)": lambda logger: logger.log_scalar("a/", 1.0),
    "log_scalar('a', complex64(1))": lambda logger: logger.log_scalar("a", np.complex64(1)),
    "experiment.add_text('a', 'text')": lambda logger: logger.experiment.add_text("a", "text"),
    "log_hparams({'a': 1})": lambda logger: logger.log_hparams({"a": 1}),
    "log_hparams({'a': len})": lambda logger: logger.log_hparams({"a": len}),
    "log_video('a', video)": lambda logger: logger.log_video("a", VIDEO),
    "log_histogram('a', values)": lambda logger: logger.log_histogram("a", [1.0, 2.0]),
    "log_image('a', image)": lambda logger: logger.log_image("a", IMAGE),
    "shutdown(); log_scalar('a', 1.0)": lambda logger: (logger.shutdown(), logger.log_scalar("a", 1.0)),
}


def table() -> dict[str, Difference]:
    """The README's rows by what they are about; every row says why."""
    _, _, section = README.read_text("utf-8").partition(HEADING)
    rows: dict[str, Difference] = {}
    for line in section.partition("\n## ")[0].splitlines():
        if line.startswith("| `"):
            what, there, here, why = (cell.strip() for cell in line.strip("|").split(" | "))
            assert why
            for name in re.findall("`([^`]+)`", what):
                assert name not in rows
                rows[name] = (there, here)
    return rows


def found(tmp_path: Path) -> dict[str, Difference]:
    """What differs."""
    rows = dict(members(tmp_path))
    rows.update(values(tmp_path))
    for call, make in CALLS.items():
        there, here = (
            outcome(cls("run", str(tmp_path / call.replace("/", "-") / side)), make)
            for side, cls in (("there", torchrl_loggers.CSVLogger), ("here", CSVLogger))
        )
        if there != here:
            rows[call] = (there, here)
    return rows


def members(tmp_path: Path) -> Iterator[tuple[str, Difference]]:
    """What differs in names and signatures."""
    for name in sorted(torchrl_loggers.__all__):
        if not any(hasattr(place, name) for place in (logger_service.backends, logger_client)) and name != "Logger":
            yield name, (YES, NO)
    theirs, ours = torchrl_loggers.CSVLogger("run", str(tmp_path / "there")), CSVLogger("run", str(tmp_path / "here"))
    loggers = dict(differences("Logger", torchrl_loggers.Logger, Logger))
    yield from loggers.items()
    for name, difference in differences("CSVLogger", theirs, ours):
        if loggers.get(name.replace("CSVLogger", "Logger")) != difference:
            yield name, difference
    yield from differences("CSVLogger.experiment", theirs.experiment, ours.experiment)
    with ServedHost(tmp_path / "served") as host, GrpcLogger("run", host.address) as logger:
        yield from differences("client()", torchrl_service._LoggerClient, logger.client())
    pairs = {
        "Logger": (constructor(torchrl_loggers.Logger), constructor(Logger)),
        "CSVLogger": (constructor(torchrl_loggers.CSVLogger), constructor(CSVLogger)),
        "get_logger": (inspect.signature(torchrl_loggers.get_logger), inspect.signature(logger_client.get_logger)),
        "generate_exp_name": (
            inspect.signature(torchrl_loggers.generate_exp_name),
            inspect.signature(logger_client.generate_exp_name),
        ),
    }
    for name, sides in pairs.items():
        difference = compared(*sides)
        if difference:
            yield name, difference
    prefix = getattr(torchrl_common, "PrefixLogger", None)
    if prefix is None:
        yield "PrefixLogger", (NO, YES)
    else:
        yield from differences("PrefixLogger", prefix, PrefixLogger)


def values(tmp_path: Path) -> Iterator[tuple[str, Difference]]:
    """Which values of arguments only one side takes."""
    hints = get_type_hints(torchrl_loggers.get_logger, vars(torchrl_loggers.utils))
    types = {text for literal in get_args(hints["logger_type"]) for text in get_args(literal)}
    for logger_type in sorted(types):
        if refused(lambda logger_type=logger_type: logger_client.get_logger(logger_type, str(tmp_path), "run")):
            yield f"get_logger({logger_type!r})", (YES, NO)
    arguments = {"state_dict": {}, "use_ray_service": True, "ray_actor_options": {}}
    for name, value in arguments.items():
        if refused(
            lambda name=name, value=value: logger_client.get_logger("csv", str(tmp_path), "run", **{name: value})
        ):
            yield f"get_logger({name}=…)", (YES, NO)
    theirs, ours = set(get_args(hints["service_backend"])), {DIRECT, *SERVICE_BACKENDS}
    for service_backend in sorted(theirs ^ ours):
        name = f"service_backend={service_backend!r}"
        yield name, (YES if service_backend in theirs else NO, YES if service_backend in ours else NO)


def refused(call: Callable[[], object]) -> bool:
    try:
        call()
    except NotImplementedError:
        return True
    return False


def outcome(logger: Any, call: Callable[[Any], object]) -> str:
    """The error of a call and the files that it wrote, without what is for this project's own use."""
    said = []
    try:
        call(logger)
    except Exception as error:
        said.append(type(error).__name__)
    if logger.is_alive:
        logger.flush()
    directory = Path(logger.log_dir) / "run"
    files = (path.relative_to(directory) for path in sorted(directory.rglob("*")) if path.is_file())
    said.extend(str(file) for file in files if not file.name.startswith(".") and file.name != "run.json")
    return ", ".join(f"`{part}`" for part in said) or "nothing"


def test_every_difference_stands_in_the_readme(tmp_path):
    in_readme, in_code = table(), found(tmp_path)
    missing = "\n".join(
        f"| `{name}` | {there} | {here} | |"
        for name, (there, here) in in_code.items()
        if in_readme.get(name) != (there, here)
    )
    gone = [name for name in in_readme if name not in in_code]
    assert not missing, f"rows that are missing or say something else:\n{missing}"
    assert not gone, f"rows that are no difference: {gone}"


@pytest.mark.parametrize(
    "metrics",
    [
        {"a": 1, "b": 0.5, "c": True, "d": np.float32(0.25)},
        {"a": torch.tensor(3), "b": torch.tensor([0.5], requires_grad=True)},
        TensorDict({"a": torch.tensor(1.0), "n": TensorDict({"b": torch.tensor([2])})}),
    ],
    ids=["numbers", "tensors", "tensordict"],
)
def test_calls_return_the_same(tmp_path, metrics):
    returned = []
    for side, cls in (("there", torchrl_loggers.CSVLogger), ("here", CSVLogger)):
        logger = cls("run", log_dir=str(tmp_path / side))
        values = [
            logger.log_metrics(metrics, step=3),
            logger.log_metrics(metrics, keys_sep="."),
            logger.log_scalar("x", 0.5),
            logger.log_hparams({"a": 1}),
            logger.start() is logger,
            logger.client() is logger,
            logger.is_alive,
            logger.service_backend,
            logger.flush(timeout=1.0),
            logger.exp_name,
            str(Path(logger.log_dir).relative_to(tmp_path / side)),
            repr(logger).replace(side, ""),
            logger.experiment.log_dir.replace(side, ""),
            logger.shutdown(timeout=1.0),
            logger.shutdown(),
            logger.close(),
            logger.is_alive,
        ]
        with pytest.raises(RuntimeError):
            logger.start()
        returned.append(values)
    assert returned[0] == returned[1]


def test_get_logger_returns_the_same(tmp_path):
    for get_logger in (torchrl_loggers.get_logger, logger_client.get_logger):
        assert get_logger("", "directory", "run") is None
        assert get_logger(None, "directory", "run") is None
        logger = get_logger("csv", str(tmp_path / get_logger.__module__), "run", wandb_kwargs={"a": 1})
        assert type(logger).__name__ == "CSVLogger"
        assert (logger.exp_name, logger.log_dir) == ("run", str(tmp_path / get_logger.__module__))
        logger.shutdown()
        with pytest.raises(NotImplementedError):
            get_logger("unknown", str(tmp_path), "run")


def test_names_of_runs_look_the_same():
    for generate in (torchrl_loggers.generate_exp_name, logger_client.generate_exp_name):
        assert re.fullmatch(r"a_b_[0-9a-f]{8}_\d\d_\d\d_\d\d-\d\d_\d\d_\d\d", generate("a", "b"))


@pytest.mark.parametrize("cls", [CSVLogger, GrpcLogger])
def test_every_logger_has_the_calls_of_the_base(cls):
    assert not [name for name, (_, here) in differences("", Logger, cls) if here != YES]


@pytest.mark.parametrize("name", ["log_scalar", "log_metrics", "log_str", "log_hparams", "with_prefix"])
def test_views_have_the_same_calls(name):
    there, here = (inspect.signature(getattr(cls, name)) for cls in (Logger, PrefixLogger))
    assert list(there.parameters.values())[1:] == list(here.parameters.values())[1:]
