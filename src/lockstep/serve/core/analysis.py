"""Analyses of a release in Argo Rollouts' words: queries, and what their answers must be."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lockstep.api import duration
from lockstep.compat.kserve.problem import Problem
from lockstep.compat.kserve.scaling import check_query

_ARGUMENT: Final = re.compile(r"\{\{\s*args\.([\w-]+)\s*\}\}")
_TERM: Final = re.compile(
    r"^(?P<not>!?)\s*(?P<left>result(?:\[\d+\])?|len\(result\)|isNaN\(result(?:\[\d+\])?\)|"
    r"-?\d+(?:\.\d+)?)\s*(?:(?P<op>==|!=|<=|>=|<|>)\s*(?P<right>result(?:\[\d+\])?|len\(result\)|"
    r"-?\d+(?:\.\d+)?))?$"
)
_FIELDS: Final = frozenset(
    (
        "name",
        "interval",
        "count",
        "initialDelay",
        "failureLimit",
        "inconclusiveLimit",
        "consecutiveErrorLimit",
        "successCondition",
        "failureCondition",
        "provider",
    )
)
ERRORS: Final = 4
"""Queries in a row that may have no answer before the analysis fails, as with Argo."""


@dataclass(frozen=True, slots=True)
class Query:
    """One thing that is asked of Prometheus, again and again."""

    name: str
    address: str
    query: str
    success: str = ""
    failure: str = ""
    interval: float = 10.0
    count: int = 1
    failures: int = 0
    """Answers that may fail."""
    errors: int = ERRORS
    delay: float = 0.0


@dataclass(frozen=True, slots=True)
class Measured:
    """What a query has said so far; kept in the service's status."""

    at: float = 0.0
    """When it was asked last."""
    good: int = 0
    bad: int = 0
    errors: int = 0
    """Queries in a row without an answer."""
    last: str = ""


def queries(where: str, metrics: Any, arguments: Mapping[str, str]) -> tuple[Query, ...]:
    """Return the queries of an analysis that is written as a list of metrics.

    Raises:
        Problem: when one cannot be asked; it names the field.
    """
    if not isinstance(metrics, list) or not metrics or len(metrics) > 20:
        raise Problem(where, metrics, "a list of 1 to 20 metrics is needed")
    return tuple(_query(f"{where}[{number}]", one, arguments) for number, one in enumerate(metrics))


def _query(where: str, given: Any, arguments: Mapping[str, str]) -> Query:
    if not isinstance(given, dict) or set(given) - _FIELDS:
        raise Problem(where, given, f"known are {', '.join(sorted(_FIELDS))}")
    provider = given.get("provider") or {}
    if set(provider) != {"prometheus"}:
        raise Problem(f"{where}.provider", ", ".join(provider) or "none", "prometheus is asked")
    address = _filled(where, str(provider["prometheus"].get("address") or ""), arguments)
    text = _filled(where, str(provider["prometheus"].get("query") or ""), arguments)
    check_query(f"{where}.provider.prometheus", address, text)
    success, failure = given.get("successCondition") or "", given.get("failureCondition") or ""
    if not success and not failure:
        raise Problem(f"{where}.successCondition", "", "a condition is needed: result[0] < 0.05")
    for name, condition in (("successCondition", success), ("failureCondition", failure)):
        if condition:
            try:
                holds(condition, [0.0] * 10)
            except ValueError as error:
                raise Problem(f"{where}.{name}", condition, str(error)) from None
    return Query(
        name=str(given.get("name") or where),
        address=address,
        query=text,
        success=success,
        failure=failure,
        interval=_seconds(f"{where}.interval", given.get("interval"), 10.0),
        count=_count(f"{where}.count", given.get("count"), 1, 1),
        failures=_count(f"{where}.failureLimit", given.get("failureLimit"), 0, 0),
        errors=_count(
            f"{where}.consecutiveErrorLimit", given.get("consecutiveErrorLimit"), ERRORS, 0
        ),
        delay=_seconds(f"{where}.initialDelay", given.get("initialDelay"), 0.0),
    )


def _filled(where: str, text: str, arguments: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        if match[1] not in arguments:
            there = ", ".join(sorted(arguments))
            raise Problem(f"{where}.args", match[1], f"no such argument; there are: {there}")
        return arguments[match[1]]

    return _ARGUMENT.sub(value, text)


def _seconds(where: str, value: Any, default: float) -> float:
    if value is None:
        return default
    try:
        return max(1.0, duration.parse(str(value)))
    except ValueError:
        raise Problem(where, value, "a time such as 30s is needed") from None


def _count(where: str, value: Any, default: int, least: int) -> int:
    if value is None:
        return default
    try:
        found = int(str(value))
    except ValueError:
        found = least - 1
    if found < least:
        raise Problem(where, value, f"a whole number from {least} is needed")
    return found


def holds(condition: str, result: Sequence[float]) -> bool:
    """Return whether a condition holds: comparisons of ``result[0]`` joined by ``&&`` and ``||``.

    Raises:
        ValueError: when it cannot be read, or asks for a value that is not there.
    """
    return any(
        all(_term(term.strip(), result) for term in part.split("&&"))
        for part in condition.split("||")
    )


def _term(text: str, result: Sequence[float]) -> bool:
    match = _TERM.match(text.removeprefix("(").removesuffix(")") if text[:1] == "(" else text)
    if match is None:
        raise ValueError("comparisons of result[0], len(result) and numbers are known")
    left = _value(match["left"], result)
    if match["op"] is None:
        return bool(left) is not bool(match["not"])
    right = _value(match["right"], result)
    found = {
        "==": left == right,
        "!=": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[match["op"]]
    return found is not bool(match["not"])


def _value(text: str, result: Sequence[float]) -> float:
    if text == "len(result)":
        return float(len(result))
    if text.startswith("isNaN("):
        return float(math.isnan(_value(text[6:-1], result)))
    if not text.startswith("result"):
        return float(text)
    place = int(text[7:-1]) if "[" in text else 0
    if place >= len(result):
        raise ValueError(f"the query has {len(result)} values")
    return result[place]


def due(query: Query, measured: Measured, since: float, now: float) -> bool:
    """Return whether a query is to be asked *now*, in a step that began at *since*."""
    if measured.good + measured.bad >= query.count:
        return False
    if measured.at == 0.0:
        return now >= since + query.delay
    return now >= measured.at + query.interval


def judged(query: Query, measured: Measured, answer: Sequence[float] | str, now: float) -> Measured:
    """Return what is known after an *answer*, or after words that say why there was none."""
    if isinstance(answer, str):
        return Measured(now, measured.good, measured.bad, measured.errors + 1, answer[:200])
    shown = "[" + ", ".join(f"{one:g}" for one in answer[:5]) + "]"
    try:
        failed = bool(query.failure) and holds(query.failure, answer)
        good = not failed and (not query.success or holds(query.success, answer))
    except ValueError as error:
        return Measured(now, measured.good, measured.bad, measured.errors + 1, str(error))
    return Measured(now, measured.good + good, measured.bad + (not good), 0, shown)


def verdict(query: Query, measured: Measured) -> bool | None:
    """Return whether a query has passed or failed; None while it goes on."""
    if measured.bad > query.failures or measured.errors > query.errors:
        return False
    return True if measured.good + measured.bad >= query.count else None


def told(query: Query, measured: Measured) -> str:
    """Return in words what a query has said."""
    condition = query.success or f"not {query.failure}"
    counts = f"{measured.good} good, {measured.bad} bad of {query.count}"
    return f"{query.name}: {counts}, last {measured.last or 'none'}, needed: {condition}"
