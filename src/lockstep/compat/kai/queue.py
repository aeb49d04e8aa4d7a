"""KAI's queues as ours: CPUs in thousandths, memory in millions of bytes, -1 without a limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lockstep.api.core import AnyObject
from lockstep.api.validation import Problem
from lockstep.api.wire import Json
from lockstep.compat.native import condition
from lockstep.compat.queues import queue, queue_of
from lockstep.compat.translation import Native, Refused, Strict, Translation, read

UNLIMITED: Final = -1
_OURS: Final = {"gpu": ("nvidia.com/gpu", ""), "cpu": ("cpu", "m"), "memory": ("memory", "M")}


class Amount(Strict, frozen=True):
    """Of one resource."""

    quota: float = 0
    limit: float = UNLIMITED
    over_quota_weight: float = 1


class Resources(Strict, frozen=True):
    """Of all."""

    gpu: Amount = Amount()
    cpu: Amount = Amount()
    memory: Amount = Amount()


class QueueSpec(Strict, frozen=True):
    """What a Queue of KAI says."""

    parent_queue: str = ""
    display_name: str = ""
    priority: int | None = None
    resources: Resources = Resources()


def to_native(obj: AnyObject) -> Translation:
    """Return the Queue that stands for a Queue of KAI.

    Raises:
        Refused: when something in it cannot be honoured.
    """
    if obj.spec.get("resources") is None:
        raise Refused("spec.resources", None, "say the quota and limit of gpu, cpu and memory")
    spec = read(obj.spec, QueueSpec)
    made: Json = {}
    if spec.parent_queue:
        made["parent"] = spec.parent_queue
    weights = set()
    for name, (resource, unit) in _OURS.items():
        at, one = f"spec.resources.{name}", getattr(spec.resources, name)
        for field, value, ours in (
            ("quota", one.quota, "guaranteed"),
            ("limit", one.limit, "limit"),
        ):
            if value != UNLIMITED and value < 0:
                raise Refused(f"{at}.{field}", value, "must be -1, for none, or from 0")
            if value > 0 or (value == 0 and ours == "limit"):
                made.setdefault(ours, {})[resource] = f"{value:g}{unit}"
        weights.add(one.over_quota_weight)
    if len(weights) > 1:
        told = ", ".join(f"{weight:g}" for weight in sorted(weights))
        at = "spec.resources.*.overQuotaWeight"
        raise Refused(at, told, "must be one number for all resources")
    made["weight"] = weights.pop()
    return Translation((queue(obj, obj.metadata.name, made),))


_USUAL_PRIORITY: Final = 100
_SHARED: Final = (
    "QuotaShared",
    "QuotaUnlimited",
    "quota -1 guarantees no amount: the queue shares what is free by its weight, and a queue with "
    "a quota may reclaim its part",
)
_EQUAL: Final = (
    "PriorityIgnored",
    "SharesByWeight",
    "no queue goes before another: beyond their quotas queues share by overQuotaWeight, so give "
    "more weight to the queue that is to get more",
)


def _unlimited(obj: AnyObject) -> bool:
    amounts = obj.spec.get("resources")
    each = amounts.values() if isinstance(amounts, dict) else ()
    return any(isinstance(one, dict) and one.get("quota") == UNLIMITED for one in each)


def status_of(obj: AnyObject, natives: Sequence[Native], wrong: Sequence[Problem]) -> Json:
    """Return the status of *obj*, of which *natives* were made."""
    born = obj.metadata.creation_timestamp or ""
    if wrong:
        text = "; and ".join(str(one) for one in wrong)
        return {"conditions": [condition("Refused", "Refused", text, born)]}
    told = [_SHARED] if _unlimited(obj) else []
    if obj.spec.get("priority", _USUAL_PRIORITY) != _USUAL_PRIORITY:
        told.append(_EQUAL)
    conditions = [condition(*words, born) for words in told]
    status: Json = {"conditions": conditions} if conditions else {}
    found = queue_of(natives)
    if found is None or not found.status.used:
        return status
    return {
        **status,
        "allocated": {name: str(amount) for name, amount in found.status.used.items()},
    }
