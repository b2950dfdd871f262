"""A client of the bare contract: stubs, raw streams, and the refusals they end with."""

from __future__ import annotations

import os
import queue
from collections.abc import Callable, Iterator
from typing import Any

import grpc

from logger_service.contract import status_details
from logger_service.contract.errors import ServiceError
from logger_service.v1 import (
    logging_service_pb2,
    logging_service_pb2_grpc,
    query_service_pb2_grpc,
    records_pb2,
    run_service_pb2,
    run_service_pb2_grpc,
    state_service_pb2_grpc,
)

DEADLINE_S = 30.0


class Wire:
    """Stubs of all services on one channel."""

    def __init__(self, address: str) -> None:
        # As large as a client can be made to send; what is too much is the server's to say.
        self.channel = grpc.insecure_channel(address, options=[("grpc.max_send_message_length", -1)])
        self.logging = logging_service_pb2_grpc.LoggingServiceStub(self.channel)
        self.runs = run_service_pb2_grpc.RunServiceStub(self.channel)
        self.queries = query_service_pb2_grpc.QueryServiceStub(self.channel)
        self.state = state_service_pb2_grpc.StateServiceStub(self.channel)

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.channel.close()

    def open_run(self, exp_name: str = "", **fields: Any) -> str:
        """Opens a run, of a new name if none is given; returns its id."""
        request = run_service_pb2.OpenRunRequest(exp_name=exp_name or f"run-{os.urandom(8).hex()}", **fields)
        return self.runs.OpenRun(request, timeout=DEADLINE_S).run_id

    def log_scalar(self, run_id: str, name: str = "loss", value: float = 1.0, **fields: Any) -> int:
        """Logs a scalar; returns its step."""
        request = logging_service_pb2.LogScalarRequest(run_id=run_id, name=name, value=value, **fields)
        return self.logging.LogScalar(request, timeout=DEADLINE_S).step

    def flush(self, run_id: str, timeout: float = DEADLINE_S, **fields: Any) -> run_service_pb2.Ledger:
        """Flushes a run; returns its ledger."""
        return self.runs.FlushRun(run_service_pb2.FlushRunRequest(run_id=run_id, **fields), timeout=timeout).ledger

    def stream(self, run_id: str, *, welcomed: bool = True, **hello: Any) -> RawStream:
        """Opens a stream and says Hello; reads Welcome if `welcomed`."""
        stream = RawStream(self)
        stream.hello(run_id, **hello)
        if welcomed:
            stream.welcome = stream.read("welcome")
        return stream


class RawStream:
    """A LogStream call."""

    def __init__(self, wire: Wire) -> None:
        self.writer_id = os.urandom(16).hex()
        self.welcome: logging_service_pb2.Welcome | None = None
        self._requests: queue.SimpleQueue[logging_service_pb2.LogStreamRequest | None] = queue.SimpleQueue()
        self.call = wire.logging.LogStream(iter(self._requests.get, None), timeout=DEADLINE_S)

    def send(self, **message: Any) -> None:
        """Sends a message: `hello=`, `batch=`, `finish=`, or nothing."""
        self._requests.put(logging_service_pb2.LogStreamRequest(**message))

    def hello(self, run_id: str, **fields: Any) -> None:
        """Says Hello."""
        known = {"writer_id": self.writer_id, "epoch": 1, "first_held": 1, "client": "test"}
        self.send(hello=logging_service_pb2.Hello(run_id=run_id, **{**known, **fields}))

    def batch(self, sequence: int, *records: records_pb2.Record, **fields: Any) -> None:
        """Sends a batch."""
        self.send(batch=records_pb2.Batch(sequence=sequence, first_held=1, records=records, **fields))

    def finish(self) -> None:
        """Says Finish."""
        self.send(finish=logging_service_pb2.Finish())

    def half_close(self) -> None:
        """Says that nothing more will come, without Finish."""
        self._requests.put(None)

    def read(self, kind: str) -> Any:
        """Reads the next answer, which must be of a kind."""
        answer = next(self.call)
        assert answer.WhichOneof("message") == kind, answer
        return getattr(answer, kind)

    def read_until_accepted(self, sequence: int) -> logging_service_pb2.Acknowledgement:
        """Reads acknowledgements until one covers a sequence; returns it, with the rejections of all of them."""
        rejections: list[records_pb2.BatchRejections] = []
        while True:
            acknowledgement = self.read("acknowledgement")
            rejections += acknowledgement.rejections
            if acknowledgement.accepted >= sequence:
                del acknowledgement.rejections[:]
                acknowledgement.rejections.extend(rejections)
                return acknowledgement

    def rest(self) -> Iterator[Any]:
        """Reads to the end."""
        return iter(self.call)


def rows(name: str, *values: float, steps: tuple[int, ...] = ()) -> records_pb2.Record:
    """Makes a record of one column."""
    return records_pb2.Record(metrics=records_pb2.MetricRows(names=[name], values=values, steps=steps))


def refusal(call: Callable[[], Any]) -> ServiceError:
    """Makes a call that must be refused; returns the reason."""
    try:
        answer = call()
    except grpc.RpcError as error:
        return decode(error)
    raise AssertionError(f"it was not refused: {answer}")


def decode(error: Any) -> ServiceError:
    """Returns the refusal that a failed call carries."""
    details = dict(error.trailing_metadata() or ()).get(status_details.METADATA_KEY)
    decoded = status_details.decode(error.code().value[0], details, error.details())
    assert decoded is not None, error
    return decoded
