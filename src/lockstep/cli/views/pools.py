"""Node pools as rows, and why one grew or did not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from lockstep.api.node_pool import NodePool
from lockstep.cli.views.table import NAMED, Cells, Column, Table, age, place, rows
from lockstep.pools.core.growth import Growth
from lockstep.pools.core.pool import Pool

REFUSED_NAMED = 10


def pool_table(pools: Iterable[NodePool], now: float) -> Table:
    """Return the pools as a table, by name."""

    def counted(
        name: str, of: Callable[[NodePool], object]
    ) -> tuple[Column, Callable[..., object]]:
        return Column(name, number=True), of

    cells: Cells[NodePool] = (
        NAMED,
        counted("Nodes", lambda one: one.status.nodes),
        counted("Ready", lambda one: one.status.ready),
        counted("Idle", lambda one: one.status.idle),
        counted("Coming", lambda one: one.status.coming),
        counted("Min", lambda one: one.spec.min),
        counted("Max", lambda one: one.spec.max),
        counted("Cost/h", lambda one: _hourly(one.status.hourly_cost)),
        ("Provider", provider),
        ("Spot", lambda one: "yes" if one.spec.spot else ""),
        age(now),
        (Column("Note", text=True), _note),
    )
    return rows(sorted(pools, key=place), cells)


def _hourly(cost: float | None) -> str:
    return f"{cost:g}" if cost is not None else ""


def _note(pool: NodePool) -> str:
    return f"{pool.status.reason}: {pool.status.message}" if pool.status.reason else ""


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
