"""Finds batches in the raw pages of a damaged database, whatever became of the tree above them.

SQLite reaches a page through the pages above it, so one lost page can hide thousands. The pages that hold batches are
recognised by themselves, and each batch proves itself by its checksum. The layout: https://www.sqlite.org/fileformat2.html
"""

from __future__ import annotations

import struct
from collections.abc import Container, Iterator
from pathlib import Path
from typing import BinaryIO

from .reading import StoredBatch, is_whole_batch
from .seal import Value
from .tables import BATCHES

PAGE_BYTES = 4_096
"""The size of a page: SQLite's default, which the journal keeps."""

_TABLE_LEAF = 0x0D
_LOG_HEADER_BYTES = 32
_FRAME_HEADER_BYTES = 24
_MOST_IN_PAGE = PAGE_BYTES - 35
_LEAST_IN_PAGE = (PAGE_BYTES - 12) * 32 // 255 - 23
_INTEGER_BYTES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}


def scan_batches(database: Path, log: Path, wanted: Container[int]) -> Iterator[StoredBatch]:
    """Yields the whole batches whose keys are wanted, in no order; a key may come more than once.

    Args:
        database: The database.
        log: Its write-ahead log, whose pages come before the database's; need not exist.
        wanted: The keys.
    """
    with _Pages(database, log) as pages:
        for number in pages.numbers():
            try:
                yield from _scan_page(pages, number, wanted)
            except (ValueError, IndexError, KeyError, struct.error):
                continue  # no page of batches, or one whose beginning is damaged


class _Pages:
    """The pages of a database by number, as its write-ahead log has them last."""

    def __init__(self, database: Path, log: Path) -> None:
        self._database: BinaryIO = database.open("rb")
        self._log: BinaryIO | None = log.open("rb") if log.exists() else None
        self._count = database.stat().st_size // PAGE_BYTES
        self._in_log = dict(self._read_log())

    def __enter__(self) -> _Pages:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()
        if self._log is not None:
            self._log.close()

    def numbers(self) -> list[int]:
        """Returns the numbers of all pages."""
        return sorted({*range(1, self._count + 1), *self._in_log})

    def read(self, number: int) -> bytes:
        """Returns a page.

        Raises:
            ValueError: There is none of this number.
        """
        file, offset = self._database, (number - 1) * PAGE_BYTES
        if self._log is not None and number in self._in_log:
            file, offset = self._log, self._in_log[number]
        file.seek(offset)
        page = file.read(PAGE_BYTES)
        if number < 1 or len(page) != PAGE_BYTES:
            raise ValueError(f"no page {number}")
        return page

    def _read_log(self) -> Iterator[tuple[int, int]]:
        """Yields the pages in the log with their offsets: those since it was last begun anew."""
        if self._log is None:
            return
        salts = self._log.read(_LOG_HEADER_BYTES)[16:24]
        offset = _LOG_HEADER_BYTES
        while len(header := self._log.read(_FRAME_HEADER_BYTES)) == _FRAME_HEADER_BYTES:
            if header[8:16] == salts:
                yield struct.unpack_from(">I", header)[0], offset + _FRAME_HEADER_BYTES
            offset += _FRAME_HEADER_BYTES + PAGE_BYTES
            self._log.seek(offset)


def _scan_page(pages: _Pages, number: int, wanted: Container[int]) -> Iterator[StoredBatch]:
    page = pages.read(number)
    if page[0] != _TABLE_LEAF:
        return
    (cells,) = struct.unpack_from(">H", page, 3)
    for offset in struct.unpack_from(f">{cells}H", page, 8):
        try:
            batch = _parse_cell(pages, page, offset, wanted)
        except (ValueError, IndexError, KeyError, struct.error):
            continue
        if batch is not None and is_whole_batch(batch):
            yield batch


def _parse_cell(pages: _Pages, page: bytes, offset: int, wanted: Container[int]) -> StoredBatch | None:
    size, offset = _varint(page, offset)
    key, offset = _varint(page, offset)
    if key not in wanted:
        return None
    local = size
    if size > _MOST_IN_PAGE:
        local = _LEAST_IN_PAGE + (size - _LEAST_IN_PAGE) % (PAGE_BYTES - 4)
        local = local if local <= _MOST_IN_PAGE else _LEAST_IN_PAGE
    record = bytearray(page[offset : offset + local])
    following = page[offset + local : offset + local + 4]
    while len(record) < size:
        rest = pages.read(struct.unpack(">I", following)[0])
        following = rest[:4]
        record += rest[4 : 4 + size - len(record)]
    values = _parse_record(bytes(record))
    if len(values) != len(BATCHES.columns):
        return None
    _, time_ns, writer_id, sequence, crc, payload = values
    if isinstance(time_ns, int) and isinstance(writer_id, str) and isinstance(sequence, int) and isinstance(crc, int):
        return key, time_ns, writer_id, sequence, crc, payload if isinstance(payload, bytes) else b""
    return None


def _parse_record(record: bytes) -> list[Value | None]:
    end, offset = _varint(record, 0)
    types = []
    while offset < end:
        kind, offset = _varint(record, offset)
        types.append(kind)
    values: list[Value | None] = []
    for kind in types:
        if kind >= 12:
            data = record[offset : offset + (kind - 12) // 2]
            values.append(data.decode() if kind % 2 else data)
            offset += len(data)
        elif kind in (0, 8, 9):
            values.append({0: None, 8: 0, 9: 1}[kind])
        else:
            width = _INTEGER_BYTES[kind]
            values.append(int.from_bytes(record[offset : offset + width], "big", signed=True))
            offset += width
    return values


def _varint(data: bytes, offset: int) -> tuple[int, int]:
    """Returns the number that begins at an offset, and the offset behind it."""
    value = 0
    for at in range(offset, offset + 8):
        value = value << 7 | data[at] & 0x7F
        if data[at] < 0x80:
            return value, at + 1
    return value << 8 | data[offset + 8], offset + 9
