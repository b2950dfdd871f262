"""What `log_metrics(defer=True)` returns: the metrics, of which those on devices are waited for when they are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from logger_service.contract.late import Late


class DeferredMetrics(Mapping[str, Any]):
    """The metrics of one call, flat, as Python values. Read-only.

    Keys never wait. The first value that comes from a device waits for all of the call, and raises RuntimeError if the
    device failed. Copies, and what pickle makes of it, are plain dicts of the values.

    Args:
        content: The metrics, with places for what is late.
        late: What is on its way; None: nothing.
    """

    __slots__ = ("_content", "_late")

    def __init__(self, content: dict[str, Any], late: Late | None) -> None:
        self._content = content
        self._late = late

    def __getitem__(self, name: str) -> Any:
        """Returns a value, and waits for it."""
        if self._late is not None and name in self._late.names:
            self._late.wait()
        return self._content[name]

    def __iter__(self) -> Iterator[str]:
        """Iterates over the names."""
        return iter(self._content)

    def __len__(self) -> int:
        """Returns how many metrics there are."""
        return len(self._content)

    def __contains__(self, name: object) -> bool:
        """Whether there is a metric of this name."""
        return name in self._content

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy is a dict."""
        return dict, (dict(self),)

    def __repr__(self) -> str:
        """Shows the values, and waits for them."""
        return f"DeferredMetrics({dict(self)!r})"
