"""What a view of an object changes: nothing as it is old, an assumption alone, or more."""

from __future__ import annotations

from operator import attrgetter

from lockstep.api.gang import Gang
from lockstep.scheduler.core.model.workload import Member

_SAID = attrgetter(
    "uid",
    "node",
    "grant",
    "shape",
    "phase",
    "labels",
    "priority",
    "gates",
    "terminating",
    "started",
    "ours",
    "rank",
    "runtime",
    "preempts",
    "nominated",
)
"""What a view says of a pod, but for how new it is."""


def only_confirms(new: Member, assumed: Member) -> bool:
    """Return whether *new* says of a pod what was *assumed*, and nothing else that is new."""
    return assumed.assumed and new.since is None and _SAID(new) == _SAID(assumed)


def dated(new: Member, old: Member | None) -> bool:
    """Let a pod be there since when it was so far, where a new view does not say it.

    Return whether it was there already and only this view tells when it ends, or tells it anew.
    """
    same = old is not None and old.uid == new.uid
    if new.since is None:
        new.since = old.since if old is not None and same else None
    if new.since is None:
        new.since = new.scheduled
    if old is None or not same or not old.holds:
        return False
    return new.runtime != old.runtime or (old.since is None and new.since is not None)


def same_room(old: Member, new: Member) -> bool:
    """Return whether a pod takes what it took, where it took it, and for the same workload."""
    return (
        old.holds
        and new.holds
        and (old.node, old.grant, old.shape.key) == (new.node, new.grant, new.shape.key)
        and (old.workload, old.queue) == (new.workload, new.queue)
    )


def older(gang: Gang, than: Gang) -> bool:
    """Return whether a gang's object is an older version of the same one."""
    new, old = gang.metadata, than.metadata
    if new.uid != old.uid or not (new.resource_version + old.resource_version).isdigit():
        return False
    return int(new.resource_version or 0) < int(old.resource_version or 0)
