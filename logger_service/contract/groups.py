"""Rows that share their names, as a buffer collects them and the wire takes them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeAlias

from logger_service.v1 import records_pb2

if TYPE_CHECKING:
    from logger_service.contract.late import Late

RECORD_VALUES = 32_768
"""About how many values `encode_records` puts into one record: some hundred kilobytes."""
_ROW_BYTES = 8 + 10  # The time, fixed64; the step, a varint of at most 10 bytes.
NAME_BYTES = 4
"""Tag and length of a name on the wire; both fit."""
_RECORD_BYTES = 64  # Tags and lengths of a record and its columns.


def rows_per_record(columns: int) -> int:
    """Returns how many rows of so many columns `encode_records` puts into one record."""
    return max(1, RECORD_VALUES // columns)


def names_bytes(names: tuple[str, ...]) -> int:
    """Returns what names take on the wire."""
    return sum(len(name.encode()) + NAME_BYTES for name in names)


class Columns:
    """Checked names that are logged together, and what they cost on the wire at most.

    Attributes:
        names: The names.
        header_bytes: What a record of them needs besides its rows.
        row_bytes: What a row needs, with its share of the headers of the records that a long group is encoded into.
    """

    __slots__ = ("header_bytes", "names", "row_bytes")

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.header_bytes = names_bytes(names) + _RECORD_BYTES
        self.row_bytes = _ROW_BYTES + 8 * len(names) - (-self.header_bytes // rows_per_record(len(names)))


class Group:
    """Rows with the same names, and either all with a step or all without.

    Attributes:
        names: The columns.
        automatic: Whether the rows ask for automatic steps; then `steps` is empty.
        steps: A step for each row.
        times: Nanoseconds since 1970 for each row.
        values: The values, row-major.
        row_bytes: At most how many bytes a row adds to the wire.
        late: Of each row whose values are not all there yet: its index, what is late, and where among the values of
            that the columns of this group begin.
    """

    __slots__ = ("automatic", "late", "names", "row_bytes", "steps", "times", "values")

    def __init__(self, columns: Columns, automatic: bool) -> None:
        self.names = columns.names
        self.automatic = automatic
        self.steps: list[int] = []
        self.times: list[int] = []
        self.values: list[float] = []
        self.row_bytes = columns.row_bytes
        self.late: list[tuple[int, Late, int]] = []

    def cut(self) -> None:
        """Cuts off a row that was not added whole."""
        columns = len(self.names)
        rows = min(len(self.times), len(self.values) // columns)
        if not self.automatic:
            rows = min(rows, len(self.steps))
            del self.steps[rows:]
        del self.times[rows:], self.values[rows * columns :]
        self.late = [late for late in self.late if late[0] < rows]

    def settle(self) -> list[str]:
        """Waits for what is late, fills it in, and removes the rows for which it never comes.

        Returns:
            Why, for each row that was removed.
        """
        columns = len(self.names)
        lost: list[tuple[int, str]] = []
        for row, late, begin in self.late:
            try:
                values = late.row()
            except Exception as error:  # The others are as good as they were.
                lost.append((row, str(error)))
            else:
                self.values[row * columns : (row + 1) * columns] = values[begin : begin + columns]
        for row, _ in reversed(lost):
            del self.times[row], self.values[row * columns : (row + 1) * columns]
            if not self.automatic:
                del self.steps[row]
        self.late = []
        return [why for _, why in lost]


Taken: TypeAlias = "list[Group | records_pb2.Record]"


def settle(taken: Taken) -> dict[str, int]:
    """Waits for the values that are late in what a `RecordBuffer` gave away, which can be encoded then.

    Returns:
        How many points were removed since their values never come, by the reason.
    """
    lost: Counter[str] = Counter()
    for item in taken:
        if isinstance(item, Group) and item.late:
            for why in item.settle():
                lost[why] += len(item.names)
    return lost
