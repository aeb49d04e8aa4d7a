"""For whom nodes are held, until when, and which requests have come to nothing. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from lockstep.api import timestamp
from lockstep.api.node_pool import PoolHolder, PoolRequest
from lockstep.pools.core.growth import Growth, Purchase
from lockstep.pools.core.offers import Slot
from lockstep.pools.core.pool import Pool, key_of
from lockstep.scheduler.core.model.workload import Workload, WorkloadKey
from lockstep.scheduler.core.state.cluster import Cluster


@dataclass(frozen=True, slots=True)
class Review:
    """What becomes of a pool's requests."""

    requests: list[PoolRequest]
    """Those that go on."""
    late: tuple[int, ...] = ()
    """Slots of which nothing came in time."""
    unwanted: tuple[int, ...] = ()
    """Slots that are on their way and for which nothing waits any more."""
    fulfilled: tuple[str, ...] = ()
    """Ids of requests that ended well."""


def review(cluster: Cluster, pool: Pool, now: float) -> Review:
    """Return which of a pool's requests go on.

    One ends when all for whom it was made stand or have gone; what has not come in time is given
    up, and what has come is held no longer than the pool's idle time after that.
    """
    going, late, unwanted, fulfilled = [], list[int](), list[int](), []
    for request in pool.requests:
        come = pool.ready | _in_use(cluster, pool, request)
        coming = [slot for slot in request.slots if slot not in come]
        asked_at = timestamp.parse(request.at)
        waiting = [one for one in request.holders if _waits(cluster, one)]
        if request.holders and not waiting:
            unwanted += coming
            if not coming:
                fulfilled.append(request.id)
        elif now >= asked_at + pool.patience and coming:
            late += coming
            if len(coming) < len(request.slots):
                left = [slot for slot in request.slots if slot in come]
                going.append(replace(request, slots=left, holders=waiting))
        elif not coming and (not request.holders or now >= asked_at + pool.patience + pool.idle):
            fulfilled.append(request.id)
        else:
            going.append(replace(request, holders=waiting))
    return Review(going, tuple(late), tuple(unwanted), tuple(fulfilled))


def _in_use(cluster: Cluster, pool: Pool, request: PoolRequest) -> set[int]:
    """Return the slots of nodes that bear pods of a request's gangs.

    The scheduler may see that a node is ready, and place pods there, before we see it.
    """
    gangs = (cluster.workloads.get(key_of(one)) for one in request.holders)
    nodes = {one.node for gang in gangs if gang is not None for one in gang.members.values()}
    return {slot for slot in request.slots if pool.names.get(slot) in nodes}


def next_end(pool: Pool, now: float) -> float | None:
    """Return when to look at a pool's requests again though nothing happens."""
    ends = [
        end
        for request in pool.requests
        for end in (
            timestamp.parse(request.at) + pool.patience,
            timestamp.parse(request.at) + pool.patience + pool.idle,
        )
        if end > now
    ]
    return min(ends, default=None)


def _waits(cluster: Cluster, holder: PoolHolder) -> bool:
    """Return whether a gang has not got all yet for which it is to have nodes.

    A pod on a node that we have not seen yet counts as waiting: the watch of pods may be ahead of
    that of nodes, and a request that ends then would leave the node without its pool.
    """
    workload = cluster.workloads.get(key_of(holder))
    if workload is None or workload.uid != holder.uid:
        return False
    if workload.over or workload.failed:
        return False
    rows = cluster.table.rows
    unseen = any(one.node and one.node not in rows for one in workload.members.values())
    return unseen or any(group.lacks for group in workload.pod_groups)


def holder_of(workload: Workload) -> PoolHolder:
    """Return what a request says of a workload."""
    key = workload.key
    return PoolHolder(kind=key.kind, namespace=key.namespace, name=key.name, uid=workload.uid)


def request_for(pool: Pool, purchase: Purchase, now: float) -> PoolRequest:
    """Return the request that a decision makes of a pool; its id never comes again."""
    first = purchase.slots[0]
    whom = purchase.workload
    return PoolRequest(
        id=f"{pool.name}-{first}-{int(now)}",
        slots=list(purchase.slots),
        at=timestamp.show(now),
        holders=[holder_of(whom)] if whom is not None else [],
    )


def joined(
    requests: Sequence[PoolRequest], pool: str, growth: Growth, cluster: Cluster
) -> list[PoolRequest]:
    """Return requests with those added that have a place on nodes of them too."""
    found = []
    for request in requests:
        known = {key_of(one) for one in request.holders}
        slots: Collection[Slot] = {(pool, slot) for slot in request.slots}
        more = [
            holder_of(cluster.workloads[key])
            for key, places in growth.shared.items()
            if key not in known and not places.isdisjoint(slots)
        ]
        # What a pool holds for its minimum is held for no gang.
        grown = [*request.holders, *more] if request.holders else request.holders
        found.append(replace(request, holders=grown))
    return found


def expected(pools: Sequence[Pool], key: WorkloadKey) -> tuple[dict[str, int], float | None]:
    """Return by pool how many nodes are held or on their way for a workload, and when they come.

    The time is None where all of them are there.
    """
    by_pool: dict[str, int] = {}
    latest: float | None = None
    for pool in pools:
        for request in _for(pool, key):
            by_pool[pool.name] = by_pool.get(pool.name, 0) + len(request.slots)
            if any(slot not in pool.ready for slot in request.slots):
                at = timestamp.parse(request.at) + pool.arrival
                latest = at if latest is None else max(latest, at)
    return by_pool, latest


def _for(pool: Pool, key: WorkloadKey) -> Iterator[PoolRequest]:
    for request in pool.requests:
        if any(key_of(one) == key for one in request.holders):
            yield request


def holds(pools: Sequence[Pool]) -> dict[WorkloadKey, set[str]]:
    """Return by workload the requests whose nodes are held for it."""
    found: dict[WorkloadKey, set[str]] = {}
    for pool in pools:
        for request in pool.requests:
            for one in request.holders:
                found.setdefault(key_of(one), set()).add(request.id)
    return found


def in_words(by_pool: dict[str, int]) -> str:
    """Return which nodes are got for a gang: ``4 nodes of gpu and 1 node of cpu``."""
    parts = [f"{n} {'node' if n == 1 else 'nodes'} of {pool}" for pool, n in by_pool.items()]
    return " and ".join(parts)
