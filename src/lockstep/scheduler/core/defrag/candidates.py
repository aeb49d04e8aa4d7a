"""Which gangs may be moved for another, and what moving each of them costs.

Only a gang that says that it can be moved is: one that saves its work (``spec.checkpoint``, or a
time of its last save) or that is elastic, and whose pods a controller makes again. No gang more
important than the one that waits moves for it, and none whose queue guarantees its place moves for
one that is beyond what is guaranteed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Protocol

from lockstep.api.meta import controller_of
from lockstep.scheduler.core.model.workload import Member, PodKey, Workload, WorkloadKey
from lockstep.scheduler.core.placement import admission
from lockstep.scheduler.core.placement.problem import Problem
from lockstep.scheduler.core.preemption.budgeted_victims import spending_orders
from lockstep.scheduler.core.preemption.lost_work import checkpointed, last_saved, lost_work
from lockstep.scheduler.core.preemption.victim_policy import VictimPolicy
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.state.disruption_budgets import Allowance

WAYS = 6
"""Further ways of spending what the budgets allow that are tried; each takes a search."""
RESTART_SECONDS = 120.0
"""Time from the end of a job's pods to its next step, for which its GPUs do nothing."""


class MoveCosts(Protocol):
    """What ending a gang's pods now throws away."""

    def seconds(self, workload: Workload, now: float) -> float | None:
        """Return the seconds that each of its GPUs loses; None where it is not to be moved."""

    def pause(self) -> float:
        """Return the seconds that each GPU of an elastic gang loses when single members move.

        At most what ``seconds`` gives for the whole.
        """


@dataclass(frozen=True, slots=True)
class Stated:
    """Costs by what gangs state: the work since they last saved it, and a restart."""

    restart: float = RESTART_SECONDS

    def seconds(self, workload: Workload, now: float) -> float | None:
        """Return the seconds since the last checkpoint, or the start, and those of a restart."""
        since = workload.since if workload.since is not None else last_saved(workload)
        if since is None or not (checkpointed(workload) or elastic(workload)):
            return None
        return lost_work(workload, since, now) + self.restart

    def pause(self) -> float:
        """Return those of a restart: the others keep the work and wait until all are in step."""
        return self.restart


@dataclass(frozen=True, slots=True)
class MoveCandidate:
    """A running gang that may be moved, or members that it can do without meanwhile."""

    workload: Workload
    members: tuple[Member, ...]
    gpus: int
    price: float
    """GPU-seconds that are lost when it moves, as many for one member as for several."""
    stays: int = 0
    """Members that do not move."""

    @property
    def key(self) -> WorkloadKey:
        """Return the key of the workload."""
        return self.workload.key

    @property
    def order(self) -> tuple[float, int, WorkloadKey]:
        """Return a sort key: the cheapest first."""
        return self.price, self.gpus, self.key

    def only(self, members: Sequence[Member]) -> MoveCandidate:
        """Return the same with fewer members; the gang waits for them as long as for more."""
        stays = self.stays + len(self.members) - len(members)
        return replace(self, members=tuple(members), gpus=gpus_of(members), stays=stays)


def elastic(workload: Workload) -> bool:
    """Return whether a gang runs with fewer members than it wants."""
    return any((m.group.desired or 0) > m.group.minimum for m in workload.pod_groups)


def candidate_sets(
    cluster: Cluster,
    wanted: Workload,
    problem: Problem,
    *,
    costs: MoveCosts,
    now: float,
    rest: float = 0.0,
    spared: Collection[str] = (),
) -> list[list[MoveCandidate]]:
    """Return sets of gangs that may move for *wanted*, each the cheapest first.

    All of one set may move together by the PodDisruptionBudgets; there is more than one set where
    those allow either some gangs or others. On the cheapest they are spent in the first.

    An elastic gang that has members above its minimum is there twice: with these alone, and as a
    whole. A gang that got its place less than *rest* seconds ago is left alone, and so is one on
    the nodes *spared*.
    """
    found = []
    for workload in _lower(cluster, wanted, problem):
        whole = whole_gang(cluster, workload, costs=costs, now=now, rest=rest)
        if whole is None:
            continue
        found.append(whole)
        if spare := dispensable(workload):
            # No gang waits for those that do no work.
            idle = {m.key for group in workload.pod_groups for m in group.standing_by}
            works = any(m.key not in idle for m in spare)
            pause = costs.pause() * whole.gpus if works else 0.0
            stays = len(whole.members) - len(spare)
            found.append(MoveCandidate(workload, spare, gpus_of(spare), pause, stays))
    found.sort(key=lambda mover: mover.order)
    sets = [list(_allowed(found, Allowance(cluster.budgets), spared))]
    if cluster.budgets:
        there = {mover.key: mover.workload.bound for mover in found}
        for rank in islice(spending_orders(cluster.budgets, there), WAYS):
            order = sorted(found, key=lambda mover: (rank(mover.key), mover.order))
            able = _allowed(order, Allowance(cluster.budgets), spared)
            sets.append(sorted(able, key=lambda mover: mover.order))
    several = {tuple((m.key, *(pod.key for pod in m.members)) for m in one): one for one in sets}
    return [one for one in several.values() if one]


def whole_gang(
    cluster: Cluster, workload: Workload, *, costs: MoveCosts, now: float, rest: float = 0.0
) -> MoveCandidate | None:
    """Return a gang as one that moves as a whole; None where it is not to be moved now."""
    if not _settled(cluster, workload) or (rest and not _rested(workload, rest, now)):
        return None
    seconds = costs.seconds(workload, now)
    if seconds is None:
        return None
    members = tuple(workload.bound)
    gpus = gpus_of(members)
    return MoveCandidate(workload, members, gpus, seconds * gpus)


def _allowed(
    found: Iterable[MoveCandidate], allowance: Allowance, spared: Collection[str]
) -> Iterator[MoveCandidate]:
    """Yield those that budgets and spared nodes let go one after the other.

    A part of a gang comes before the whole.
    """
    going: dict[WorkloadKey, frozenset[PodKey]] = {}
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


def dispensable(workload: Workload) -> tuple[Member, ...]:
    """Return the members above the minimum of a gang that is complete, the last ones first.

    Where the gang states its parallelism they stay where their ranks put them.
    """
    if workload.parallelism is not None or workload.pending:
        return ()
    found: list[Member] = []
    for pod_group in workload.pod_groups:
        least = max(0, pod_group.group.minimum - pod_group.finished)
        found += reversed(pod_group.bound[least:])
    return tuple(found) if len(found) < len(workload.bound) else ()


def together(move_candidates: Iterable[MoveCandidate]) -> list[MoveCandidate]:
    """Return the same with each gang once: the last, and so the most, of what is said of it."""
    return list({mover.key: mover for mover in move_candidates}.values())


def gpus_of(members: Iterable[Member]) -> int:
    """Return the GPUs of pods; one without whole GPUs counts as one."""
    return sum(m.shape.gpus or 1 for m in members)


def _rested(workload: Workload, rest: float, now: float) -> bool:
    """Return whether no member of a gang got its place less than *rest* seconds ago."""
    since = workload.since
    if since is None:
        return False
    last = max((m.since for m in workload.bound if m.since is not None), default=since)
    return last + rest <= now


def _lower(cluster: Cluster, wanted: Workload, problem: Problem) -> Iterator[Workload]:
    """Yield the gangs with nodes that neither importance nor a guarantee protects."""
    priority = cluster.priorities.of(wanted)
    account = cluster.ledger.account(wanted.queue)
    rights = VictimPolicy(cluster, account, priority, admission.asked(cluster, problem), may=True)
    guaranteed = rights.guaranteed()
    for key, workload in cluster.workloads.items():
        if key == wanted.key or not workload.is_gang or not workload.bound:
            continue
        if cluster.priorities.of(workload) > priority:
            continue
        chain = cluster.ledger.account(workload.queue).chain
        if guaranteed or not any(key in rights.secured(node) for node in chain):
            yield workload


def _settled(cluster: Cluster, workload: Workload) -> bool:
    """Return whether a gang runs whole, nothing of it comes or goes, and it would come back."""
    if workload.gang is None or controller_of(workload.gang.metadata) is None or not workload.whole:
        return False
    if workload.key in cluster.nominations or any(
        m.need or m.finished for m in workload.pod_groups
    ):
        return False
    there = workload.members.values()
    return not any(m.assumed or (m.terminating and m.holds) for m in there) and all(
        m.node in cluster.table.rows for m in workload.bound
    )
