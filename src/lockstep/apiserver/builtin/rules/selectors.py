"""What label selectors may look like, and what they must match."""

from __future__ import annotations

from collections.abc import Iterator

from lockstep.api.meta import LabelSelector
from lockstep.api.selectors import SelectorError, from_selector
from lockstep.api.wire import Json, convert
from lockstep.apiserver.builtin.rules.metadata import labels
from lockstep.apiserver.builtin.rules.names import label_value, problems, qualified_name
from lockstep.apiserver.schema.causes import Cause, forbidden, invalid, not_supported, required

# What is added where a selector cannot be read, by kind; of others nothing is.
_UNREADABLE = {"deployment": "invalid label selector", "statefulset": ""}
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def selector(given: Json | None, path: str) -> Iterator[Cause]:
    """Return what is wrong with a label selector."""
    if given is None:
        return
    yield from labels(given.get("matchLabels"), f"{path}.matchLabels")
    for position, part in enumerate(given.get("matchExpressions") or ()):
        yield from _expression(part, f"{path}.matchExpressions[{position}]")


def _expression(part: Json, path: str) -> Iterator[Cause]:
    operator, values = part.get("operator") or "", part.get("values") or []
    if operator in ("In", "NotIn") and not values:
        text = "must be specified when `operator` is 'In' or 'NotIn'"
        yield required(f"{path}.values", text)
    elif operator in ("Exists", "DoesNotExist") and values:
        text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        yield forbidden(f"{path}.values", text)
    elif operator not in _OPERATORS:
        yield invalid(f"{path}.operator", operator, "not a valid selector operator")
    key = part.get("key") or ""
    yield from problems(f"{path}.key", key, qualified_name)
    for position, value in enumerate(values):
        at = f"{path}.values[{position}]"
        yield from problems(at, value, label_value)


def required_selector(spec: Json, kind: str, path: str) -> list[Cause]:
    """Return what is wrong with a selector that must be there and select its own template."""
    given = spec.get("selector")
    if given is None:
        # Nothing selects nothing, which the template's labels then do not match either.
        return [required(f"{path}.selector"), *selects_template(spec, path)]
    causes = list(selector(given, f"{path}.selector"))
    if causes and kind in _UNREADABLE:
        shown = invalid(f"{path}.selector", given, _UNREADABLE[kind])
        return [*causes, shown]
    if not given.get("matchLabels") and not given.get("matchExpressions"):
        text = f"empty selector is invalid for {kind}"
        causes.append(invalid(f"{path}.selector", given, text))
    return [*causes, *selects_template(spec, path)]


def selects_template(spec: Json, path: str) -> list[Cause]:
    """Return that the selector does not match the template's labels, if so."""
    given = spec.get("selector")
    found = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    if given is not None and _matches(given, found):
        return []
    text = "`selector` does not match template `labels`"
    return [invalid(f"{path}.template.metadata.labels", found or None, text)]


def _matches(given: Json, found: Json) -> bool:
    try:
        return from_selector(convert(given, LabelSelector)).matches(found)
    except (SelectorError, ValueError):
        # What is wrong with the selector itself has been said already.
        return True


def restart_policy(spec: Json, kind: str, path: str) -> Iterator[Cause]:
    """Return that pods of a set must restart and run for ever, where they would not."""
    template = (spec.get("template") or {}).get("spec") or {}
    policy, at = template.get("restartPolicy"), f"{path}.template.spec"
    if policy != "Always":
        yield not_supported(f"{at}.restartPolicy", policy, ("Always",))
    if template.get("activeDeadlineSeconds") is not None:
        text = f"activeDeadlineSeconds in {kind} is not Supported"
        yield forbidden(f"{at}.activeDeadlineSeconds", text)
