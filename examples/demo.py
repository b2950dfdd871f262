"""The whole service in a minute: a real training run, its server killed half-way, and nothing lost.

Starts a server, trains `train_cartpole.py` against it, kills the server with SIGKILL in the middle of the training and
starts it again on its port. At the end it reads the files and compares them with what was logged, point by point.
Exits with 1 if anything differs.
"""

from __future__ import annotations

import csv
import json
import math
import subprocess
import sys
import threading
from collections import defaultdict
from pathlib import Path
from typing import Any

import torch
import train_cartpole

from logger_client import GrpcLogger, generate_exp_name

DATA_DIR = Path(__file__).parent.parent / "demo-data"
HPARAMS = "(hyperparameters)"


class Server:
    """A `logger-service serve` process."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self.address = "127.0.0.1:0"
        self.start()

    def start(self) -> None:
        """Starts it, again on its port if it had one, and waits until it is ready."""
        command = [str(Path(sys.executable).with_name("logger-service")), "serve"]
        command += ["--data-dir", str(self._data_dir), "--listen", self.address, "--log-level", "warning"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.startswith("listening on "):
            raise SystemExit("the server did not start")
        self.address = line.split()[-1]

    def kill(self) -> None:
        """Ends it with SIGKILL."""
        self._process.kill()
        self._process.wait()

    def terminate(self) -> int:
        """Ends it with SIGTERM and returns its exit status."""
        self._process.terminate()
        return self._process.wait()


class Tally:
    """Passes everything on to a logger and remembers what was logged, by name: what the files have to hold."""

    def __init__(self, logger: Any, logged: dict[str, list[Any]], prefix: str = "") -> None:
        self._logger = logger
        self._logged = logged
        self._prefix = prefix

    def with_prefix(self, prefix: str) -> Tally:
        return Tally(self._logger.with_prefix(prefix), self._logged, f"{self._prefix}{prefix}/")

    def log_scalar(self, name: str, value: Any, step: int | None = None) -> None:
        self._logger.log_scalar(name, value, step)
        self._logged[self._prefix + name].append(value.item() if isinstance(value, torch.Tensor) else float(value))

    def log_metrics(self, metrics: Any, step: int | None = None) -> dict[str, Any]:
        returned = self._logger.log_metrics(metrics, step)
        for name, value in returned.items():
            self._logged[name].append(value)
        return returned

    def log_str(self, name: str, value: str, step: int | None = None) -> None:
        self._logger.log_str(name, value, step)
        self._logged[self._prefix + name].append(value)

    def log_hparams(self, config: Any) -> None:
        self._logger.log_hparams(config)
        self._logged[HPARAMS].append(config)


def read_files(run_dir: Path) -> dict[str, list[Any]]:
    """Returns what the files of a run hold, by name, without any code of the service."""
    found: dict[str, list[Any]] = {}
    for path in (run_dir / "scalars").rglob("*.csv"):
        with path.open(newline="") as lines:
            found[path.relative_to(run_dir / "scalars").with_suffix("").as_posix()] = [
                float(value) for _step, value in csv.reader(lines)
            ]
    for path in (run_dir / "texts").rglob("*.jsonl"):
        found[path.relative_to(run_dir / "texts").with_suffix("").as_posix()] = [
            json.loads(line)["value"] for line in path.read_text().splitlines()
        ]
    found[HPARAMS] = list((run_dir / "texts").glob("hparams*.txt"))
    return found


def same(logged: list[Any], found: list[Any]) -> bool:
    """Whether the two hold the same values in the same order (hyperparameters: as many)."""
    return len(logged) == len(found) and all(
        one == other or isinstance(other, Path) or (math.isnan(one) and math.isnan(other))
        for one, other in zip(logged, found, strict=True)
    )


def main() -> int:
    """Runs the demonstration and returns the exit status."""
    config = train_cartpole.Config()
    logged: dict[str, list[Any]] = defaultdict(list)
    server = Server(DATA_DIR)
    restart = threading.Thread(target=server.start)

    def on_update(update: int) -> None:
        if update + 1 == config.updates // 2:
            server.kill()
            print(f"update {update}: killed the server with SIGKILL; the training goes on while it starts again")
            restart.start()
        elif (update + 1) % config.evaluate_every == 0:
            print(f"update {update}")

    try:
        with GrpcLogger(generate_exp_name("reinforce", "cartpole"), server.address) as logger:
            print(f"training {logger.exp_name}, logging to {server.address}")
            train_cartpole.train(Tally(logger, logged), config, on_update)
            restart.join()
            ledger = logger.flush()
    finally:
        status = server.terminate()

    run_dir = DATA_DIR / "default" / logger.exp_name
    found = read_files(run_dir)
    print(f"\n{'name':<24}{'logged':>10}{'in files':>10}")
    different = [name for name in {**logged, **found} if not same(logged.get(name, []), found.get(name, []))]
    for name in sorted({**logged, **found}):
        note = "  DIFFERS" if name in different else ""
        print(f"{name:<24}{len(logged.get(name, [])):>10}{len(found.get(name, [])):>10}{note}")
    print(f"\nledger: {ledger.accepted} points accepted, {ledger.repeated} of them sent a second time and recognised")
    print(f"files: {run_dir}")
    return 1 if different or status else 0


if __name__ == "__main__":
    sys.exit(main())
