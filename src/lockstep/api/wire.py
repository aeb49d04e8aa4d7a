"""The base of everything that travels as JSON."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")
Json = dict[str, Any]
"""An object or a part of one, as plain dicts, lists and scalars."""
encode = msgspec.json.Encoder().encode
"""Writes a view or a plain tree as JSON."""


class Wire(
    msgspec.Struct,
    frozen=True,
    gc=False,
    omit_defaults=True,
    rename="camel",
    kw_only=True,
):
    """A frozen view of a Kubernetes object or a part of one.

    A view names only the fields that Lockstep reads; unknown fields are skipped while decoding,
    which is what makes it an order of magnitude faster than a full model. Views are trees, so
    the garbage collector need not track them (``gc=False``). Subclasses repeat ``frozen=True``,
    which type checkers want to see. Never write a view of a foreign
    kind back whole: the fields that it does not name would be lost. Patch instead.
    """


def to_builtins(obj: Any) -> Any:
    """Return *obj* (a view, or a tree that holds views) as plain dicts, lists and scalars."""
    return msgspec.to_builtins(obj)


def convert(obj: Any, type_: type[T]) -> T:
    """Return the plain tree *obj* as a *type_*.

    Raises:
        msgspec.ValidationError: where the tree does not fit, naming the path.
    """
    try:
        return msgspec.convert(obj, type_)
    except msgspec.ValidationError as error:
        raise msgspec.ValidationError(_with_keys(str(error), obj, type_)) from None


def _with_keys(message: str, tree: Any, type_: type) -> str:
    """Return a message with the keys of maps in its path, for which msgspec writes ``[...]``."""
    start, *rest = message.split("[...]")
    shown, path = start, _steps(start.rpartition("$")[2])
    for segment in rest:
        key = _misfit(message, tree, path, type_)
        if key is None:
            return message
        shown, path = f"{shown}[{key}]{segment}", [*path, key, *_steps(segment)]
    return shown


def _steps(path: str) -> list[str | int]:
    found = re.findall(r"\.(\w+)|\[(\d+)\]", path)
    return [field or int(index) for field, index in found]


def _misfit(message: str, tree: Any, path: Sequence[str | int], type_: type) -> str | None:
    """Return under which key of the map at *path* there is what a message says."""
    there = tree
    for step in path:
        there = there[step]
    if not isinstance(there, dict):
        return None
    for key, value in there.items():
        try:
            msgspec.convert(_replaced(tree, path, {key: value}), type_)
        except msgspec.ValidationError as error:
            if str(error) == message:
                return str(key)
    return None


def _replaced(tree: Any, path: Sequence[str | int], value: Any) -> Any:
    """Return a tree that differs from *tree* at *path*, and leave that as it is."""
    if not path:
        return value
    found = tree.copy()
    found[path[0]] = _replaced(tree[path[0]], path[1:], value)
    return found
