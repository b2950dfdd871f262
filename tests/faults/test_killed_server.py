"""A server that dies again and again under its writers: every point stands once, in order."""

from __future__ import annotations

import random
import subprocess
import sys
import time

import pytest

from tests.support.run_files import read_csv_run
from tests.support.scale import sized

KILLS = sized(4, 20)
POINTS = sized(8_000, 100_000)
WRITERS = 3

WRITER = """
import sys
from logger_client import GrpcLogger

target, number, points, parts = sys.argv[1], *map(int, sys.argv[2:])
logger = GrpcLogger("run", target, connect_timeout=60)
for part in range(parts):
    print("next", flush=True)
    sys.stdin.readline()
    for step in range(part * points // parts, (part + 1) * points // parts):
        logger.log_scalar(f"explicit/{number}", step * 0.5, step)
        logger.log_scalar(f"automatic/{number}", step * 0.25)
        if step % 100 == 0:
            logger.log_metrics({f"row/{number}": step, "shared": number}, step)
            logger.log_str(f"text/{number}", f"text {step}", step)
    if part % 4 != 3:  # So that the next kill hits a connected writer; else one that has yet to connect again.
        logger.flush(level="accepted")
ledger = logger.flush()
print(ledger.rejected + ledger.dropped)
logger.shutdown()
"""


@pytest.mark.timeout(1800)
def test_every_point_stands_once_and_in_order(server):
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    moments = random.Random(seed)
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, server.address, str(number), str(POINTS), str(KILLS + 1)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(WRITERS)
    ]
    try:
        for part in range(KILLS + 1):
            for writer in writers:
                assert writer.stdout.readline() == "next\n"
            for writer in writers:
                writer.stdin.write("\n")
                writer.stdin.flush()
            if part < KILLS:
                time.sleep(moments.uniform(0, 0.3))  # Not to wait for something: to hit any moment of its work.
                server.kill()
                time.sleep(moments.choice([0, 0, 0.3]))
                server.start()
        for writer in writers:
            rest, _ = writer.communicate()
            assert writer.returncode == 0
            assert rest == "0\n"
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()

    files = read_csv_run(server.data_dir / "default" / "run")
    for number in range(WRITERS):
        assert files.scalars[f"explicit/{number}"] == [(step, step * 0.5) for step in range(POINTS)]
        assert files.scalars[f"automatic/{number}"] == [(step, step * 0.25) for step in range(POINTS)]
        rows = range(0, POINTS, 100)
        assert files.scalars[f"row/{number}"] == [(step, float(step)) for step in rows]
        assert files.texts[f"text/{number}"] == [(step, f"text {step}") for step in rows]
        assert [step for step, value in files.scalars["shared"] if value == number] == list(rows)
    assert len(files.scalars["shared"]) == WRITERS * len(range(0, POINTS, 100))
