"""Which gangs may be moved for another, and what moving each of them costs.

Only who says that it can be moved is: a gang that saves its work (``spec.checkpoint``, or a time of
its last save) or that is elastic, and behind which stands a controller that makes its pods again.
Nobody more important than the one that waits moves for it, and nobody whose queue guarantees its
place moves for one that is beyond what is guaranteed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from lockstep.api.meta import controller_of
from lockstep.scheduler.core.cluster import Cluster
from lockstep.scheduler.core.lost_work import checkpointed, last_saved, lost_work
from lockstep.scheduler.core.preemption.budgets import Allowance
from lockstep.scheduler.core.preemption.rights import Rights
from lockstep.scheduler.core.problem import Problem
from lockstep.scheduler.core.queues import admission
from lockstep.scheduler.core.units import Member, Unit, UnitKey

RESTART_SECONDS = 120.0
"""Time from the end of a job's pods to its next step, for which its GPUs do nothing."""


class Costs(Protocol):
    """What ending a gang's pods now throws away."""

    def seconds(self, unit: Unit, now: float) -> float | None:
        """Return the seconds that each of its GPUs loses; None where it is not to be moved."""


@dataclass(frozen=True, slots=True)
class Stated:
    """Costs by what gangs state: the work since they last saved it, and a restart."""

    restart: float = RESTART_SECONDS

    def seconds(self, unit: Unit, now: float) -> float | None:
        """Return the seconds since the last checkpoint, or the start, and those of a restart."""
        since = unit.since if unit.since is not None else last_saved(unit)
        if since is None or not (checkpointed(unit) or elastic(unit)):
            return None
        return lost_work(unit, since, now) + self.restart


@dataclass(frozen=True, slots=True)
class Mover:
    """A running gang that may be moved."""

    unit: Unit
    members: tuple[Member, ...]
    gpus: int
    price: float
    """GPU-seconds that are lost when it moves; a pod without whole GPUs counts as one of them."""

    @property
    def key(self) -> UnitKey:
        """Return whose it is."""
        return self.unit.key

    @property
    def order(self) -> tuple[float, int, UnitKey]:
        """Return a sort key: the cheapest first."""
        return self.price, self.gpus, self.key


def elastic(unit: Unit) -> bool:
    """Return whether a gang runs with fewer members than it wants."""
    return any((m.group.desired or 0) > m.group.minimum for m in unit.musters)


def movers(
    cluster: Cluster,
    wanted: Unit,
    problem: Problem,
    *,
    costs: Costs,
    now: float,
    rest: float = 0.0,
) -> list[Mover]:
    """Return the gangs that may move for *wanted*, the cheapest first.

    Who got its place less than *rest* seconds ago is left alone.
    """
    found = []
    for unit in _lower(cluster, wanted, problem):
        since = unit.since
        if not _settled(cluster, unit) or (rest and (since is None or since + rest > now)):
            continue
        seconds = costs.seconds(unit, now)
        if seconds is None:
            continue
        members = tuple(unit.bound)
        gpus = sum(m.shape.gpus or 1 for m in members)
        found.append(Mover(unit, members, gpus, seconds * gpus))
    found.sort(key=lambda mover: mover.order)
    allowance = Allowance(cluster.budgets)
    return [mover for mover in found if not allowance.spend(mover.members)]


def _lower(cluster: Cluster, wanted: Unit, problem: Problem) -> Iterator[Unit]:
    """Yield the gangs with nodes that neither importance nor a guarantee protects."""
    priority = cluster.priority(wanted)
    account = cluster.ledger.account(wanted.queue)
    rights = Rights(cluster, account, priority, admission.asked(cluster, problem), may=True)
    guaranteed = rights.guaranteed()
    for key, unit in cluster.units.items():
        if key == wanted.key or not unit.is_gang or not unit.bound:
            continue
        if cluster.priority(unit) > priority:
            continue
        chain = cluster.ledger.account(unit.queue).chain
        if guaranteed or not any(key in rights.secured(node) for node in chain):
            yield unit


def _settled(cluster: Cluster, unit: Unit) -> bool:
    """Return whether a gang runs whole, nothing of it comes or goes, and it would come back."""
    if unit.gang is None or controller_of(unit.gang.metadata) is None or not unit.whole:
        return False
    if unit.key in cluster.nominations or any(m.need or m.finished for m in unit.musters):
        return False
    there = unit.members.values()
    return not any(m.assumed or (m.terminating and m.holds) for m in there) and all(
        m.node in cluster.table.rows for m in unit.bound
    )
