"""The quality of service that a pod gets, by its requests and limits."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from lockstep.api.quantity import parse

Json = dict[str, Any]

_COUNTED = ("cpu", "memory")


def quality_of_service(spec: Json) -> str:
    """Return ``Guaranteed``, ``Burstable`` or ``BestEffort``."""
    if spec.get("resources"):
        holders = [spec]
    else:
        holders = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    requests: dict[str, Fraction] = {}
    limits: dict[str, Fraction] = {}
    is_guaranteed = True
    for holder in holders:
        resources = holder.get("resources") or {}
        _add(requests, resources.get("requests"))
        if _add(limits, resources.get("limits")) != len(_COUNTED):
            is_guaranteed = False
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if is_guaranteed and requests == limits else "Burstable"


def _add(sums: dict[str, Fraction], amounts: Json | None) -> int:
    """Add the counted resources of *amounts* to *sums*; return how many there were."""
    found = 0
    for name in _COUNTED if amounts else ():
        given = (amounts or {}).get(name)
        try:
            value = parse(str(given)) if given is not None else Fraction(0)
        except ValueError:
            continue
        if value > 0:
            sums[name] = sums.get(name, Fraction(0)) + value
            found += 1
    return found
