"""The quality of service that a pod gets, by its requests and limits."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from lockstep.api.quantity import parse
from lockstep.api.wire import Json

Amounts = tuple[str | None, ...]
"""Of each counted resource, in their order."""

_COUNTED = ("cpu", "memory")


def quality_of_service(spec: Json) -> str:
    """Return ``Guaranteed``, ``Burstable`` or ``BestEffort``."""
    if spec.get("resources"):
        holders = [spec]
    else:
        holders = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    return _quality(tuple(_counted(holder.get("resources") or {}) for holder in holders))


def _counted(resources: Json) -> tuple[Amounts, Amounts]:
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    return _texts(requests), _texts(limits)


def _texts(amounts: Json) -> Amounts:
    return tuple([None if (v := amounts.get(name)) is None else str(v) for name in _COUNTED])


@lru_cache(maxsize=1024)
def _quality(holders: tuple[tuple[Amounts, Amounts], ...]) -> str:
    # Pods come by the hundred from one template, so most answers are known.
    requests: dict[str, Fraction] = {}
    limits: dict[str, Fraction] = {}
    is_guaranteed = True
    for requested, limited in holders:
        _add(requests, requested)
        if _add(limits, limited) != len(_COUNTED):
            is_guaranteed = False
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if is_guaranteed and requests == limits else "Burstable"


def _add(sums: dict[str, Fraction], amounts: Amounts) -> int:
    """Add the counted resources of *amounts* to *sums*; return how many there were."""
    found = 0
    for name, given in zip(_COUNTED, amounts, strict=True):
        try:
            value = parse(given) if given is not None else Fraction(0)
        except ValueError:
            continue
        if value > 0:
            sums[name] = sums.get(name, Fraction(0)) + value
            found += 1
    return found
