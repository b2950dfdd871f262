"""A client that has nothing but an address: reflection with `buf curl`, and health."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.support.run_files import read_csv_run

SERVICES = [f"logger_service.v1.{name}Service" for name in ("Logging", "Run", "Query", "State")]


def buf_curl(*arguments: str) -> str:
    """Runs `buf curl`, which learns everything from the server's reflection."""
    buf = str(Path(sys.executable).with_name("buf"))
    command = [buf, "curl", "--protocol", "grpc", "--http2-prior-knowledge", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_reflection_lists_the_services_and_calls_them(server):
    url = f"http://{server.address}"
    assert set(buf_curl("--list-services", url).split()) >= {*SERVICES, "grpc.health.v1.Health"}
    opened = json.loads(buf_curl("-d", '{"expName": "curl"}', f"{url}/logger_service.v1.RunService/OpenRun"))
    run_id = opened["runId"]
    for step in (0, 1):
        answer = buf_curl(
            "-d",
            json.dumps({"runId": run_id, "name": "loss", "value": 0.5}),
            f"{url}/logger_service.v1.LoggingService/LogScalar",
        )
        assert int(json.loads(answer).get("step", 0)) == step
    buf_curl("-d", json.dumps({"runId": run_id}), f"{url}/logger_service.v1.RunService/FlushRun")
    assert read_csv_run(server.data_dir / "default" / "curl").scalars == {"loss": [(0, 0.5), (1, 0.5)]}


@pytest.mark.parametrize("service", ["", *SERVICES])
def test_health_says_serving(server, service):
    with grpc.insecure_channel(server.address) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        answer = health.Check(health_pb2.HealthCheckRequest(service=service), timeout=10)
    assert answer.status == health_pb2.HealthCheckResponse.SERVING
