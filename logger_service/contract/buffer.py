"""What was logged and not taken yet, grouped into columns as it comes.

Rows that have the same names share one group, so that a million points are a few lists of numbers rather than a million
objects. Order holds per name: a row joins an open group only if none of its names stands in a later one, which is so
because a new group closes every open group that shares a name with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from logger_service.contract.groups import NAME_BYTES, Columns, Group, Taken, names_bytes
from logger_service.contract.names import check_name, first_repeated
from logger_service.contract.wire import text_record
from logger_service.v1 import records_pb2

if TYPE_CHECKING:
    from logger_service.contract.late import Late

ROW_VALUES = 4096
"""Rows with more values than this are split into several groups, so that no record becomes too large."""
ROW_NAMES_BYTES = 1 << 18
"""Rows whose names are longer than this in all are split too."""
_KNOWN_NAMES_LIMIT = 1 << 16


class KnownColumns:
    """Names of rows that were checked once, by the row. Not thread-safe."""

    def __init__(self) -> None:
        self._by_names: dict[tuple[str, ...], list[Columns]] = {}
        self._count = 0

    def columns(self, names: tuple[str, ...]) -> list[Columns]:
        """Returns the names of a row as columns, in several parts if there are many, after checking them.

        Raises:
            TypeError, ValueError: One of the names is not a name, or stands twice.
        """
        known = self._by_names.get(names)
        if known is not None:
            return known
        checked = tuple(map(check_name, names))
        repeated = first_repeated(checked)
        if repeated is not None:
            raise ValueError(f"the name {repeated!r} stands twice in one row")
        exact = set(map(type, names)) == {str}  # Then the caller's own tuple is kept: it may well come again.
        columns = [Columns(part) for part in _split(names if exact else checked)]
        if self._count + len(names) > _KNOWN_NAMES_LIMIT:
            self._by_names.clear()
            self._count = 0
        self._by_names[names] = columns
        self._count += len(names)
        return columns


class RecordBuffer:
    """Collects what is logged. Not thread-safe: its owner locks.

    Every `add_*` takes all or, where it raises, nothing. Of a row that Ctrl-C interrupts a part may stay; what was
    added before it stays as it was.

    Args:
        known: Names that were checked before.

    Attributes:
        size_bytes: About how many bytes the content has on the wire, and not less; with what holds values that are
            late.
    """

    def __init__(self, known: KnownColumns | None = None) -> None:
        self._known = known or KnownColumns()
        self._clear()

    @property
    def points(self) -> int:
        """How many points it holds: values of metrics, and one for each other record."""
        return sum(len(item.values) if isinstance(item, Group) else 1 for item in self._items)

    def add_scalar(self, name: str, value: float, step: int | None, time_ns: int) -> None:
        """Adds one value; a step of None asks for the next automatic one.

        Raises:
            TypeError, ValueError: `name` is not a name.
        """
        group = self._open_scalars.get(name)
        try:
            if group is None or group.automatic is not (step is None):
                group = self._group(self._known.columns((name,))[0], step is None)
            if step is not None:
                group.steps.append(step)
            group.times.append(time_ns)
            group.values.append(value)
            self.size_bytes += group.row_bytes
        except BaseException:
            self._mend()
            raise

    def add_row(
        self,
        names: tuple[str, ...],
        values: list[float],
        step: int | None,
        time_ns: int,
        texts: Sequence[tuple[str, str]] = (),
        late: Late | None = None,
    ) -> None:
        """Adds a row of metrics, and texts that belong to the same call.

        Args:
            names: The columns. Passing the same tuple object again is faster than passing an equal one.
            values: A value for each name.
            step: The step; None asks for automatic ones.
            time_ns: Nanoseconds since 1970.
            texts: (name, text) of each text.
            late: What fills in values later: whoever takes the content has it settled.

        Raises:
            TypeError, ValueError: One of the names is not a name, or stands twice.
        """
        group = self._open_by_identity.get(id(names))
        if group is None or group.automatic is not (step is None) or texts or late or len(values) != len(names):
            self._add_row_slowly(names, values, step, time_ns, texts, late)
            return
        try:
            if step is not None:
                group.steps.append(step)
            group.times.append(time_ns)
            group.values += values
            self.size_bytes += group.row_bytes
        except BaseException:
            self._mend()
            raise

    def add_record(self, record: records_pb2.Record, size: int) -> None:
        """Adds a record of another kind.

        Args:
            record: The record; its name has been checked.
            size: Its size in bytes.
        """
        self._items.append(record)
        self.size_bytes += size + NAME_BYTES + 10  # The host may add a step.

    @property
    def late(self) -> list[Late]:
        """What it waits for."""
        return [late for item in self._items if isinstance(item, Group) for _, late, _ in item.late]

    @property
    def content(self) -> Taken:
        """The content, in an order that holds for each name.

        Before it is encoded, `groups.settle` must have filled in what is late.
        """
        return self._items

    def following(self) -> RecordBuffer:
        """Returns an empty buffer to take what comes once this one's content was taken."""
        return RecordBuffer(self._known)

    def take(self) -> Taken:
        """Returns the content, and is empty from then on."""
        items = self._items
        self._clear()
        return items

    def _clear(self) -> None:
        self.size_bytes = 0
        self._items: Taken = []
        # The open groups, found in three ways. The group holds its tuple of names, so that its identity stays its own.
        self._open_scalars: dict[str, Group] = {}
        self._open_rows: dict[tuple[str, ...], Group] = {}
        self._open_by_identity: dict[int, Group] = {}
        self._open_names: dict[str, Group] = {}

    def _mend(self) -> None:
        """After a call that did not come to its end: cuts what it began, and has the next one open groups anew."""
        for item in self._items:
            if isinstance(item, Group):
                item.cut()
        self._open_scalars, self._open_rows, self._open_by_identity, self._open_names = {}, {}, {}, {}

    def _add_row_slowly(
        self,
        names: tuple[str, ...],
        values: list[float],
        step: int | None,
        time_ns: int,
        texts: Sequence[tuple[str, str]],
        late: Late | None,
    ) -> None:
        """What `add_row` does where the group is not at hand. Checks everything before it adds anything."""
        if len(names) != len(values):
            raise ValueError(f"{len(names)} names with {len(values)} values")
        parts = self._known.columns(names)
        records = [text_record(name, text, step, time_ns) for name, text in texts]
        begin = 0
        try:
            for part in parts:
                group = self._group(part, step is None)
                end = begin + len(part.names)
                if late is not None:
                    group.late.append((len(group.times), late, begin))
                if step is not None:
                    group.steps.append(step)
                group.times.append(time_ns)
                group.values += values[begin:end]
                self.size_bytes += group.row_bytes
                begin = end
        except BaseException:
            self._mend()
            raise
        if late is not None:
            self.size_bytes += late.size_bytes
        for record in records:
            self.add_record(record, record.ByteSize())

    def _group(self, columns: Columns, automatic: bool) -> Group:
        """Returns the open group of these columns, or opens one and closes those that share a name with it."""
        names = columns.names
        group = self._open_rows.get(names)
        if group is not None and group.automatic is automatic:
            return group
        if not self._open_names.keys().isdisjoint(names):
            for name in names:
                shared = self._open_names.get(name)
                if shared is not None:
                    self._close(shared)
        group = Group(columns, automatic)
        self._items.append(group)
        self._open_names.update(dict.fromkeys(names, group))
        self._open_rows[names] = group
        self._open_by_identity[id(names)] = group
        if len(names) == 1:
            self._open_scalars[names[0]] = group
        self.size_bytes += columns.header_bytes
        return group

    def _close(self, group: Group) -> None:
        for name in group.names:
            del self._open_names[name]
        del self._open_rows[group.names]
        del self._open_by_identity[id(group.names)]
        if len(group.names) == 1:
            del self._open_scalars[group.names[0]]


def _split(names: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Splits a row so that no part has too many names, or too long ones, for a record of a few rows."""
    if len(names) <= ROW_VALUES and names_bytes(names) <= ROW_NAMES_BYTES:
        return [names] if names else []
    parts = []
    part: list[str] = []
    part_bytes = 0
    for name in names:
        size = names_bytes((name,))
        if part and (len(part) == ROW_VALUES or part_bytes + size > ROW_NAMES_BYTES):
            parts.append(tuple(part))
            part, part_bytes = [], 0
        part.append(name)
        part_bytes += size
    parts.append(tuple(part))
    return parts
