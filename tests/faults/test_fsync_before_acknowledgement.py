"""The order of a server's system calls: no acknowledgement leaves before the fsync that covers its batch."""

from __future__ import annotations

import re
import threading

import grpc

from logger_service.v1 import (
    logging_service_pb2,
    logging_service_pb2_grpc,
    records_pb2,
    run_service_pb2,
    run_service_pb2_grpc,
)
from tests.support.strace import strace_command

BATCHES = 100  # Each sequence is one byte of protobuf.


def marker(sequence: int) -> str:
    return f"marker-{sequence}-of-this-batch"


def log_batches(address: str) -> list[int]:
    """Sends batches whose texts can be recognised in the journal; returns the acknowledged sequences as they came."""
    acknowledged: list[int] = []
    may_send = threading.Semaphore(4)  # Some batches share a commit, some do not.

    def requests(run_id: str):
        yield logging_service_pb2.LogStreamRequest(
            hello=logging_service_pb2.Hello(run_id=run_id, writer_id="0123456789abcdef" * 2, epoch=epoch, first_held=1)
        )
        for sequence in range(1, BATCHES + 1):
            may_send.acquire()
            text = records_pb2.TextRecord(name="text", text=marker(sequence))
            batch = records_pb2.Batch(sequence=sequence, first_held=1, records=[records_pb2.Record(text=text)])
            yield logging_service_pb2.LogStreamRequest(batch=batch)
        yield logging_service_pb2.LogStreamRequest(finish=logging_service_pb2.Finish())

    with grpc.insecure_channel(address) as channel:
        opened = run_service_pb2_grpc.RunServiceStub(channel).OpenRun(
            run_service_pb2.OpenRunRequest(exp_name="run"), timeout=30
        )
        epoch = opened.epoch
        stream = logging_service_pb2_grpc.LoggingServiceStub(channel).LogStream(requests(opened.run_id), timeout=60)
        for response in stream:
            accepted = response.acknowledgement.accepted
            for _ in range(accepted - (acknowledged[-1] if acknowledged else 0)):
                may_send.release()
            if accepted:
                acknowledged.append(accepted)
    return acknowledged


def test_no_acknowledgement_before_its_fsync(start_server, tmp_path):
    trace = tmp_path / "trace"
    calls = "pwrite64,pwritev,write,writev,fsync,fdatasync,sendmsg,sendto"
    server = start_server(wrapper=strace_command(trace, calls, "-y", "-xx", "-s", "1000000"))
    assert log_batches(server.address)[-1] == BATCHES
    server.kill()

    walk = TraceWalk()
    for line in trace.read_text("ascii").splitlines():
        walk.step(line)
    # Else the trace is not what it is taken for.
    assert walk.acknowledged == walk.durable == BATCHES
    assert walk.commits > 1


class TraceWalk:
    """Follows a trace of system calls and fails at an acknowledgement that is ahead of its fsync."""

    _LINE = re.compile(r"^(\d+)\s+(?:(\w+)\(|<\.\.\. (\w+) resumed>)(.*)$")
    _SYNCS = ("fsync", "fdatasync")

    def __init__(self) -> None:
        self.acknowledged = 0
        self.durable = 0
        self.commits = 0
        self._written = 0
        self._syncing: dict[str, int] = {}

    def step(self, line: str) -> None:
        """Takes the next line."""
        match = self._LINE.match(line)
        if match is None:
            return
        thread, call, resumed, rest = match.groups()
        if call is None:
            if resumed in self._SYNCS and thread in self._syncing:
                self._synced(thread)
            return
        file, data = decode(rest)
        if not file.endswith(b"-wal"):
            self._sent(data)
        elif call not in self._SYNCS:
            while marker(self._written + 1).encode() in data:
                self._written += 1
        else:
            self._syncing[thread] = self._written  # It covers what had been written when it began.
            if "<unfinished" not in rest:
                self._synced(thread)

    def _synced(self, thread: str) -> None:
        self.durable = max(self.durable, self._syncing.pop(thread))
        self.commits += 1

    def _sent(self, data: bytes) -> None:
        for accepted in acknowledgements(data):
            assert accepted <= self.durable, f"{accepted} is acknowledged, {self.durable} is durable"
            self.acknowledged = max(self.acknowledged, accepted)


def decode(arguments: str) -> tuple[bytes, bytes]:
    """Returns what a call's descriptor stands for, and its data."""
    file = re.match(r"\d+<([^>]*)>", arguments)
    texts = re.findall(r'"([^"]*)"', arguments)
    return _unhex(file[1] if file else ""), _unhex("".join(texts))


def _unhex(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


def acknowledgements(sent: bytes) -> list[int]:
    """Returns the sequences that some bytes acknowledge: gRPC frames with a `LogStreamResponse.acknowledgement`."""
    # Uncompressed, a length below 128, field 2 with that length less 2, and in it field 1, a varint of one byte.
    frames = re.finditer(rb"\0\0\0\0([\x04-\x7f])\x12([\x02-\x7d])\x08([\x01-\x7f])", sent, re.DOTALL)
    return [frame[3][0] for frame in frames if frame[1][0] == frame[2][0] + 2]
