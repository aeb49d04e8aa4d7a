"""A new revision where no room is spare: one replica after the other, in the old ones' places."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lockstep.api.core import Pod
from lockstep.api.wire import Json
from lockstep.serve.core import pods
from lockstep.serve.core.traffic import Split


@dataclass(frozen=True, slots=True)
class OneByOne:
    """How far such a rollout is."""

    traffic: Split
    wanted: dict[str, int]
    record: Json
    """What the status remembers: which revision, how many of how many replicas were replaced."""


def homeless(pod: Pod) -> bool:
    """Return whether the scheduler has no place for a replica."""
    return not pods.going(pod) and any(
        (one.type, one.status, one.reason) == ("PodScheduled", "False", "Unschedulable")
        for one in pod.status.conditions
    )


def one_by_one(
    latest: str,
    old: str,
    count: int,
    told: Json,
    *,
    new: Iterable[Pod],
    before: Iterable[Pod],
) -> OneByOne | None:
    """Return the next step of a rollout without room; none where new replicas have a place.

    *count* replicas are to serve, *told* is what the status remembers. It begins when a replica of
    *latest* (the pods *new*) finds no place while *old* (those *before*) serves, and goes on until
    all are replaced: each old one ends before the new one in its place begins, and requests go by
    the replicas that are ready.
    """
    alive = [pod for pod in new if not pods.going(pod)]
    begun = told.get("revision") == latest
    stuck = any(map(homeless, alive)) and any(map(pods.ready, before))
    done = sum(map(pods.ready, alive))
    if not (begun or stuck) or done >= count:
        return None
    wanted = {latest: min(count, done + 1), old: max(0, count - done - 1)}
    share = 100 * done // count if wanted[old] or not done else 100
    weights = {name: weight for name, weight in ((latest, share), (old, 100 - share)) if weight}
    record = {"revision": latest, "replaced": done, "replicas": count}
    return OneByOne(Split(weights, old), wanted, record)


def told(record: Json) -> str:
    """Return what the status says of it."""
    return (
        f"no room for a replica of {record['revision']} beside those that serve: replicas are "
        f"replaced one at a time, {record['replaced']} of {record['replicas']} so far"
    )
