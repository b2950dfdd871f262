"""JSON as the files of a run have it."""

from __future__ import annotations

import json
import math
from typing import Any

_LINE_ENDS = {code: f"\\u{code:04x}" for code in (0x85, 0x2028, 0x2029)}
"""What some readers take for the end of a line, and JSON would leave as it is."""


def dump_json(value: Any, indent: int | None = None) -> str:
    """Returns a value as JSON, by sorted keys.

    NaN and the infinities, for which JSON has no form, become the texts that protobuf's JSON has for them: written as
    Python's `json` does by itself, one of them would make the file unreadable for most others.
    """
    return json.dumps(_json(value), indent=indent, sort_keys=True, ensure_ascii=False, allow_nan=False)


def json_line(value: dict[str, Any]) -> bytes:
    """Returns a mapping as a line of a `.jsonl` file, in its own order; floats as `dump_json` has them."""
    line = json.dumps(_json(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return (line.translate(_LINE_ENDS) + "\n").encode()


def _json(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, list):
        return [_json(element) for element in value]
    if isinstance(value, dict):
        return {key: _json(element) for key, element in value.items()}
    return value
