"""The same calls leave the same bytes, whatever lies between the call and the file."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import torch
from tensordict import TensorDict

from tests.support.deployments import DEPLOYMENTS
from tests.support.run_files import content


def log_every_kind_of_value(logger, step: int | None) -> None:
    """What `log_metrics` takes, as mappings and as TensorDicts."""
    values = torch.linspace(-1, 1, 5)
    numbers = {
        "python": {"float": 0.1 + 0.2, "int": 2**53, "bool": True, "large": 1e300, "zero": -0.0},
        "numpy": {"float": np.float32(0.1), "half": np.float16(0.1), "int": np.uint64(7), "array": np.arange(3.0)},
        "torch": {f"{dtype}": values.to(dtype) for dtype in (torch.float64, torch.bfloat16, torch.int8, torch.bool)},
        "odd": [float("nan"), float("inf"), float("-inf"), 5e-324],
    }
    others = {"text": "two\nlines ✓", "none": None, "empty": [], "matrix": [[1, 2], [3, 4]], "tuple": (1, 2.5)}
    logger.log_metrics({**numbers, **others}, step)
    logger.log_metrics(numbers, step, keys_sep="-")
    logger.log_metrics({"deep": {"a": {"b": {"c": {**others, "x": torch.tensor([[1.5]], requires_grad=True)}}}}}, step)
    tensordict = TensorDict({"a": values, "b": TensorDict({"c": values.bfloat16(), "d": torch.tensor([True])})})
    logger.log_metrics(tensordict, step)
    logger.log_metrics(tensordict.flatten_keys("."), step, keys_sep=".")
    logger.log_metrics({"inside": tensordict}, step)
    logger.log_metrics(TensorDict({"text": "text", "values": values.double()}), step)


def log_a_bit_of_everything(logger) -> None:
    logger.log_hparams({"rate": 0.1, "layers": [64, 64], "name": "x", "clip": float("inf"), "text": "two\nlines ✓"})
    for step in (3, None, -7, None):
        log_every_kind_of_value(logger, step)
        log_every_kind_of_value(logger.with_prefix("view"), step)
    random = np.random.default_rng(0)
    view = logger.with_prefix("eval")
    for step in range(2_000):
        logger.log_scalar("loss", random.standard_normal(), step)
        logger.log_scalar("automatic", random.standard_normal() * 10.0 ** random.integers(-300, 300))
        if step % 10 == 0:
            logger.log_metrics({"a": step, "b": {"c": float(random.random())}}, step * 2)
            logger.log_metrics(TensorDict({"td": TensorDict({"x": torch.tensor(step), "y": torch.rand(())})}))
        if step % 100 == 0:
            view.log_metrics({"return": [1.0, float("nan"), float("-inf")], "phase": f"p{step}"}, step)
            view.log_str("notes", f"step {step}\n✓")
            view.log_histogram("weights", random.standard_normal(step), step=step)
            logger.log_scalar("x.csv/y", step, -step)
    logger.log_hparams({"second": True})


def test_same_files(tmp_path):
    by_backend = defaultdict(dict)
    for deployment_name, make in DEPLOYMENTS.items():
        torch.manual_seed(0)
        deployment = make(tmp_path / deployment_name)
        try:
            log_a_bit_of_everything(deployment.open("team/run"))
            deployment.close()
            _transport, backend = deployment_name.rsplit("-", 1)
            by_backend[backend][deployment_name] = content(deployment.run_dir("team/run"))
        finally:
            deployment.stop()
    for contents in by_backend.values():
        first, *others = contents.values()
        assert len(first) > 10
        for other in others:
            assert other.keys() == first.keys()
            assert other == first
