"""Which gangs may be moved for another, and what moving each of them costs.

Only who says that it can be moved is: a gang that saves its work (``spec.checkpoint``, or a time of
its last save) or that is elastic, and behind which stands a controller that makes its pods again.
Nobody more important than the one that waits moves for it, and nobody whose queue guarantees its
place moves for one that is beyond what is guaranteed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from lockstep.api.meta import controller_of
from lockstep.scheduler.core.cluster import Cluster
from lockstep.scheduler.core.lost_work import checkpointed, last_saved, lost_work
from lockstep.scheduler.core.preemption.budgets import Allowance
from lockstep.scheduler.core.preemption.rights import Rights
from lockstep.scheduler.core.problem import Problem
from lockstep.scheduler.core.queues import admission
from lockstep.scheduler.core.units import Member, PodKey, Unit, UnitKey

RESTART_SECONDS = 120.0
"""Time from the end of a job's pods to its next step, for which its GPUs do nothing."""


class Costs(Protocol):
    """What ending a gang's pods now throws away."""

    def seconds(self, unit: Unit, now: float) -> float | None:
        """Return the seconds that each of its GPUs loses; None where it is not to be moved."""

    def pause(self) -> float:
        """Return the seconds that each GPU of an elastic gang loses when single members move.

        At most what ``seconds`` gives for the whole.
        """


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

    def pause(self) -> float:
        """Return those of a restart: the others keep the work and wait until all are in step."""
        return self.restart


@dataclass(frozen=True, slots=True)
class Mover:
    """A running gang that may be moved, or members that it can do without meanwhile."""

    unit: Unit
    members: tuple[Member, ...]
    gpus: int
    price: float
    """GPU-seconds that are lost when it moves, as many for one member as for several."""
    stays: int = 0
    """Members that do not move."""

    @property
    def key(self) -> UnitKey:
        """Return whose it is."""
        return self.unit.key

    @property
    def order(self) -> tuple[float, int, UnitKey]:
        """Return a sort key: the cheapest first."""
        return self.price, self.gpus, self.key

    def only(self, members: Sequence[Member]) -> Mover:
        """Return the same with fewer members; the gang waits for them as long as for more."""
        stays = self.stays + len(self.members) - len(members)
        return replace(self, members=tuple(members), gpus=gpus_of(members), stays=stays)


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
    spared: Collection[str] = (),
) -> list[Mover]:
    """Return who may move for *wanted*, the cheapest first.

    An elastic gang that has members above its minimum is there twice: with these alone, and as a
    whole. Who got its place less than *rest* seconds ago is left alone, and so is who stands on one
    of the nodes *spared*.
    """
    found = []
    for unit in _lower(cluster, wanted, problem):
        if not _settled(cluster, unit) or (rest and not _rested(unit, rest, now)):
            continue
        seconds = costs.seconds(unit, now)
        if seconds is None:
            continue
        members = tuple(unit.bound)
        gpus = gpus_of(members)
        found.append(Mover(unit, members, gpus, seconds * gpus))
        if spare := dispensable(unit):
            pause = costs.pause() * gpus
            found.append(Mover(unit, spare, gpus_of(spare), pause, len(members) - len(spare)))
    found.sort(key=lambda mover: mover.order)
    return list(_allowed(found, Allowance(cluster.budgets), spared))


def _allowed(
    found: Iterable[Mover], allowance: Allowance, spared: Collection[str]
) -> Iterator[Mover]:
    """Yield who may go by budgets and spared nodes: the cheapest first, so parts before wholes."""
    going: dict[UnitKey, frozenset[PodKey]] = {}
    for mover in found:
        before = going.get(mover.key, frozenset())
        more = [m for m in mover.members if m.key not in before]
        if mover.stays:
            may = [m for m in more if m.node not in spared and not allowance.spend([m])]
            going[mover.key] = frozenset(m.key for m in may)
            if may:
                yield mover.only(may)
        elif not any(m.node in spared for m in more) and not allowance.spend(more):
            yield mover


def dispensable(unit: Unit) -> tuple[Member, ...]:
    """Return the members above the minimum of a gang that is complete, the last ones first.

    Where the gang states its parallelism they stay where their ranks put them.
    """
    if unit.parallelism is not None or unit.pending:
        return ()
    found: list[Member] = []
    for muster in unit.musters:
        least = max(0, muster.group.minimum - muster.finished)
        found += reversed(muster.bound[least:])
    return tuple(found) if len(found) < len(unit.bound) else ()


def together(movers: Iterable[Mover]) -> list[Mover]:
    """Return the same with each gang once: the last, and so the most, of what is said of it."""
    return list({mover.key: mover for mover in movers}.values())


def gpus_of(members: Iterable[Member]) -> int:
    """Return the GPUs of pods; one without whole GPUs counts as one."""
    return sum(m.shape.gpus or 1 for m in members)


def _rested(unit: Unit, rest: float, now: float) -> bool:
    """Return whether no member of a gang got its place less than *rest* seconds ago."""
    since = unit.since
    if since is None:
        return False
    last = max((m.since for m in unit.bound if m.since is not None), default=since)
    return last + rest <= now


def _lower(cluster: Cluster, wanted: Unit, problem: Problem) -> Iterator[Unit]:
    """Yield the gangs with nodes that neither importance nor a guarantee protects."""
    priority = cluster.priorities.of(wanted)
    account = cluster.ledger.account(wanted.queue)
    rights = Rights(cluster, account, priority, admission.asked(cluster, problem), may=True)
    guaranteed = rights.guaranteed()
    for key, unit in cluster.units.items():
        if key == wanted.key or not unit.is_gang or not unit.bound:
            continue
        if cluster.priorities.of(unit) > priority:
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
