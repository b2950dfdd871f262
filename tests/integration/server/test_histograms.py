"""Histograms as simple clients send them, and the rules of the wire."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from logger_service.contract.errors import Reason
from logger_service.v1 import logging_service_pb2, records_pb2
from tests.support.run_files import read_csv_run
from tests.support.server import ServerProcess
from tests.support.wire import DEADLINE_S, Wire, refusal


def log(wire: Wire, run_id: str, **fields: Any) -> int:
    histogram = records_pb2.HistogramRecord(**{"name": "h", **fields})
    request = logging_service_pb2.LogHistogramRequest(run_id=run_id, histogram=histogram)
    return wire.logging.LogHistogram(request, timeout=DEADLINE_S).step


def bins(edges: list[float], counts: list[int], **fields: Any) -> records_pb2.HistogramBins:
    known = {"min": 0.0, "max": 1.0, "count": sum(counts)}
    return records_pb2.HistogramBins(edges=edges, counts=counts, **{**known, **fields})


def test_raw_values_are_binned_by_the_host(wire: Wire, server: ServerProcess) -> None:
    run_id = wire.open_run("raw")
    data = np.random.default_rng(0).normal(size=1_000)
    values = [*data.tolist(), math.nan, math.inf]
    assert log(wire, run_id, raw=records_pb2.RawValues(values=values)) == 0
    assert log(wire, run_id, raw=records_pb2.RawValues(values=values, bin_count=5)) == 1
    assert log(wire, run_id, raw=records_pb2.RawValues()) == 2
    assert log(wire, run_id, bins=bins([0, 0.5, 1], [3, 4]), step=-5) == -5
    wire.flush(run_id)
    chosen, five, empty, made = read_csv_run(server.data_dir / "default" / "raw").histograms["h"]
    assert chosen["counts"] == np.histogram(data, "auto")[0].tolist()
    assert five["counts"] == np.histogram(data, 5)[0].tolist()
    assert (five["count"], five["nan_count"], five["positive_infinity_count"]) == (1_000, 1, 1)
    assert (empty["count"], empty["min"]) == (0, None)
    assert (made["step"], made["edges"], made["counts"], made["count"]) == (-5, [0, 0.5, 1], [3, 4], 7)


def test_they_survive_a_killed_server(wire: Wire, server: ServerProcess) -> None:
    run_id = wire.open_run("killed")
    for step in range(20):
        log(wire, run_id, raw=records_pb2.RawValues(values=range(step + 1), bin_count=4), step=step)
    server.kill()
    server.start()
    with Wire(server.address) as again:
        again.open_run("killed")
        log(again, run_id, raw=records_pb2.RawValues(values=[1.0]))
        again.flush(run_id)
    rows = read_csv_run(server.data_dir / "default" / "killed").histograms["h"]
    assert [(row["step"], row["count"]) for row in rows] == [*((step, step + 1) for step in range(20)), (20, 1)]


@pytest.mark.parametrize(
    ("fields", "reason", "message"),
    [
        ({}, Reason.INVALID_FIELD, "data: bins or raw values are required"),
        ({"bins": bins([], [])}, Reason.INVALID_FIELD, "edges: 2 to 65,537"),
        ({"bins": bins([0.0], [])}, Reason.INVALID_FIELD, "edges: 2 to 65,537"),
        ({"bins": bins([0, 0], [1])}, Reason.INVALID_FIELD, "edges: the edges must be finite and ascend"),
        ({"bins": bins([0, math.nan], [1])}, Reason.INVALID_FIELD, "edges: the edges must be finite and ascend"),
        ({"bins": bins([0, 1], [1, 2])}, Reason.INVALID_SHAPE, "counts: 2 edges need 1 counts, got 2"),
        ({"bins": bins([0, 1], [5], count=4)}, Reason.INVALID_FIELD, "count: at least the sum of counts, 5"),
        ({"bins": bins([0, 1], [5], min=2.0)}, Reason.INVALID_FIELD, "min, max: must be finite"),
        ({"bins": bins([0, 1], [5], max=math.nan)}, Reason.INVALID_FIELD, "min, max: must be finite"),
        ({"raw": records_pb2.RawValues(bin_count=65_537)}, Reason.INVALID_FIELD, "bin_count: at most 65,536"),
        ({"name": "a//b", "raw": records_pb2.RawValues()}, Reason.INVALID_NAME, "segment"),
    ],
)
def test_what_breaks_a_rule_is_refused_and_takes_no_step(wire: Wire, fields, reason, message) -> None:
    run_id = wire.open_run()
    refused = refusal(lambda: log(wire, run_id, **fields))
    assert refused.reason is reason
    assert message in refused.message
    assert log(wire, run_id, bins=bins([0, 1], [5])) == 0


def test_too_many_raw_values_are_refused(wire: Wire) -> None:
    run_id = wire.open_run()
    values = np.zeros(1_048_577)
    refused = refusal(lambda: log(wire, run_id, raw=records_pb2.RawValues(values=values)))
    assert refused.reason is Reason.TOO_LARGE
    assert log(wire, run_id, raw=records_pb2.RawValues(values=[1.0])) == 0


def test_a_request_without_a_histogram_is_refused(wire: Wire) -> None:
    run_id = wire.open_run()
    empty = logging_service_pb2.LogHistogramRequest(run_id=run_id)
    assert refusal(lambda: wire.logging.LogHistogram(empty, timeout=DEADLINE_S)).field == "histogram"
