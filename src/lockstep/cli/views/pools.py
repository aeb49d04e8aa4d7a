"""Node pools as rows, and why one grew or did not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lockstep.api.node_pool import NodePool
from lockstep.cli.views.table import Column, Table, table
from lockstep.cli.views.times import ago
from lockstep.pools.core.growth import Growth
from lockstep.pools.core.pool import Pool

COLUMNS = (
    "Name",
    Column("Nodes", number=True),
    Column("Ready", number=True),
    Column("Idle", number=True),
    Column("Coming", number=True),
    Column("Min", number=True),
    Column("Max", number=True),
    Column("Cost/h", number=True),
    "Provider",
    "Spot",
    "Age",
    Column("Note", text=True),
)
REFUSED_NAMED = 10


def pool_table(pools: Iterable[NodePool], now: float) -> Table:
    """Return the pools as a table, by name."""
    return table(COLUMNS, (_row(one, now) for one in sorted(pools, key=lambda p: p.metadata.name)))


def _row(pool: NodePool, now: float) -> tuple[object, ...]:
    spec, status = pool.spec, pool.status
    return (
        pool.metadata.name,
        status.nodes,
        status.ready,
        status.idle,
        status.coming,
        spec.min,
        spec.max,
        f"{status.hourly_cost:g}" if status.hourly_cost is not None else "",
        provider(pool),
        "yes" if spec.spot else "",
        ago(pool.metadata.creation_timestamp, now),
        f"{status.reason}: {status.message}" if status.reason else "",
    )


def provider(pool: NodePool) -> str:
    """Return who makes a pool's nodes, in one word."""
    stated = pool.spec.provider
    given = ("simulated", "provisioning_request", "karpenter", "command", "hook")
    return next((one.replace("_", "-") for one in given if getattr(stated, one) is not None), "-")


def explanation(pool: Pool, growth: Growth, currency: str) -> list[str]:
    """Return in lines what a pool has and costs, what it did, and what it would do now."""
    spec, status = pool.object.spec, pool.object.status
    lines = [
        f"{pool.name}: {len(pool.names)} nodes ({len(pool.ready)} ready), {len(pool.coming)} "
        f"coming; {spec.min} to {spec.max} allowed",
        _cost(pool, currency),
    ]
    if status.reason:
        until = f", left alone until {status.retry_at}" if status.retry_at else ""
        lines.append(f"{status.reason}: {status.message}{until}")
    for request in pool.requests:
        whom = ", ".join(
            f"{one.kind.lower()} {one.namespace}/{one.name}" for one in request.holders
        )
        lines.append(f"asked at {request.at}: {len(request.slots)} nodes for {whom or 'min'}")
    lines += [f"{one.at}  {one.text}" for one in status.decisions]
    return [*lines, *_would(pool, growth)]


def _cost(pool: Pool, currency: str) -> str:
    if pool.node_hour is None:
        return "price unknown: set spec.nodeHour, or name the nodes in a PriceList"
    now = pool.node_hour * len(pool.names)
    budget = pool.object.spec.hourly_budget
    most = f" of at most {budget:g}" if budget is not None else ""
    return f"costs {now:g} {currency}".rstrip() + f" an hour now{most}, {pool.node_hour:g} a node"


def _would(pool: Pool, growth: Growth) -> Iterator[str]:
    for one in growth.purchases:
        if one.pool == pool.name and one.workload is not None:
            key = one.workload.key
            count = f"{len(one.slots)} node{'' if len(one.slots) == 1 else 's'}"
            yield f"now it would get {count} for {key.kind.lower()} {key.namespace}/{key.name}"
    for key, why in list(growth.refused.items())[:REFUSED_NAMED]:
        yield f"no pool helps {key.kind.lower()} {key.namespace}/{key.name}: {why}"
    if len(growth.refused) > REFUSED_NAMED:
        yield f"and {len(growth.refused) - REFUSED_NAMED} more"
