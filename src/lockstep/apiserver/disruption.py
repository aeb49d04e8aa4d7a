"""Whether a pod may be evicted, by the disruption budgets that protect it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from lockstep.api.meta import LabelSelector
from lockstep.api.selectors import LabelMatch, SelectorError, from_selector
from lockstep.api.wire import Json, convert
from lockstep.apiserver.crds import set_condition
from lockstep.apiserver.deletion import FINISHED


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a budget allows one more disruption, and the numbers behind it."""

    allowed: bool
    desired: int
    healthy: int


def selector_of(budget: Json) -> LabelMatch:
    """Return which pods *budget* protects: none, if its selector cannot be read."""
    found = (budget.get("spec") or {}).get("selector")
    try:
        return from_selector(None if found is None else convert(found, LabelSelector))
    except (SelectorError, msgspec.ValidationError):
        return LabelMatch(nothing=True)


def verdict(budget: Json, pod: Json, protected: Sequence[Json]) -> Verdict:
    """Return what *budget* says to the eviction of *pod*, one of the pods *protected* by it."""
    spec = budget.get("spec") or {}
    alive = [p for p in protected if _phase(p) not in FINISHED]
    healthy = sum(map(is_healthy, alive))
    desired = _desired(spec, len(alive))
    if is_healthy(pod):
        return Verdict(healthy - 1 >= desired, desired, healthy)
    # A pod that is not ready takes no requests, but may be about to: the budget must be kept
    # already.
    lenient = spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow"
    return Verdict(lenient or healthy >= desired, desired, healthy)


def status_of(budget: Json, protected: Sequence[Json], now: str) -> Json:
    """Return the status of *budget*, given the pods that it protects."""
    alive = [p for p in protected if _phase(p) not in FINISHED]
    healthy = sum(map(is_healthy, alive))
    desired = _desired(budget.get("spec") or {}, len(alive))
    allowed = max(healthy - desired, 0) if alive else 0
    before = budget.get("status") or {}
    conditions: list[Json] = [dict(c) for c in before.get("conditions") or ()]
    set_condition(
        conditions,
        "DisruptionAllowed",
        "True" if allowed else "False",
        reason="SufficientPods" if allowed else "InsufficientPods",
        message="",
        now=now,
    )
    for condition in conditions:
        condition["observedGeneration"] = budget["metadata"].get("generation", 0)
    return {
        **before,
        "observedGeneration": budget["metadata"].get("generation", 0),
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": len(alive),
        "conditions": conditions,
    }


def needs_no_budget(pod: Json) -> bool:
    """Return whether a pod's eviction disrupts nothing: it has ended or never began."""
    return _phase(pod) in (*FINISHED, "Pending") or bool(pod["metadata"].get("deletionTimestamp"))


def is_healthy(pod: Json) -> bool:
    """Return whether a pod is ready and meant to stay."""
    if pod["metadata"].get("deletionTimestamp"):
        return False
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)


def _phase(pod: Json) -> str:
    phase: str = (pod.get("status") or {}).get("phase") or ""
    return phase


def _desired(spec: Json, expected: int) -> int:
    if (least := spec.get("minAvailable")) is not None:
        return _number(least, expected)
    if (most := spec.get("maxUnavailable")) is not None:
        return max(expected - _number(most, expected), 0)
    return 0


def _number(value: int | str, of: int) -> int:
    """Return a number, or a percentage rounded up, as the disruption controller reads them."""
    if isinstance(value, int):
        return value
    return math.ceil(int(value.rstrip("%")) * of / 100)
