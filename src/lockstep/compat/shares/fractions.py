"""KAI's and Run:ai's fractions of cards: annotations of the pod, for its first container."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Final

from lockstep.api import names
from lockstep.api.wire import Json
from lockstep.compat.shares.words import (
    FRACTION,
    FRACTION_CARDS,
    FRACTION_CONTAINER,
    FRACTION_MEMORY,
    KAI_SCHEDULER,
)
from lockstep.compat.translation import Refused

_SCHEDULERS: Final = ("", "default-scheduler", KAI_SCHEDULER, names.SCHEDULER_NAME)


def asks(pod: Json) -> bool:
    """Tell whether a pod asks for a fraction of a card."""
    given = _annotations(pod)
    return FRACTION in given or (
        FRACTION_MEMORY in given and (pod.get("spec") or {}).get("schedulerName") == KAI_SCHEDULER
    )


def translated(pod: Json, card_memory: Callable[[], int | None]) -> Json:
    """Return the pod with our own resources.

    Raises:
        Refused: when it asks for what cannot be held.
    """
    given = _annotations(pod)
    found = copy.deepcopy(pod)
    spec = found["spec"]
    scheduler = spec.get("schedulerName", "")
    if scheduler not in _SCHEDULERS:
        raise Refused("spec.schedulerName", scheduler, f"leave it out, or say {KAI_SCHEDULER}")
    if FRACTION in given and FRACTION_MEMORY in given:
        at = f"metadata.annotations[{FRACTION_MEMORY}]"
        raise Refused(at, given[FRACTION_MEMORY], f"leave it out, or leave out {FRACTION}")
    ours = _of_fraction(given, card_memory) if FRACTION in given else _of_memory(given)
    cards = _whole(given, FRACTION_CARDS) if FRACTION_CARDS in given else 1
    if cards > 1:
        ours[names.GPU_CARDS] = cards
    container = _container(spec["containers"], given.get(FRACTION_CONTAINER, ""))
    resources = container.setdefault("resources", {})
    limits = {name: str(amount) for name, amount in ours.items()}
    resources["limits"] = {**(resources.get("limits") or {}), **limits}
    spec["schedulerName"] = names.SCHEDULER_NAME
    told = found["metadata"].setdefault("annotations", {})
    told[names.DIALECT_ANNOTATION] = "kai"
    told.setdefault(names.GPU_POLICY_ANNOTATION, "burst")
    return found


def _annotations(pod: Json) -> Mapping[str, str]:
    found = (pod.get("metadata") or {}).get("annotations")
    return found if isinstance(found, dict) else {}


def _of_fraction(given: Mapping[str, str], card_memory: Callable[[], int | None]) -> dict[str, int]:
    at = f"metadata.annotations[{FRACTION}]"
    try:
        part = Fraction(given[FRACTION])
    except (ValueError, ZeroDivisionError):
        part = Fraction(0)
    hundredths = int(part * 100)
    if not 0 < hundredths < 100 or part * 100 != hundredths:
        raise Refused(at, given[FRACTION], "a fraction of a card, 0.01 to 0.99")
    whole = card_memory()
    if whole is None:
        remedy = f"the cluster's cards differ in memory, or are not known; give {FRACTION_MEMORY}"
        raise Refused(at, given[FRACTION], remedy)
    return {names.GPU_MEMORY: whole * hundredths // 100, names.GPU_COMPUTE: hundredths}


def _of_memory(given: Mapping[str, str]) -> dict[str, int]:
    return {names.GPU_MEMORY: _whole(given, FRACTION_MEMORY)}


def _whole(given: Mapping[str, str], name: str) -> int:
    if not given[name].isdecimal() or not int(given[name]):
        raise Refused(f"metadata.annotations[{name}]", given[name], "a whole number is needed")
    return int(given[name])


def _container(containers: list[Json], name: str) -> Json:
    for one in containers:
        if not name or one.get("name") == name:
            return one
    at = f"metadata.annotations[{FRACTION_CONTAINER}]"
    raise Refused(at, name, "no container of the pod is called so")
