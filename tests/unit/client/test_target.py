"""What can be a target."""

from __future__ import annotations

import pytest

from logger_client import GrpcLogger
from logger_client.grpc_logger import check_target


@pytest.mark.parametrize(
    "target", ["127.0.0.1:50051", "localhost:1", "logger.example.org:65535", "[::1]:50051", "unix:/tmp/x", "dns:///a:1"]
)
def test_an_address_is_taken_as_it_is(target: str):
    assert check_target(target) == target


@pytest.mark.parametrize(
    "target",
    [
        "",
        "nonsense",
        "127.0.0.1",
        "127.0.0.1:",
        ":50051",
        "127.0.0.1:0",
        "127.0.0.1:99999",
        "a b:1",
        "http://a:1",
        "a:b",
    ],
)
def test_what_is_no_address_is_refused_at_once(target: str):
    with pytest.raises(ValueError, match="target must be HOST:PORT"):
        GrpcLogger("run", target)


def test_a_target_is_text():
    with pytest.raises(TypeError, match="target must be a str"):
        GrpcLogger("run", 50051)  # type: ignore[arg-type]
