"""Where what is logged goes: the seam between the API of loggers and its two ends, delivery and direct writing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from logger_service.v1 import records_pb2

if TYPE_CHECKING:
    from logger_service.contract.late import Late


class RecordSink(Protocol):
    """Takes what is logged, from any thread. Each call is taken whole or, if it raises, not at all.

    A sink takes the time of metrics at the call and refuses names that break the rules of names with ValueError
    (`RecordBuffer` does both halves of that for it).
    """

    def add_scalar(self, name: str, value: float, step: int | None) -> None:
        """Takes one value. A step of None asks for the next automatic one."""
        ...

    def add_row(
        self,
        names: tuple[str, ...],
        values: list[float],
        step: int | None,
        texts: Sequence[tuple[str, str]] = (),
        late: Late | None = None,
    ) -> None:
        """Takes one row of metrics together with texts of the same step.

        Args:
            names: The names; callers pass the same tuple object again where they can, which is faster. May be empty.
            values: A value for each name. The sink does not keep the list.
            step: An int64; None asks for automatic ones.
            texts: (name, text) of texts that belong to the same call; their names have been checked.
            late: What fills in values later, so that the call need not wait for a device.
        """
        ...

    def add_record(self, record: records_pb2.Record) -> None:
        """Takes a record of another kind, whose name has been checked and whose time is set."""
        ...
