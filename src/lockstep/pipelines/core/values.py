"""Expressions in CEL and strings that hold them, as ``${{ inputs.rows }}``.

An expression reaches nothing but the variables that it is given. How much it may cost is bounded
before it runs: by its length, and by the size of what it sees for each loop that it has.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from lockstep.pipelines.core import jsonpath

if TYPE_CHECKING:
    from cel import Program

OPEN: Final = "${{"
_TOKEN: Final = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[{}]""", re.DOTALL)
_TASK: Final = re.compile(r"\btasks(?:\.([A-Za-z_]\w*)|\[\s*(?:'([^']*)'|\"([^\"]*)\")\s*\])")
_LOOP: Final = re.compile(r"\.\s*(?:all|exists|exists_one|map|filter)\s*\(")
LENGTH: Final = 16384
"""Most characters of an expression."""
SEQUENCE: Final = 10_000
"""Most items of a sequence of numbers."""
_COST: Final = 4_000_000.0


class BadExpression(ValueError):
    """An expression that cannot be used, or that has no value here; the message says why."""


def evaluate(text: str, variables: Mapping[str, Any]) -> Any:
    """Return the value of the expression *text* as JSON has it.

    Raises:
        BadExpression: when it cannot be compiled, costs too much, or has no value.
    """
    import cel

    program = compiled(text)
    seen = {name: variables[name] for name in program.variables() if name in variables}
    _require_cheap(text, seen)
    try:
        context = cel.Context(variables=seen, functions=_functions(program))
        return _plain(program.execute(context))
    except BadExpression:
        raise
    except Exception as error:
        words = f"there is no {error}" if isinstance(error, KeyError) else str(error)
        raise BadExpression(f"{text!r}: {words}") from error


@lru_cache(4096)
def compiled(text: str) -> Program:
    """Return the program of an expression.

    Raises:
        BadExpression: when it is too long or no CEL.
    """
    import cel

    if len(text) > LENGTH:
        raise BadExpression(f"an expression has {len(text)} characters; at most {LENGTH} may be")
    try:
        return cel.compile(text)
    except ValueError as error:
        raise BadExpression(f"{text!r}: {error}") from error


def render(tree: Any, variables: Mapping[str, Any], guard: Callable[[str], str] = str) -> Any:
    """Return *tree* with the expressions in its strings replaced by their values.

    A string that is one expression becomes that value with its type. What is a text in a
    value goes through *guard*; what stands in *tree* itself does not.

    Raises:
        BadExpression: when one of them has no value.
    """
    if isinstance(tree, str):
        return _string(tree, variables, guard)
    if isinstance(tree, list):
        return [render(one, variables, guard) for one in tree]
    if isinstance(tree, dict):
        return {key: render(value, variables, guard) for key, value in tree.items()}
    return tree


def expressions(tree: Any) -> Iterator[str]:
    """Yield every expression in the strings of *tree*."""
    if isinstance(tree, str):
        yield from (part for part, is_code in _parts(tree) if is_code)
    elif isinstance(tree, list):
        for one in tree:
            yield from expressions(one)
    elif isinstance(tree, dict):
        for one in tree.values():
            yield from expressions(one)


def tasks_in(text: str) -> set[str]:
    """Return the names of the tasks that an expression refers to."""
    return {a or b or c for a, b, c in _TASK.findall(text)}


def text_of(value: Any) -> str:
    """Return *value* as it stands in a text: strings as they are, else JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _string(text: str, variables: Mapping[str, Any], guard: Callable[[str], str]) -> Any:
    if OPEN not in text:
        return text
    parts = _parts(text)
    if len(parts) == 1:
        found = evaluate(parts[0][0], variables)
        if isinstance(found, list):
            return [guard(one) if isinstance(one, str) else one for one in found]
        return guard(found) if isinstance(found, str) else found
    return "".join(
        guard(text_of(evaluate(part, variables))) if is_code else part for part, is_code in parts
    )


@lru_cache(4096)
def _parts(text: str) -> tuple[tuple[str, bool], ...]:
    """Return the parts of *text*, and of each whether it is an expression."""
    parts: list[tuple[str, bool]] = []
    at = 0
    while (start := text.find(OPEN, at)) >= 0:
        end = _end(text, start + len(OPEN))
        if start > at:
            parts.append((text[at:start], False))
        parts.append((text[start + len(OPEN) : end].strip(), True))
        at = end + 2
    if at < len(text):
        parts.append((text[at:], False))
    return tuple(parts)


def _end(text: str, start: int) -> int:
    """Return where the expression that begins at *start* ends: at its own ``}}``."""
    depth = 0
    for token in _TOKEN.finditer(text, start):
        if token[0] == "{":
            depth += 1
        elif token[0] == "}":
            if depth == 0 and text.startswith("}}", token.start()):
                return token.start()
            depth -= 1
    raise BadExpression(f"{text[start - 3 : start + 100]!r}: the expression has no end; write }}}}")


def _functions(program: Program) -> dict[str, Any]:
    have = {
        "json": _json,
        "parseJson": _parse,
        "parsed": _parsed,
        "number": _number,
        "toText": text_of,
        "present": _present,
        "flat": flat,
        "mounted": _mounted,
        "listed": _listed,
        "sequence": _sequence,
        "together": _together,
        "perItem": _per_item,
        "jsonpath": jsonpath.find,
    }
    return {name: have[name] for name in program.functions() if name in have}


def _json(value: Any) -> str:
    # The language keeps no order of keys, and the same value must give the same text.
    return json.dumps(_plain(value), ensure_ascii=False, sort_keys=True)


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise BadExpression(f"parseJson: {text[:100]!r} is no JSON: {error}") from error


def _parsed(value: Any) -> Any:
    """Return what a text says as JSON; anything else as it is."""
    return _parse(value) if isinstance(value, str) else value


def flat(value: Any) -> list[Any]:
    """Return what is in *value*, a list of lists to any depth, in order; one thing as a list."""
    if not isinstance(value, list | tuple):
        return [value]
    return [one for part in value for one in flat(part)]


def _present(value: dict[str, Any]) -> dict[str, Any]:
    """Return a map without what is null in it."""
    return {key: one for key, one in value.items() if one is not None}


def _mounted(uri: str) -> str:
    """Return where the files of a store lie in a container: s3://B/K is /s3/B/K, gs:// /gcs/."""
    scheme, _, rest = uri.partition("://")
    return f"/{'gcs' if scheme == 'gs' else scheme}/{rest}"


def _listed(value: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a map as a list of names and values."""
    return [{"name": name, "value": value[name]} for name in sorted(value)]


def _together(value: Any) -> Any:
    """Return the results of a loop, those that are JSON as such; what is no list as it is."""
    return [_json_or_text(one) for one in value] if isinstance(value, list) else value


def _json_or_text(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _per_item(value: dict[str, Any]) -> Any:
    """Return the parameters of a loop by item; those of a step as a list of names and values."""
    own = {name: one for name, one in value.items() if name != "result"}
    lists = {name: one for name, one in own.items() if isinstance(one, list)}
    if not lists:
        return _listed(own)
    count = max(len(one) for one in lists.values())
    return [{name: one[n] for name, one in lists.items() if n < len(one)} for n in range(count)]


def _sequence(start: str, end: str, count: str, pattern: str) -> list[str]:
    """Return numbers from start to end, or so many of them, each shown by a pattern as %02d."""
    try:
        first = int(start or 0)
        last = int(end) if end else first + int(count or 0) - 1
    except ValueError as error:
        raise BadExpression(f"sequence: {error}") from error
    if abs(last - first) > SEQUENCE:
        raise BadExpression(f"sequence: {abs(last - first)} items; at most {SEQUENCE} may be")
    if not end and last < first:
        return []
    step = 1 if last >= first else -1
    return [pattern % number for number in range(first, last + step, step)]


def _number(text: Any) -> int | float:
    if isinstance(text, bool) or not isinstance(text, str):
        return float(text)
    try:
        return int(text)
    except ValueError:
        return float(text)


def _plain(value: Any) -> Any:
    """Return *value* as JSON has it.

    Raises:
        BadExpression: when JSON has nothing like it.
    """
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    raise BadExpression(f"the value is of a type that JSON lacks: {type(value).__name__}")


def _require_cheap(text: str, variables: Mapping[str, Any]) -> None:
    loops = len(_LOOP.findall(text))
    if not loops:
        return
    parts = 1.0 + len(text) / 16 + _weight(list(variables.values()), _COST)
    if parts ** (loops + 1) > _COST * 1000 or loops > 3:
        raise BadExpression(f"{text[:200]!r}: costs too much over a value of this size")


def _weight(value: Any, limit: float) -> float:
    parts, left = 0.0, [value]
    while left and parts <= limit:
        one = left.pop()
        parts += 1
        if isinstance(one, dict):
            left.extend(one.values())
        elif isinstance(one, list):
            left.extend(one)
        elif isinstance(one, str):
            parts += len(one) / 64
    return parts
