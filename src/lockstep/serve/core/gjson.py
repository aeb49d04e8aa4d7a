"""The paths of gjson that conditions of InferenceGraphs are written in, as far as they need them.

Keys and indices (``predictions.0.label``), ``#`` for each of a list, ``#(label=="dog")`` for the
first that fits, ``#(score>0.5)#`` for all, ``[@this]`` for the document in a list.
"""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Callable
from typing import Any, Final

MISSING: Final = object()
_QUERY: Final = re.compile(
    r"^(?P<path>[^=!<>%]*?)\s*(?P<op>==|=|!=|<=|>=|<|>|!%|%)\s*(?P<value>.*)$"
)
_OPS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": lambda a, b: a == b,
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "%": lambda a, b: fnmatch.fnmatchcase(str(a), str(b)),
    "!%": lambda a, b: not fnmatch.fnmatchcase(str(a), str(b)),
}


class BadPath(ValueError):
    """A path that cannot be read; the message says where."""


def split(path: str) -> list[str]:
    """Return the parts of a path.

    Raises:
        BadPath: when a bracket or a quote is not closed.
    """
    parts: list[str] = []
    part, depth, quoted = "", 0, False
    letters = iter(path)
    for letter in letters:
        if letter == "\\":
            part += letter + next(letters, "")
            continue
        if letter == '"':
            quoted = not quoted
        elif not quoted and letter in "([":
            depth += 1
        elif not quoted and letter in ")]":
            depth -= 1
        if letter in ".|" and depth == 0 and not quoted:
            parts.append(part)
            part = ""
        else:
            part += letter
    if depth or quoted:
        raise BadPath(f"{path!r}: a bracket or a quote is not closed")
    return [*parts, part]


def exists(document: Any, path: str) -> bool:
    """Return whether *document* has something at *path*.

    Raises:
        BadPath: when the path cannot be read.
    """
    return get(document, path) is not MISSING


def get(document: Any, path: str) -> Any:
    """Return what *document* has at *path*, or MISSING.

    Raises:
        BadPath: when the path cannot be read.
    """
    return _walk(document, split(path))


def _walk(value: Any, parts: list[str]) -> Any:
    for number, part in enumerate(parts):
        if part in ("[@this]", "@this"):
            value = [value] if part.startswith("[") else value
        elif part == "#":
            if not isinstance(value, list):
                return MISSING
            rest = parts[number + 1 :]
            if not rest:
                return len(value)
            found = [one for one in (_walk(item, rest) for item in value) if one is not MISSING]
            return found or MISSING
        elif part.startswith("#("):
            value = _queried(value, part)
        else:
            value = _step(value, part)
        if value is MISSING:
            return MISSING
    return value


def _step(value: Any, part: str) -> Any:
    key = re.sub(r"\\(.)", r"\1", part)
    if isinstance(value, dict):
        return value.get(key, MISSING)
    if isinstance(value, list) and key.isdigit() and int(key) < len(value):
        return value[int(key)]
    return MISSING


def _queried(value: Any, part: str) -> Any:
    every = part.endswith("#")
    inside = part[2:].removesuffix("#").removesuffix(")")
    match = _QUERY.match(inside)
    if not isinstance(value, list):
        return MISSING
    if match is None:
        fits = [one for one in value if get(one, inside) is not MISSING]
    else:
        wanted, test = _literal(match["value"]), _OPS[match["op"]]
        fits = [one for one in value if _compared(one, match["path"].strip(), test, wanted)]
    if every:
        return fits or MISSING
    return fits[0] if fits else MISSING


def _compared(item: Any, path: str, test: Callable[[Any, Any], bool], wanted: Any) -> bool:
    found = get(item, path) if path else item
    if found is MISSING:
        return False
    try:
        return test(found, wanted)
    except TypeError:
        # Values of two types have no order.
        return False


def _literal(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text.strip('"')
