"""What a queue's gangs cost an hour on the nodes of pools, and whether they may cost more. Pure.

A node counts for a queue with the part of it that the queue's pods hold, of the resource of which
they hold most; one that is on its way counts whole for the gangs that it is held for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lockstep.pools.core.offers import Offers
from lockstep.pools.core.pool import Pool, key_of
from lockstep.scheduler.core.model.workload import Member, Workload
from lockstep.scheduler.core.state.cluster import Cluster

Bought = Iterable[tuple[Pool, Sequence[int]]]
"""Pools and the slots that are to be got of each."""


class QueueBudgets:
    """The budgets of all queues, while nodes are chosen for one gang after the other."""

    def __init__(self, cluster: Cluster, pools: Sequence[Pool], offers: Offers) -> None:
        self._cluster = cluster
        self._pools = pools
        self._offers = offers

    def refusal(self, workload: Workload, bought: Bought) -> str:
        """Return which queue may not pay for more nodes for a gang; empty where all may."""
        cluster = self._cluster
        chain = [account.name for account in cluster.ledger.account(workload.queue).chain]
        for name in chain:
            queue = cluster.ledger.specs.get(name)
            budget = queue.spec.hourly_budget if queue is not None else None
            if budget is None:
                continue
            new = 0.0
            for pool, slots in bought:
                if pool.node_hour is None:
                    return (
                        f"queue {name} has an hourlyBudget, and what a node of {pool.name} costs "
                        "is not known (nodeHour, or a PriceList)"
                    )
                new += pool.node_hour * len(slots)
            now = self.cost(name)
            if now + new > budget + 1e-9:
                return (
                    f"queue {name} pays {now:.2f} an hour for nodes of pools, and {new:.2f} more "
                    f"would pass its hourlyBudget of {budget:g}"
                )
        return ""

    def cost(self, queue: str) -> float:
        """Return what the gangs of a queue and of its parts cost an hour now."""
        priced = [(pool, pool.node_hour) for pool in self._pools if pool.node_hour]
        return sum(price * self._nodes(pool, queue) for pool, price in priced)

    def _nodes(self, pool: Pool, queue: str) -> float:
        """Return how many nodes of a pool a queue pays for."""
        waiting = {slot: self._held(pool, slot, queue) for slot in pool.coming}
        taken = 0.0
        for slot, name in self._standing(pool):
            part = self._part(name, queue)
            taken += max(part, waiting.pop(slot, 0.0)) if slot in pool.coming else part
        return taken + sum(waiting.values())

    def _standing(self, pool: Pool) -> Iterator[tuple[int, str]]:
        """Yield slots and names of nodes, those that are only supposed to be there among them."""
        yield from pool.names.items()
        for (owner, slot), name in self._offers.names():
            if owner == pool.name and slot not in pool.names:
                yield slot, name

    def _held(self, pool: Pool, slot: int, queue: str) -> float:
        """Return the part of a node on its way that is for gangs of a queue."""
        holders = [one for r in pool.requests if slot in r.slots for one in r.holders]
        there = [self._cluster.workloads.get(key_of(one)) for one in holders]
        own = [one for one in there if one is not None and self._is_of(one.queue, queue)]
        return len(own) / len(holders) if holders else 0.0

    def _part(self, node: str, queue: str) -> float:
        table = self._cluster.table
        row = table.rows.get(node)
        own = [member for member in self._cluster.on_node(node) if self._pays(member, queue)]
        if row is None or not own:
            return 0.0
        held: dict[int, int] = {}
        for member in own:
            for column, amount in zip(member.shape.columns, member.shape.amounts, strict=True):
                held[int(column)] = held.get(int(column), 0) + int(amount)
        parts = (
            amount / int(table.allocatable[column, row])
            for column, amount in held.items()
            if table.allocatable[column, row] > 0
        )
        return min(1.0, max(parts, default=0.0))

    def _pays(self, member: Member, queue: str) -> bool:
        key = member.workload
        workload = self._cluster.workloads.get(key) if key is not None else None
        return workload is not None and self._is_of(workload.queue, queue)

    def _is_of(self, name: str, queue: str) -> bool:
        return any(one.name == queue for one in self._cluster.ledger.account(name).chain)
