"""How a writer delivers, checked once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

from logger_client.delivery.recorder import OnFull

Delivery = Literal["async", "sync"]

MIN_BUFFER_BYTES = 64 << 10
"""The least `max_buffer_bytes`."""


@dataclass(frozen=True)
class DeliveryOptions:
    """How a writer delivers.

    Raises:
        ValueError, TypeError: An option is not what it must be; the message names it.
    """

    delivery: Delivery = "async"
    """`async`: calls return at once. `sync`: they return when what they logged is applied."""
    sync_timeout_s: float = 30.0
    """How long a call waits for that."""
    on_full: OnFull = "wait"
    """What happens when the buffer is full: calls `wait`, or what they log is counted and `drop`ped."""
    max_buffer_bytes: int = 64 << 20
    """How much may be held that the host has not acknowledged."""

    def __post_init__(self) -> None:
        check_choice("delivery", self.delivery, get_args(Delivery))
        check_choice("on_full", self.on_full, get_args(OnFull))
        check_seconds("sync_timeout", self.sync_timeout_s)
        if not isinstance(self.max_buffer_bytes, int) or isinstance(self.max_buffer_bytes, bool):
            raise TypeError(f"max_buffer_bytes must be an int, not {type(self.max_buffer_bytes).__name__}")
        if self.max_buffer_bytes < MIN_BUFFER_BYTES:
            raise ValueError(f"max_buffer_bytes must be at least {MIN_BUFFER_BYTES:,}, not {self.max_buffer_bytes:,}")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raises ValueError if an option is not one of its choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, not {value!r}")


def check_seconds(name: str, value: Any) -> None:
    """Raises TypeError or ValueError if an option is not a positive, finite number of seconds."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number of seconds, not {type(value).__name__}")
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be a positive number of seconds, not {value!r}")
