"""What pods may say about where they want to run."""

from __future__ import annotations

from typing import Any

from lockstep.apiserver.builtin.rules.names import label_value, qualified_name
from lockstep.apiserver.builtin.rules.selectors import selector
from lockstep.apiserver.schema.causes import Cause, forbidden, invalid, not_supported, required

Json = dict[str, Any]

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def toleration(given: Json, path: str) -> list[Cause]:
    """Return what is wrong with a toleration."""
    causes: list[Cause] = []
    key, operator, value = given.get("key"), given.get("operator") or "", given.get("value") or ""
    if key:
        causes += [invalid(f"{path}.key", key, error) for error in qualified_name(key)]
    elif operator != "Exists":
        text = (
            'operator must be Exists when `key` is empty, which means "match all values and all '
            'keys"'
        )
        causes.append(invalid(f"{path}.operator", operator, text))
    if given.get("tolerationSeconds") is not None and given.get("effect") != "NoExecute":
        text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        causes.append(invalid(f"{path}.effect", given.get("effect") or "", text))
    if operator in ("Equal", ""):
        if errors := label_value(value):
            causes.append(invalid(f"{path}.operator", value, ";".join(errors)))
    elif operator != "Exists":
        compares = ("Lt", "Gt") if operator in ("Lt", "Gt") else ()
        choices = ("Equal", "Exists", *compares)
        causes.append(not_supported(f"{path}.operator", operator, choices))
    elif value:
        text = "value must be empty when `operator` is 'Exists'"
        causes.append(invalid(f"{path}.operator", value, text))
    effect = given.get("effect")
    if effect and effect not in _EFFECTS:
        causes.append(not_supported(f"{path}.effect", effect, _EFFECTS))
    return causes


def affinity(given: Json, path: str) -> list[Cause]:
    """Return what is wrong with the affinities of a pod."""
    causes: list[Cause] = []
    if nodes := given.get("nodeAffinity"):
        causes += _node_affinity(nodes, f"{path}.nodeAffinity")
    for name in ("podAffinity", "podAntiAffinity"):
        part, at = given.get(name) or {}, f"{path}.{name}"
        for position, term in enumerate(part.get(_REQUIRED) or ()):
            causes += _pod_term(term, f"{at}.{_REQUIRED}[{position}]")
        for position, wish in enumerate(part.get(_PREFERRED) or ()):
            here = f"{at}.{_PREFERRED}[{position}]"
            causes += _weight(wish, here)
            causes += _pod_term(wish.get("podAffinityTerm") or {}, f"{here}.podAffinityTerm")
    return causes


def _node_affinity(given: Json, path: str) -> list[Cause]:
    causes: list[Cause] = []
    if (must := given.get(_REQUIRED)) is not None:
        at = f"{path}.{_REQUIRED}.nodeSelectorTerms"
        terms = must.get("nodeSelectorTerms") or []
        if not terms:
            causes.append(required(at, "must have at least one node selector term"))
        for position, term in enumerate(terms):
            causes += _node_term(term, f"{at}[{position}]")
    for position, wish in enumerate(given.get(_PREFERRED) or ()):
        at = f"{path}.{_PREFERRED}[{position}]"
        causes += _weight(wish, at)
        causes += _node_term(wish.get("preference") or {}, f"{at}.preference")
    return causes


def _weight(wish: Json, path: str) -> list[Cause]:
    weight = wish.get("weight", 0)
    if 1 <= weight <= 100:
        return []
    return [invalid(f"{path}.weight", weight, "must be in the range 1-100")]


def _node_term(term: Json, path: str) -> list[Cause]:
    causes: list[Cause] = []
    for position, part in enumerate(term.get("matchExpressions") or ()):
        causes += _requirement(part, f"{path}.matchExpressions[{position}]")
    return causes


def _requirement(part: Json, path: str) -> list[Cause]:
    causes: list[Cause] = []
    operator, values, key = part.get("operator") or "", part.get("values") or [], part.get("key")
    match operator:
        case "In" | "NotIn" if not values:
            text = "must be specified when `operator` is 'In' or 'NotIn'"
            causes.append(required(f"{path}.values", text))
        case "Exists" | "DoesNotExist" if values:
            text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            causes.append(forbidden(f"{path}.values", text))
        case "Gt" | "Lt" if len(values) != 1:
            text = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            causes.append(required(f"{path}.values", text))
        case "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt":
            pass
        case _:
            causes.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    causes += [invalid(f"{path}.key", key or "", error) for error in qualified_name(key or "")]
    for position, value in enumerate(values):
        at = f"{path}.values[{position}]"
        causes += [invalid(at, value, error) for error in label_value(value)]
    return causes


def _pod_term(term: Json, path: str) -> list[Cause]:
    causes = selector(term.get("labelSelector"), f"{path}.labelSelector")
    key = term.get("topologyKey") or ""
    if not key:
        causes.append(required(f"{path}.topologyKey", "can not be empty"))
    return [*causes, *(invalid(f"{path}.topologyKey", key, e) for e in qualified_name(key))]


def spread(given: Json, path: str) -> list[Cause]:
    """Return what is wrong with a constraint on how pods spread."""
    causes: list[Cause] = []
    skew, when = given.get("maxSkew", 0), given.get("whenUnsatisfiable") or ""
    if skew <= 0:
        causes.append(invalid(f"{path}.maxSkew", skew, "must be greater than zero"))
    key = given.get("topologyKey")
    if not key:
        causes.append(required(f"{path}.topologyKey", "can not be empty"))
    else:
        causes += [invalid(f"{path}.topologyKey", key, error) for error in qualified_name(key)]
    choices = ("DoNotSchedule", "ScheduleAnyway")
    if when not in choices:
        causes.append(not_supported(f"{path}.whenUnsatisfiable", when, choices))
    return [*causes, *selector(given.get("labelSelector"), f"{path}.labelSelector")]
