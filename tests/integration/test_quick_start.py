"""The README's quick start, word for word."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.run_files import read_csv_run

ROOT = Path(__file__).parents[2]
EXAMPLE = (ROOT / "examples" / "quickstart.py").read_text()


def test_readme_shows_the_example():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert EXAMPLE in blocks
    assert len([line for line in EXAMPLE.splitlines() if line]) <= 10


def test_ten_thousand_scalars(server, run_python):
    done = run_python(EXAMPLE, server.address)
    assert "accepted: 10001" in done.stdout
    files = read_csv_run(server.data_dir / "default" / "quickstart")
    assert files.scalars == {"loss": [(step, 1 / (step + 1)) for step in range(10_000)]}
    assert files.hparams == [{"learning_rate": 0.1, "layers": [64, 64]}]
