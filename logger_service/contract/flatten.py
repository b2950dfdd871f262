"""Nested metrics as one flat dict: mappings, TensorDicts and what a TensorDict wraps, down to the values themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from logger_service.contract import tensors
from logger_service.contract.kinds import NESTING_LIMIT, Kind, kind_of

_NESTED = frozenset({Kind.MAPPING, Kind.COLLECTION, Kind.WRAPPED})
_FEW_TYPES = 8


def flatten(metrics: Any, keys_sep: str, first_name: Callable[[Any], str]) -> tuple[dict[str, Any], list[Kind]]:
    """Returns the values by name, and how each is taken.

    Args:
        metrics: A mapping or a TensorDict.
        keys_sep: What joins the keys of nested ones.
        first_name: Makes a name of a key of the outermost one.

    Raises:
        TypeError: A key is not a `str`.
        ValueError: A name stands twice, or the metrics are nested too deeply.
    """
    leaves: dict[str, Any] = {}
    kinds: list[Kind] = []
    _add(metrics, keys_sep, first_name, None, 1, leaves, kinds)
    return leaves, kinds


def _add(
    metrics: Any,
    keys_sep: str,
    name_of: Callable[[Any], str],
    path: str | None,
    depth: int,
    leaves: dict[str, Any],
    kinds: list[Kind],
) -> None:
    if depth > NESTING_LIMIT:
        raise ValueError(f"the metrics are nested more than {NESTING_LIMIT} levels deep at {path!r}")
    entries = tensors.plain_entries(metrics)
    if entries is None:
        entries = dict(metrics.items())
    if path is not None and set(map(type, entries)) <= {str}:
        start = path + keys_sep
        names = [start + key for key in entries]
    else:
        names = list(map(name_of, entries))
    if _add_values(names, entries, leaves, kinds):
        return
    for name, value in zip(names, entries.values(), strict=True):
        kind = kind_of(value)
        if kind is Kind.WRAPPED:
            value = value.tolist()
            kind = kind_of(value)
        if kind is Kind.MAPPING or kind is Kind.COLLECTION:
            _add(value, keys_sep, _joining(name, keys_sep), name, depth + 1, leaves, kinds)
        elif name in leaves:
            raise ValueError(f"the metrics have the name {name!r} twice")
        else:
            leaves[name] = value
            kinds.append(kind)


def _add_values(names: list[str], entries: dict[Any, Any], leaves: dict[str, Any], kinds: list[Kind]) -> bool:
    """The quick way, where nothing is nested and no name stands twice; returns whether it was taken."""
    values = entries.values()
    samples = {type(value): value for value in values}
    if len(samples) > _FEW_TYPES or not leaves.keys().isdisjoint(names):
        return False
    by_type = {kind: kind_of(sample) for kind, sample in samples.items()}
    if not _NESTED.isdisjoint(by_type.values()) or len(set(names)) != len(names):
        return False
    leaves.update(zip(names, values, strict=True))
    kinds.extend([by_type[type(value)] for value in values])
    return True


def _joining(path: str, keys_sep: str) -> Callable[[Any], str]:
    """Returns what makes names of the keys below a path."""

    def name_of(key: Any) -> str:
        if not isinstance(key, str):
            raise TypeError(f"keys of metrics must be str, not {type(key).__name__} ({key!r} in {path!r})")
        return f"{path}{keys_sep}{str.__str__(key)}"

    return name_of
