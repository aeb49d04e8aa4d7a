"""What pods may say about where they want to run."""

from __future__ import annotations

from collections.abc import Iterator

from lockstep.api.wire import Json
from lockstep.apiserver.builtin.rules.names import (
    label_value,
    one_of,
    problems,
    qualified_name,
)
from lockstep.apiserver.builtin.rules.selectors import selector
from lockstep.apiserver.schema.causes import Cause, forbidden, invalid, not_supported, required

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def toleration(given: Json, path: str) -> Iterator[Cause]:
    """Return what is wrong with a toleration."""
    key, operator, value = given.get("key"), given.get("operator") or "", given.get("value") or ""
    if key:
        yield from problems(f"{path}.key", key, qualified_name)
    elif operator != "Exists":
        text = (
            'operator must be Exists when `key` is empty, which means "match all values and all '
            'keys"'
        )
        yield invalid(f"{path}.operator", operator, text)
    if given.get("tolerationSeconds") is not None and given.get("effect") != "NoExecute":
        text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield invalid(f"{path}.effect", given.get("effect") or "", text)
    if operator in ("Equal", ""):
        if errors := label_value(value):
            yield invalid(f"{path}.operator", value, ";".join(errors))
    elif operator != "Exists":
        compares = ("Lt", "Gt") if operator in ("Lt", "Gt") else ()
        choices = ("Equal", "Exists", *compares)
        yield not_supported(f"{path}.operator", operator, choices)
    elif value:
        text = "value must be empty when `operator` is 'Exists'"
        yield invalid(f"{path}.operator", value, text)
    effect = given.get("effect")
    if effect and effect not in _EFFECTS:
        yield not_supported(f"{path}.effect", effect, _EFFECTS)


def affinity(given: Json, path: str) -> Iterator[Cause]:
    """Return what is wrong with the affinities of a pod."""
    if nodes := given.get("nodeAffinity"):
        yield from _node_affinity(nodes, f"{path}.nodeAffinity")
    for name in ("podAffinity", "podAntiAffinity"):
        part, at = given.get(name) or {}, f"{path}.{name}"
        for position, term in enumerate(part.get(_REQUIRED) or ()):
            yield from _pod_term(term, f"{at}.{_REQUIRED}[{position}]")
        for position, wish in enumerate(part.get(_PREFERRED) or ()):
            here = f"{at}.{_PREFERRED}[{position}]"
            yield from _weight(wish, here)
            yield from _pod_term(wish.get("podAffinityTerm") or {}, f"{here}.podAffinityTerm")


def _node_affinity(given: Json, path: str) -> Iterator[Cause]:
    if (must := given.get(_REQUIRED)) is not None:
        at = f"{path}.{_REQUIRED}.nodeSelectorTerms"
        terms = must.get("nodeSelectorTerms") or []
        if not terms:
            yield required(at, "must have at least one node selector term")
        for position, term in enumerate(terms):
            yield from _node_term(term, f"{at}[{position}]")
    for position, wish in enumerate(given.get(_PREFERRED) or ()):
        at = f"{path}.{_PREFERRED}[{position}]"
        yield from _weight(wish, at)
        yield from _node_term(wish.get("preference") or {}, f"{at}.preference")


def _weight(wish: Json, path: str) -> list[Cause]:
    weight = wish.get("weight", 0)
    if 1 <= weight <= 100:
        return []
    return [invalid(f"{path}.weight", weight, "must be in the range 1-100")]


def _node_term(term: Json, path: str) -> Iterator[Cause]:
    for position, part in enumerate(term.get("matchExpressions") or ()):
        yield from _requirement(part, f"{path}.matchExpressions[{position}]")


def _requirement(part: Json, path: str) -> Iterator[Cause]:
    operator, values, key = part.get("operator") or "", part.get("values") or [], part.get("key")
    match operator:
        case "In" | "NotIn" if not values:
            text = "must be specified when `operator` is 'In' or 'NotIn'"
            yield required(f"{path}.values", text)
        case "Exists" | "DoesNotExist" if values:
            text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield forbidden(f"{path}.values", text)
        case "Gt" | "Lt" if len(values) != 1:
            text = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            yield required(f"{path}.values", text)
        case "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt":
            pass
        case _:
            yield invalid(f"{path}.operator", operator, "not a valid selector operator")
    yield from (invalid(f"{path}.key", key or "", error) for error in qualified_name(key or ""))
    for position, value in enumerate(values):
        at = f"{path}.values[{position}]"
        yield from problems(at, value, label_value)


def _pod_term(term: Json, path: str) -> Iterator[Cause]:
    yield from selector(term.get("labelSelector"), f"{path}.labelSelector")
    key = term.get("topologyKey") or ""
    if not key:
        yield required(f"{path}.topologyKey", "can not be empty")
    yield from problems(f"{path}.topologyKey", key, qualified_name)


def spread(given: Json, path: str) -> Iterator[Cause]:
    """Return what is wrong with a constraint on how pods spread."""
    skew, when = given.get("maxSkew", 0), given.get("whenUnsatisfiable") or ""
    if skew <= 0:
        yield invalid(f"{path}.maxSkew", skew, "must be greater than zero")
    key = given.get("topologyKey")
    if not key:
        yield required(f"{path}.topologyKey", "can not be empty")
    else:
        yield from problems(f"{path}.topologyKey", key, qualified_name)
    choices = ("DoNotSchedule", "ScheduleAnyway")
    yield from one_of(f"{path}.whenUnsatisfiable", when, choices)
    yield from selector(given.get("labelSelector"), f"{path}.labelSelector")
