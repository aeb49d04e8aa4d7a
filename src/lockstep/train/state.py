"""A rank's state as tensors and plain values: taken apart, and put together again.

What is no tensor is written as JSON. JSON knows neither tuples nor keys that are no text, so that
those are marked: ``{"!t": [...]}`` is a tuple, ``{"!d": [[key, value], ...]}`` a dictionary, and
``{"!x": 3}`` stands for the tensor number 3. Nothing is pickled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Json = dict[str, Any]
"""An object as JSON has it."""


class NotPlain(TypeError):
    """State that is neither tensor nor plain data; the message names its key."""


def take_apart(value: Any, is_tensor: Callable[[Any], bool]) -> tuple[Any, dict[str, Any]]:
    """Return *value* as JSON, and its tensors by key in the order of their numbers.

    Raises:
        NotPlain: where something is neither.
    """
    tensors: dict[str, Any] = {}
    return _apart(value, "", is_tensor, tensors), tensors


def _apart(value: Any, key: str, is_tensor: Callable[[Any], bool], tensors: dict[str, Any]) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if is_tensor(value):
        tensors[key] = value
        return {"!x": len(tensors) - 1}

    def inner(name: object, one: Any) -> Any:
        return _apart(one, f"{key}.{name}" if key else str(name), is_tensor, tensors)

    if isinstance(value, Mapping):
        return {"!d": [[_plain_key(k, key), inner(k, v)] for k, v in value.items()]}
    if isinstance(value, tuple):
        return {"!t": [inner(i, v) for i, v in enumerate(value)]}
    if isinstance(value, list):
        return [inner(i, v) for i, v in enumerate(value)]
    raise NotPlain(
        f"{key or 'the state'} is a {type(value).__name__}: a checkpoint holds tensors, None, "
        "bool, int, float, str, and lists, tuples and dictionaries of them"
    )


def _plain_key(key: Any, at: str) -> Any:
    if isinstance(key, (bool, int, float, str)):
        return key
    raise NotPlain(f"{at} has the key {key!r}, a {type(key).__name__}: it must be text or a number")


def put_together(plain: Any, tensors: list[Any]) -> Any:
    """Return what ``take_apart`` was given, with *tensors* in their places."""
    if isinstance(plain, list):
        return [put_together(one, tensors) for one in plain]
    if not isinstance(plain, dict):
        return plain
    ((mark, inner),) = plain.items()
    if mark == "!x":
        return tensors[inner]
    if mark == "!t":
        return tuple(put_together(one, tensors) for one in inner)
    return {key: put_together(one, tensors) for key, one in inner}
