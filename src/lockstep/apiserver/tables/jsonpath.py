"""The JSONPath of kubectl and of printer columns: that of client-go, whole but for ``range``.

A path is read into steps. Each step turns the values found so far into the next ones.
"""

from __future__ import annotations

import ast
import json
import operator
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import re2

Values = list[Any]
Step = Callable[[Values], Values]
Index = tuple[int | None, int | None, int | None]

_FIELD: Final = re.compile(r"(?:\\.|[^\s.,\[\]$@{}\\])*", re.DOTALL)
_NUMBER: Final = re.compile(r"[+-]?[\d.]*")
_WORD: Final = re.compile(r"[^\s.,\[\]$@{}]+")
_QUOTED: Final = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\"""", re.DOTALL)
_KEY: Final = re.compile(r"'([^']*)'")
_SLICE: Final = re.compile(r"(-?\d*)(?::(-?\d*))?(?::(-?\d*))?")
_COMPARISON: Final = re.compile(r"([^!<>=]+)([!<>=~]+)(.+)", re.DOTALL)
_FILTER: Final = "[?("
_PLAIN: Final = 1e17
_HTML: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
"""What Go escapes in JSON."""

_OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@lru_cache(maxsize=1024)
def compiled(path: str) -> tuple[Step, ...]:
    """Return the steps of *path*, such as ``.status.conditions[-1:].type``.

    Raises:
        ValueError: when it is no JSONPath.
    """
    steps: list[Step] = []
    position = 0
    while position < len(path):
        step, position = _next(path, position)
        if step is not None:
            steps.append(step)
    return tuple(steps)


def find(path: str, obj: Any) -> Values:
    """Return the values that *path* leads to in *obj*.

    Raises:
        ValueError: when it is no JSONPath, or cannot be followed in *obj*: an index out of
            bounds, a filter of something that is no list, a comparison of unlike types.
    """
    return _walk(compiled(path), [obj])


def text_of(value: Any) -> str:
    """Return how Go prints *value*: objects and arrays as JSON, a number without needless zeros."""
    if isinstance(value, str):
        return value
    if value is None:
        return "<no value>"
    if isinstance(value, float):
        return format(value, ".17g") if value.is_integer() and abs(value) < _PLAIN else repr(value)
    text = json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    return text.translate(_HTML)


def _walk(steps: tuple[Step, ...], values: Values) -> Values:
    for step in steps:
        values = step(values)
    return values


def _next(path: str, at: int) -> tuple[Step | None, int]:
    """Return the step that begins at *at*, if any does, and where the rest begins."""
    if path.startswith(_FILTER, at):
        return _filter(path, at)
    if path.startswith("..", at):
        after = at + 2
        return _descendants, after - 1 if path[after : after + 1].isidentifier() else after
    char = path[at]
    if char in " @$":
        return None, at + 1
    if char == "[":
        end = path.find("]", at)
        if end < 0:
            raise ValueError(f"{path!r}: an array is not closed")
        return _bracket(path[at + 1 : end]), end + 1
    if char == ".":
        name = _matched(_FIELD, path, at + 1)
        return (_all if name == "*" else _member(name.replace("\\", ""))), at + 1 + len(name)
    return _constant(path, at)


def _constant(path: str, at: int) -> tuple[Step, int]:
    char = path[at]
    if char in "\"'":
        text = _matched(_QUOTED, path, at)
        if not text:
            raise ValueError(f"{path!r}: a quoted text is not closed")
        return _text(_unquoted(text)), at + len(text)
    if char in "+-" or char.isdigit():
        text = _matched(_NUMBER, path, at)
        return _each(float(text) if "." in text else int(text)), at + len(text)
    word = _matched(_WORD, path, at)
    if word not in ("true", "false"):
        raise ValueError(f"{path!r}: {word or char!r} is no part of a JSONPath")
    return _each(word == "true"), at + len(word)


def _unquoted(text: str) -> str:
    try:
        return str(ast.literal_eval(text))
    except SyntaxError as error:
        raise ValueError(f"{text} is no quoted text: {error}") from error


def _matched(pattern: re.Pattern[str], path: str, at: int) -> str:
    found = pattern.match(path, at)
    return found[0] if found else ""


def _bracket(text: str) -> Step:
    if "," in text:
        parts = [(_bracket(part.strip()),) for part in text.split(",")]
        return lambda values: [one for part in parts for one in _walk(part, values)]
    if key := _KEY.fullmatch(text):
        inner = compiled(f".{key[1]}")
        return lambda values: _walk(inner, values)
    found = _SLICE.fullmatch(":" if text == "*" else text)
    if found is None:
        raise ValueError(f"[{text}] is no index of an array")
    first, last, step = (int(part) if part and part != "-" else None for part in found.groups())
    if found[2] is None:
        # One element, which "-1" counts from the end.
        return _sliced((first, None if first is None or first == -1 else first + 1, step))
    return _sliced((first, last, step))


def _sliced(index: Index) -> Step:
    def one(value: Any) -> Values:
        if not isinstance(value, list):
            raise ValueError(f"a {type(value).__name__} is no array")
        length = len(value)
        low, high, by = index
        low = 0 if low is None else low + length if low < 0 else low
        high = length if high is None else high + length if high < 0 else high
        if low == high:
            return []
        if not (0 <= low < length and 0 <= high <= length and low < high):
            raise ValueError(f"index {low} is out of bounds: the array has {length} elements")
        if by is not None and by <= 0:
            raise ValueError(f"the step of an array must be above 0, not {by}")
        return value[low : high : by or 1]

    return lambda values: [item for v in values if v is not None for item in one(v)]


def _member(name: str) -> Step:
    return lambda values: [v[name] for v in values if isinstance(v, dict) and name in v]


def _each(constant: Any) -> Step:
    return lambda values: [constant for _ in values]


def _text(constant: str) -> Step:
    return lambda values: [constant]


def _children(value: Any) -> Values:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _all(values: Values) -> Values:
    return [child for value in values for child in _children(value)]


def _descendants(values: Values) -> Values:
    """Return every object and array that has something in it, outer ones first."""
    found: Values = []
    for value in values:
        if inside := _children(value):
            found += [value, *_descendants(inside)]
    return found


def _filter(path: str, at: int) -> tuple[Step, int]:
    begin = end = at + len(_FILTER)
    while end < len(path) and path[end] != ")":
        quoted = _matched(_QUOTED, path, end)
        end += len(quoted) or 1
    if path[end : end + 2] != ")]":
        raise ValueError(f"{path!r}: a filter is not closed")
    text = path[begin:end]
    found = _COMPARISON.fullmatch(text)
    if found is None:
        return _kept(_exists(compiled(text))), end + 2
    compare = re2.search if found[2] == "=~" else _OPERATORS.get(found[2])
    if compare is None:
        raise ValueError(f"{path!r}: {found[2]} is no comparison")
    return _kept(_compares(compiled(found[1]), found[2], compiled(found[3]))), end + 2


def _kept(test: Callable[[Any], bool]) -> Step:
    def step(values: Values) -> Values:
        for value in values:
            if not isinstance(value, list):
                raise ValueError("what is no array cannot be filtered")
        return [item for value in values for item in value if test(item)]

    return step


def _exists(steps: tuple[Step, ...]) -> Callable[[Any], bool]:
    def test(item: Any) -> bool:
        try:
            return bool(_walk(steps, [item]))
        except ValueError:
            return False

    return test


def _compares(left: tuple[Step, ...], sign: str, right: tuple[Step, ...]) -> Callable[[Any], bool]:
    def test(item: Any) -> bool:
        sides = _walk(left, [item]), _walk(right, [item])
        if not all(sides):
            return False
        if any(len(side) > 1 for side in sides):
            raise ValueError("a filter compares one element at a time")
        one, other = sides[0][0], sides[1][0]
        if type(one) is not type(other) or not isinstance(one, str | int | float):
            raise ValueError(f"{type(one).__name__} and {type(other).__name__} do not compare")
        if sign == "=~":
            return _matches(other, one)
        return _OPERATORS[sign](one, other)

    return test


def _matches(pattern: Any, text: Any) -> bool:
    if not isinstance(text, str):
        raise ValueError("only texts are compared with =~")
    try:
        return re2.search(pattern, text) is not None
    except re2.error as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from error
