"""What `logger-client` prints: messages as plain values for JSON, and as text for people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

from google.protobuf.message import Message

from logger_service.v1 import query_service_pb2, run_service_pb2


def plain(message: Message) -> dict[str, Any]:
    """Returns a message as plain values: numbers stay numbers, enums become their names in lower case, unprefixed."""
    return {field.name: _plain_field(field, getattr(message, field.name)) for field in message.DESCRIPTOR.fields}


def _plain_field(field: Any, value: Any) -> Any:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        of = field.message_type.fields_by_name["value"]
        return {str(key): _plain_value(of, value[key]) for key in sorted(value)}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_plain_value(field, item) for item in value]
    return _plain_value(field, value)


def _plain_value(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        return plain(value)
    if field.enum_type is not None:
        return _enum_name(field.enum_type, value)
    return value


def _enum_name(enum_type: Any, number: int) -> str:
    """`RUN_STATUS_RUNNING` is `running`."""
    known = enum_type.values_by_number.get(number)
    if known is None:
        return str(number)
    prefix = enum_type.values_by_number[0].name.removesuffix("UNSPECIFIED")
    name: str = known.name
    return name.removeprefix(prefix).lower()


def server_report(info: run_service_pb2.GetServerInfoResponse, target: str) -> str:
    """Says what a server is."""
    durability = _enum_name(run_service_pb2.Durability.DESCRIPTOR, info.durability)
    rows = [
        ("version", info.version),
        ("durability", durability),
        ("backends", ", ".join(info.backends)),
        ("default backends", ", ".join(info.default_backends)),
        ("largest message", f"{info.limits.max_message_bytes:,} bytes"),
        ("largest record", f"{info.limits.max_record_bytes:,} bytes"),
    ]
    return "\n".join([f"logger service at {target}", *_pairs(rows)])


def run_table(runs: Sequence[query_service_pb2.Run]) -> str:
    """Lists runs, one a line."""
    if not runs:
        return "no runs"
    rows = [("RUN", "STATUS", "POINTS", "LAST WRITE")]
    rows += [
        (f"{run.namespace}/{run.exp_name}", _status(run), f"{run.points:,}", _time(run.last_write_unix_nano))
        for run in runs
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(
        f"{name:<{widths[0]}}  {status:<{widths[1]}}  {points:>{widths[2]}}  {last}"
        for name, status, points, last in rows
    )


def run_report(response: query_service_pb2.GetRunResponse) -> str:
    """Says all about one run."""
    run, ledger = response.run, response.ledger
    rows = [
        ("run id", run.run_id),
        ("status", _status(run)),
        ("epoch", str(run.epoch)),
        ("directory", run.log_dir),
        ("backends", ", ".join(run.backends)),
        ("created", _time(run.created_unix_nano)),
        ("last write", _time(run.last_write_unix_nano)),
        *((f"tag {key}", run.tags[key]) for key in sorted(run.tags)),
    ]
    if run.notes:
        rows.append(("notes", run.notes))
    lines = [f"{run.namespace}/{run.exp_name}", *_pairs(rows), "ledger, in points", *_pairs(_ledger_rows(ledger))]
    if ledger.notices:
        lines.append("notices")
        lines += [f"  {_time(notice.time_unix_nano)}  {notice.kind}: {notice.message}" for notice in ledger.notices]
    if response.writers:
        lines.append("writers")
    for writer in response.writers:
        status = _enum_name(query_service_pb2.WriterStatus.DESCRIPTOR, writer.status)
        seen = _time(writer.last_seen_unix_nano)
        lines.append(
            f"  {writer.writer_id}  {status}, {writer.last_sequence:,} batches, last seen {seen}  {writer.client}"
        )
    return "\n".join(lines)


def _ledger_rows(ledger: run_service_pb2.Ledger) -> list[tuple[str, str]]:
    rows = [
        ("sent", f"{ledger.sent:,}"),
        ("accepted", f"{ledger.accepted:,}"),
        ("repeated", f"{ledger.repeated:,}"),
        ("rejected", f"{ledger.rejected:,}"),
        *(
            (f"rejected, {reason}", f"{ledger.rejected_by_reason[reason]:,}")
            for reason in sorted(ledger.rejected_by_reason)
        ),
        ("dropped", f"{ledger.dropped:,}"),
    ]
    for backend in ledger.backends:
        what = f"{backend.applied:,} applied, {backend.rejected:,} rejected, {backend.lag:,} to do"
        rows.append((backend.type, f"{what}; {backend.problem}" if backend.problem else what))
    return rows


def _pairs(rows: Sequence[tuple[str, str]]) -> list[str]:
    width = max(len(name) for name, _ in rows)
    return [f"  {name:<{width}}  {value}" for name, value in rows]


def _status(run: query_service_pb2.Run) -> str:
    return _enum_name(query_service_pb2.RunStatus.DESCRIPTOR, run.status)


def _time(unix_nano: int) -> str:
    if not unix_nano:
        return "never"
    return datetime.fromtimestamp(unix_nano / 1e9, tz=timezone.utc).isoformat(sep=" ", timespec="seconds")
