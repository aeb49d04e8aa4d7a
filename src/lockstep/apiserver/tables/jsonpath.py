"""The JSONPath that printer columns are written in, as far as Kubernetes allows it there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

Step = Callable[[Any], Iterator[Any]]

_STEP = re.compile(
    r"""\.?\[\?\(\s*@(?P<key>(?:\.[\w-]+)+)\s*(?P<op>==|!=)\s*(?P<literal>"[^"]*"|'[^']*'|[^)]+?)\s*\)\]
      | \.?\[(?P<index>-?\d+)\]
      | \.?\[(?P<star>\*)\]
      | \.?\[(?P<quoted>"[^"]*"|'[^']*')\]
      | \.(?P<name>(?:[^.\[\]\\]|\\.)+)""",
    re.VERBOSE,
)


@lru_cache(maxsize=1024)
def compiled(path: str) -> tuple[Step, ...]:
    """Return the steps of *path*, such as ``.status.conditions[?(@.type=="Ready")].status``.

    Raises:
        ValueError: when it is not a path of the kind that printer columns may have.
    """
    steps: list[Step] = []
    position = 0
    while position < len(path):
        match = _STEP.match(path, position)
        if match is None:
            raise ValueError(f"{path!r} is no JSONPath that a column can have")
        steps.append(_step(match))
        position = match.end()
    return tuple(steps)


def find(path: str, obj: Any) -> Iterator[Any]:
    """Yield what *path* leads to in *obj*.

    Raises:
        ValueError: when it is not a path of the kind that printer columns may have.
    """
    values: Iterator[Any] = iter((obj,))
    for step in compiled(path):
        values = _through(step, values)
    return values


def _through(step: Step, values: Iterator[Any]) -> Iterator[Any]:
    for value in values:
        yield from step(value)


def _step(match: re.Match[str]) -> Step:
    if match["key"]:
        return _filter(match["key"][1:].split("."), match["op"] == "==", _literal(match["literal"]))
    if match["index"]:
        return _at(int(match["index"]))
    if match["star"] or match["name"] == "*":
        return _all
    name = match["quoted"][1:-1] if match["quoted"] else re.sub(r"\\(.)", r"\1", match["name"])
    return _member(name)


def _literal(text: str) -> Any:
    if text[:1] in "\"'":
        return text[1:-1]
    known: dict[str, Any] = {"true": True, "false": False}
    return known[text] if text in known else float(text)


def _member(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _at(position: int) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= position < len(value):
            yield value[position]

    return step


def _all(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        yield from value
    elif isinstance(value, dict):
        yield from value.values()


def _filter(path: list[str], wants_equal: bool, literal: Any) -> Step:
    def step(value: Any) -> Iterator[Any]:
        for item in value if isinstance(value, list) else ():
            found = item
            for name in path:
                found = found.get(name) if isinstance(found, dict) else None
            if found is not None and (found == literal) == wants_equal:
                yield item

    return step
