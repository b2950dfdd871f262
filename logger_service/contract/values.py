"""Typed values of the wire and Python's, for hyperparameters: what goes in comes out with its type.

None, bool, int, float, str         as they are; an int beyond 64 bits as its decimal text
mappings, Namespaces, dataclasses   a map; keys of int, float, bool and None become text
named tuples                        a map of their fields
list, tuple                         a list
NumPy and torch scalars and arrays  a number, or a list
Path, torch.device, torch.dtype     their text
enum members                        their name; those that are numbers or texts too: that number or text
OmegaConf's                         resolved, then as above

Everything else is refused by its key: a set, since it has no order (log `sorted(it)`); bytes; classes and functions.
"""

from __future__ import annotations

import argparse
import dataclasses
import enum
import os
import sys
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from logger_service.contract import tensors
from logger_service.contract.arrays import is_masked
from logger_service.v1 import values_pb2

MOST_LEVELS = 30
"""The greatest number of maps and lists inside one another: parsers allow 100 messages, and a map takes three."""


def to_map(hparams: Any) -> values_pb2.MapValue:
    """Turns hyperparameters into a map of the wire.

    Args:
        hparams: A mapping, an `argparse.Namespace`, a dataclass instance or an OmegaConf mapping.

    Raises:
        TypeError: It is none of these, or a key or a value in it has no form on the wire; the message names the key.
        ValueError: It is nested too deeply or contains itself, two keys have the same text, an OmegaConf value is
            missing or cannot be resolved, a field has no value, or a text cannot be UTF-8; the message names the key.
    """
    hparams = _resolved(hparams, "")
    entries = _entries(hparams, "")
    if entries is None:
        raise TypeError(f"hparams must be a mapping, a Namespace or a dataclass, not {_described(hparams)}")
    values = values_pb2.MapValue()
    _put_map(values, entries, "", (id(hparams),))
    return values


def to_value(value: Any) -> values_pb2.Value:
    """Turns one value into one of the wire. Raises what `to_map` raises."""
    result = values_pb2.Value()
    _put(result, value, "the value", (id(result),))
    return result


def check_map(values: values_pb2.MapValue) -> None:
    """Refuses what is nested too deep to be read back (parsers of protobuf have a limit of their own) or is no value.

    Raises:
        ValueError: It has more than `MOST_LEVELS` levels, or a value whose kind is not set.
    """
    level = list(values.values.values())
    for _ in range(MOST_LEVELS):
        if not all(value.WhichOneof("kind") for value in level):
            raise ValueError("a value has no kind; a null is a null_value")
        level = [inner for value in level for inner in (*value.map_value.values.values(), *value.list_value.values)]
        if not level:
            return
    raise ValueError(f"nested deeper than {MOST_LEVELS} levels")


def from_map(values: values_pb2.MapValue) -> dict[str, Any]:
    """Turns a map of the wire into a dict, ordered by key since the wire keeps no order."""
    return {key: from_value(values.values[key]) for key in sorted(values.values)}


def from_value(value: values_pb2.Value) -> Any:
    """Turns a value of the wire into None, bool, int, float, str, list or dict.

    Raises:
        ValueError: It says nothing at all.
    """
    kind = value.WhichOneof("kind")
    if kind is None:
        raise ValueError("a value without a kind")
    if kind == "null_value":
        return None
    if kind == "list_value":
        return [from_value(element) for element in value.list_value.values]
    if kind == "map_value":
        return from_map(value.map_value)
    return getattr(value, kind)


def _resolved(value: Any, path: str) -> Any:
    """Returns OmegaConf's containers as plain ones."""
    omegaconf: Any = sys.modules.get("omegaconf")
    if omegaconf is None or not omegaconf.OmegaConf.is_config(value):
        return value
    try:
        return omegaconf.OmegaConf.to_container(value, resolve=True, throw_on_missing=True)
    except omegaconf.errors.OmegaConfBaseException as error:
        problem = str(error).partition("\n")[0]
        where = f" in {path!r}" if path else ""
        raise ValueError(
            f"hparams have no value for {error.full_key!r} of the OmegaConf config{where}: {problem}"
        ) from None


def _entries(value: Any, path: str) -> Mapping[Any, Any] | None:
    """Returns the entries of what becomes a map; None for anything else."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, argparse.Namespace | SimpleNamespace):
        return vars(value)
    if isinstance(value, tuple):
        return dict(zip(value._fields, value, strict=True)) if hasattr(value, "_fields") else None
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        for name in names:
            if not hasattr(value, name):
                raise ValueError(f"the field {_joined(path, name)!r} in hparams has no value")
        return {name: getattr(value, name) for name in names}
    return None


def _put_map(target: values_pb2.MapValue, entries: Mapping[Any, Any], path: str, within: tuple[int, ...]) -> None:
    for key, value in entries.items():
        text = _key(key, path)
        inner = _joined(path, text)
        if text in target.values:
            raise ValueError(f"two keys of hparams have the text {inner!r}")
        _put(_entry(target, text, inner), value, inner, within)


def _entry(target: values_pb2.MapValue, key: str, path: str) -> values_pb2.Value:
    try:
        return target.values[key]
    except UnicodeEncodeError:
        raise ValueError(f"the key {path!r} of hparams has a surrogate, which UTF-8 cannot hold") from None


def _key(key: Any, path: str) -> str:
    if isinstance(key, enum.Enum):
        key = _member(key)
    if isinstance(key, np.generic):
        key = key.item()
    if isinstance(key, int) and not isinstance(key, bool):
        return _decimal(key, f"a key in {path!r}" if path else "a key")
    if key is None or isinstance(key, bool | float):
        return str(key)
    if not isinstance(key, str):
        where = f" in {path!r}" if path else ""
        raise TypeError(f"keys of hparams must be texts or numbers, not {type(key).__name__} ({key!r}{where})")
    return str.__str__(key)


def _joined(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _put(target: values_pb2.Value, value: Any, path: str, within: tuple[int, ...]) -> None:
    """Sets the value of `path`, which stands within the containers of these ids."""
    value = _plain(_resolved(value, path), path)
    if value is None:
        target.null_value = values_pb2.NULL_VALUE_UNSPECIFIED
    elif isinstance(value, bool):
        target.bool_value = value
    elif isinstance(value, int):
        if -(2**63) <= value < 2**63:
            target.int_value = value
        else:
            target.string_value = _decimal(value, f"the value of {path!r}")
    elif isinstance(value, float):
        target.double_value = value
    elif isinstance(value, str):
        try:
            target.string_value = value
        except UnicodeEncodeError:
            raise ValueError(f"the text of {path!r} in hparams has a surrogate, which UTF-8 cannot hold") from None
    elif (entries := _entries(value, path)) is not None:
        target.map_value.SetInParent()
        _put_map(target.map_value, entries, path, _entered(value, path, within))
    elif isinstance(value, list | tuple):
        target.list_value.SetInParent()
        inside = _entered(value, path, within)
        for index, element in enumerate(value):
            _put(target.list_value.values.add(), element, f"{path}[{index}]", inside)
    else:
        raise TypeError(f"the value of {path!r} in hparams has no form to log: it is {_described(value)}")


def _entered(container: Any, path: str, within: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the ids of the containers that elements of this one stand within."""
    if id(container) in within:
        raise ValueError(f"hparams are nested without end: {path!r} contains itself")
    if len(within) >= MOST_LEVELS:
        raise ValueError(f"hparams are nested more than {MOST_LEVELS} levels deep at {path!r}")
    return *within, id(container)


def _plain(value: Any, path: str) -> Any:
    """Returns what stands for a value that is not of Python's own types; anything else as it is."""
    if isinstance(value, enum.Enum):
        return _member(value)
    if isinstance(value, os.PathLike):
        text = os.fspath(value)
        return text if isinstance(text, str) else os.fsdecode(text)
    if is_masked(value):
        raise TypeError(f"the value of {path!r} in hparams has no form to log: it is masked")
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, np.longdouble):  # Whose `tolist` gives itself.
        return float(value)
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist() if value.dtype.kind in "biufU" else value
    if tensors.is_tensor(value):
        try:
            return tensors.read(value)[0]
        except TypeError as error:
            raise TypeError(f"the value of {path!r} in hparams has no form to log: {error}") from error
    if type(value).__module__ == "torch" and type(value).__name__ in ("device", "dtype"):
        return str(value)
    return value


def _member(member: enum.Enum) -> Any:
    if isinstance(member, int | float | str):
        return member.value
    if member.name is None and isinstance(member, enum.Flag):  # Several flags, before Python 3.11; or none.
        return "|".join(str(flag.name) for flag in type(member) if flag in member and flag.value)
    return member.name


def _decimal(number: int, what: str) -> str:
    try:
        return int.__str__(number)
    except ValueError:  # Python refuses what takes it too long.
        raise ValueError(f"{what} in hparams is an integer of too many digits") from None


def _described(value: Any) -> str:
    """Says what a value is that is refused."""
    if isinstance(value, type):
        return f"the class {value.__module__}.{value.__qualname__}"
    if isinstance(value, set | frozenset):
        return f"a {type(value).__name__}, which has no order; log sorted(…)"
    return f"of type {type(value).__name__}"
