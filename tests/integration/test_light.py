"""What must not be loaded: the client and the server stay light."""

from __future__ import annotations

from pathlib import Path

from logger_client import GrpcLogger

HEAVY = ("torch", "tensordict", "ray", "tensorboard", "wandb", "mlflow", "pandas")


def test_client_loads_nothing_heavy(run_python):
    code = "import sys, logger_client; print([name for name in sys.argv[1:] if name in sys.modules])"
    assert run_python(code, *HEAVY, "pyarrow", "logger_service.backends.csv").stdout == "[]\n"


def test_running_server_has_not_loaded_torch(server):
    with GrpcLogger("run", server.address) as logger:
        logger.log_scalar("loss", 1.0)
        logger.log_hparams({"a": 1})
    mapped = Path(f"/proc/{server.pid}/maps").read_text()
    assert "libtorch" not in mapped
    assert "python" in mapped
