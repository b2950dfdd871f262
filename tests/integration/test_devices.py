"""Tensors on devices, over gRPC: what the ledger counts of a device that fails, and calls that wait for the host."""

from __future__ import annotations

import pytest

from logger_client import GrpcLogger
from logger_service.contract.errors import DeliveryError
from tests.support.run_files import read_csv_run


def test_the_ledger_counts_what_was_sent(server, devices):
    with GrpcLogger("run", server.address) as logger:
        logger.log_metrics({"a": devices.tensor(0.5), "b": 1.0}, 0, defer=True)
        devices.failing.add("cuda:1")
        logger.log_metrics({"a": devices.tensor(0.5, "cuda:1"), "b": 1.0, "c": 2.0}, 1, defer=True)
        with pytest.raises(DeliveryError, match=r"3 points: .*did not arrive") as raised:
            logger.flush()
        assert raised.value.ledger.accepted == 2
        assert logger.flush().accepted == 2


def test_a_synchronous_call_waits_and_logs_nothing_if_the_device_fails(server, devices):
    with GrpcLogger("run", server.address, delivery="sync") as logger:
        metrics = logger.log_metrics({"a": devices.tensor(0.5), "b": 1.0}, 0, defer=True)
        assert read_csv_run(server.data_dir / "default" / "run").scalars == {"a": [(0, 0.5)], "b": [(0, 1.0)]}
        assert metrics == {"a": 0.5, "b": 1.0}
        assert devices.waits == {"cuda:0": 1}
        devices.failing.add("cuda:0")
        with pytest.raises(RuntimeError, match="did not arrive"):
            logger.log_metrics({"a": devices.tensor(1.5), "b": 2.0, "text": "x"}, 1, defer=True)
    files = read_csv_run(server.data_dir / "default" / "run")
    assert files.scalars == {"a": [(0, 0.5)], "b": [(0, 1.0)]}
    assert files.texts == {}
