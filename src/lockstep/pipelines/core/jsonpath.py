"""The part of JSONPath that workflows use: names, numbers, slices, wildcards, simple filters."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable
from typing import Any, Final

LENGTH: Final = 500
"""Most characters of a path."""
_PART: Final = re.compile(
    r"""\.(?P<name>[\w-]+)|\.(?P<all>\*)|\[(?:'(?P<quoted>[^']*)'|"(?P<double>[^"]*)"|"""
    r"""(?P<number>-?\d+)|(?P<slice>-?\d*:-?\d*)|(?P<every>\*)|\?\((?P<filter>[^\]]*)\))\]"""
)
_TEST: Final = re.compile(r"""@\.([\w.-]+)\s*(==|!=|<=|>=|<|>)\s*("[^"]*"|'[^']*'|-?[\d.]+|\w+)""")
_SIGNS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class BadPath(ValueError):
    """A path that is not served or at which there is nothing; the message says why."""


def find(text: Any, path: str) -> Any:
    """Return what is at *path* in the JSON *text*: a list where the path may mean several.

    Raises:
        BadPath: when the text is no JSON, the path is not served, or nothing is there.
    """
    if not path.startswith("$") or len(path) > LENGTH:
        raise BadPath(f"jsonpath: {path[:100]!r} must start with $, within {LENGTH} letters")
    try:
        found = [json.loads(text) if isinstance(text, str) else text]
    except ValueError as error:
        raise BadPath(f"jsonpath: {text[:100]!r} is no JSON: {error}") from error
    several, at = False, 1
    while at < len(path):
        part = _PART.match(path, at)
        if part is None:
            raise BadPath(f"jsonpath: {path!r} is not served from {path[at:]!r} on")
        at = part.end()
        several = several or part.lastgroup in ("all", "every", "filter", "slice")
        found = [below for one in found for below in _below(one, part)]
    if several:
        return found
    if not found:
        raise BadPath(f"jsonpath: there is nothing at {path!r}")
    return found[0]


def _below(value: Any, part: re.Match[str]) -> list[Any]:
    name = next((part[g] for g in ("name", "quoted", "double") if part[g] is not None), None)
    if name is not None:
        return [value[name]] if isinstance(value, dict) and name in value else []
    items = value if isinstance(value, list) else [*value.values()] if _is_map(value) else []
    if part["number"] is not None:
        place = int(part["number"])
        return items[place : place + 1 or None] if isinstance(value, list) else []
    if part["slice"] is not None:
        first, _, last = part["slice"].partition(":")
        return items[int(first) if first else None : int(last) if last else None]
    if part["filter"] is not None:
        return [one for one in items if _holds(one, part["filter"])]
    return items


def _is_map(value: Any) -> bool:
    return isinstance(value, dict)


def _holds(value: Any, text: str) -> bool:
    for test in text.split("&&"):
        match = _TEST.fullmatch(test.strip())
        if match is None:
            raise BadPath(f"jsonpath: the filter {test!r} is not served")
        value_at = value
        for name in match[1].split("."):
            value_at = value_at.get(name) if isinstance(value_at, dict) else None
        wanted = match[3].strip("\"'")
        try:
            known = json.loads(match[3].replace("'", '"'))
        except ValueError:
            known = wanted
        try:
            if not _SIGNS[match[2]](value_at, known):
                return False
        except TypeError:
            return False
    return True
