"""What two objects offer to their users, in words that can be compared and stand in a table."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

YES, NO = "yes", "no"
UNSAID = ("", "Any")
"""Annotations of what a call returns that promise nothing."""

Difference = tuple[str, str]
"""How it is there, and how it is here."""


def differences(name: str, there: Any, here: Any) -> Iterator[tuple[str, Difference]]:
    """Compares the public members of two objects, or of two classes.

    Yields:
        `name.member`, and what it is there and here: `yes` and `no` where only one has it, else what differs of its
        signature.
    """
    members = {member for side in (there, here) for member in dir(side) if not member.startswith("_")}
    for member in sorted(members):
        ours, theirs = has(here, member), has(there, member)
        if ours != theirs:
            yield f"{name}.{member}", (YES if theirs else NO, YES if ours else NO)
        elif callable(of(there, member)) and callable(of(here, member)):
            difference = compared(signature(there, member), signature(here, member))
            if difference:
                yield f"{name}.{member}", difference


def compared(there: inspect.Signature, here: inspect.Signature) -> Difference | None:
    """Compares names, order, kinds and defaults of parameters, and what both say they return."""
    parameters = [list(side.parameters.values()) for side in (there, here)]
    same = 0
    while all(same < len(side) for side in parameters) and alike(parameters[0][same], parameters[1][same]):
        same += 1
    texts = [shown(side, same) for side in parameters]
    returns = [returned(side) for side in (there, here)]
    if returns[0] != returns[1] and not set(UNSAID) & set(returns):
        texts = [f"{text} -> {result}" for text, result in zip(texts, returns, strict=True)]
    return None if texts[0] == texts[1] else (f"`{texts[0]}`", f"`{texts[1]}`")


def alike(one: inspect.Parameter, other: inspect.Parameter) -> bool:
    """Whether they are the same but for their annotations."""
    return (one.name, one.kind, one.default) == (other.name, other.kind, other.default)


def shown(parameters: list[inspect.Parameter], same: int) -> str:
    """Writes parameters as a signature does; the first `same` of them as `…`."""
    texts, star = (["…"], False) if same else ([], False)
    for index, parameter in enumerate(parameters):
        keyword = parameter.kind is parameter.KEYWORD_ONLY
        if keyword and not star and index >= same:
            texts.append("*")
        star = star or keyword or parameter.kind is parameter.VAR_POSITIONAL
        if index >= same:
            texts.append(str(parameter.replace(annotation=parameter.empty)))
    return f"({', '.join(texts)})"


def returned(side: inspect.Signature) -> str:
    """Writes what a call returns, without modules and without a `|`, which would end a cell of a table."""
    if side.return_annotation is side.empty:
        return ""
    text = re.sub(r"\b\w+\.", "", str(side.return_annotation)).replace(" | ", " or ")
    return re.sub(r"\w+T\b", "Self", text)


def constructor(cls: type) -> inspect.Signature:
    """What calling a class takes: what its constructor does, and what its metaclass adds by keyword."""
    own = list(inspect.signature(cls.__init__).parameters.values())[1:]
    added = [
        parameter
        for parameter in inspect.signature(type(cls).__call__).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY
    ]
    return inspect.Signature(own + added)


def signature(side: Any, member: str) -> inspect.Signature:
    """The signature of a method, without `self`."""
    whole = inspect.signature(getattr(side, member))
    return whole.replace(parameters=list(whole.parameters.values())[1:]) if inspect.isclass(side) else whole


def has(side: Any, member: str) -> bool:
    """Whether it has the member, without asking `__getattr__`, which may promise more."""
    return member in dir(side)


def of(side: Any, member: str) -> Callable[..., Any] | Any:
    """The member; of a class, a property is the property itself."""
    return getattr(side, member)
