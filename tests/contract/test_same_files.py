"""The same calls leave the same bytes, whatever lies between the call and the file."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import torch
from tensordict import TensorDict

from tests.support.deployments import DEPLOYMENTS
from tests.support.run_files import content


def log_a_bit_of_everything(logger) -> None:
    logger.log_hparams({"rate": 0.1, "layers": [64, 64], "name": "x"})
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
