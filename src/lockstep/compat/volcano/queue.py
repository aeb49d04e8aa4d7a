"""Volcano's queues as ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta

from lockstep.api.core import AnyObject
from lockstep.api.quantity import parse
from lockstep.api.validation import Problem
from lockstep.api.wire import Json
from lockstep.compat.queues import queue, queue_of, shown
from lockstep.compat.translation import Native, Strict, Translation, read
from lockstep.compat.volcano.admission import ROOT, check_queue

Amounts = dict[str, str | int | float]


class Guarantee(Strict, frozen=True):
    """What the queue always gets."""

    resource: Amounts = {}


class QueueSpec(Strict, frozen=True):
    """What a Queue of Volcano says."""

    weight: Annotated[int, Meta(ge=1)] = 1
    capability: Amounts = {}
    deserved: Amounts = {}
    guarantee: Guarantee | None = None
    parent: str = ""
    reclaimable: bool | None = None
    type: str = ""
    priority: Literal[0] | None = None


def to_native(obj: AnyObject) -> Translation:
    """Return the Queue that stands for a Queue of Volcano.

    Raises:
        Refused: when something in it cannot be honoured.
    """
    spec = read(obj.spec, QueueSpec)
    if obj.metadata.name == ROOT:
        return Translation()
    guaranteed = spec.guarantee.resource if spec.guarantee else {}
    check_queue(obj, {**spec.deserved}, {**spec.capability}, {**guaranteed})
    made: Json = {"weight": spec.weight}
    if spec.parent not in ("", ROOT):
        made["parent"] = spec.parent
    if spec.deserved:
        made["guaranteed"] = spec.deserved
    if spec.capability:
        made["limit"] = spec.capability
    if spec.reclaimable is False:
        made["lending"] = "Never"
    elif guaranteed:
        # What is guaranteed is kept free; what is deserved beyond is lent and reclaimed.
        made["lendingLimit"] = {
            name: shown(parse(str(spec.deserved[name])) - parse(str(amount)))
            for name, amount in guaranteed.items()
        }
    return Translation((queue(obj, obj.metadata.name, made),))


def status_of(obj: AnyObject, natives: Sequence[Native], wrong: Sequence[Problem]) -> Json:
    """Return the status of *obj*, of which *natives* were made."""
    if wrong:
        text = "; and ".join(str(one) for one in wrong)
        return {"state": "Unknown", "message": text}
    found = queue_of(natives)
    if found is None:
        return {"state": "Open"}
    used = {name: str(amount) for name, amount in found.status.used.items()}
    counts = {"pending": found.status.pending, "running": found.status.running}
    return {"state": "Open", **counts, **({"allocated": used} if used else {})}
