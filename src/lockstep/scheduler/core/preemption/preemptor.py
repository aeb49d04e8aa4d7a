"""Taking the place of others, step by step: plan it, keep it free, wait for it, stand there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from lockstep.scheduler.core.model.decisions import Eviction, Placement
from lockstep.scheduler.core.model.workload import Member, Workload, WorkloadKey
from lockstep.scheduler.core.placement import admission
from lockstep.scheduler.core.placement.problem import Problem
from lockstep.scheduler.core.preemption import nominated_placement
from lockstep.scheduler.core.preemption.planner import PreemptionPlan, PreemptionPlanner
from lockstep.scheduler.core.preemption.reclaim_claims import claims
from lockstep.scheduler.core.preemption.takeover import Takeover, place_after, weaker
from lockstep.scheduler.core.quota.supposed import Supposed
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.state.disruption_budgets import in_words
from lockstep.scheduler.core.state.nominations import Nomination, Nominations
from lockstep.scheduler.core.util.array_types import BoolArray


class Preemptor:
    """Plans evictions and sees to it that what they free goes where it was freed for."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.nominations: Nominations = cluster.nominations
        self._adopted: set[WorkloadKey] = set()
        self._warned: set[WorkloadKey] = set()
        """Gangs of which it is written down that pods of theirs end."""

    def note(self, key: WorkloadKey) -> None:
        """Take note of a workload that changed: whether pods of it have been told to go."""
        workload = self._cluster.workloads.get(key)
        if workload is not None and workload.gang is not None and workload.gang.status.preempted:
            self._warned.add(key)
        else:
            self._warned.discard(key)

    def told(self) -> list[Member]:
        """Return the pods of which it is written down that they go, and which do not go yet.

        The leader that wrote that may have ended in the middle of a gang.
        """
        found = []
        for key in self._warned:
            workload = self._cluster.workloads.get(key)
            if workload is None or workload.gang is None:
                continue
            for name, uid in workload.gang.status.preempted.items():
                member = self._cluster.pods.get((key.namespace, name))
                if member is not None and member.uid == uid and member.holds:
                    found += [] if member.terminating else [member]
        return found

    def leaving(self) -> list[Member]:
        """Return the pods that are on their way out."""
        going = {m.key: m for m in self.nominations.condemned(self._cluster.pods)}
        going |= {m.key: m for m in self.told()}
        return list((going | self._cluster.leaving).values())

    def leaves(self, workload: Workload) -> bool:
        """Return whether any member of a workload that stands has been told to go."""
        told = workload.gang.status.preempted if workload.gang is not None else {}
        if not told and not len(self.nominations):
            return False
        return any(
            told.get(member.name) == member.uid or self.nominations.condemns(member)
            for member in workload.bound
        )

    def wake_at(self, now: float) -> float | None:
        """Return when to look again for workloads that have waited their time for victims."""
        return min(
            (
                one.since + nominated_placement.VICTIM_SECONDS
                for one in self.nominations
                if nominated_placement.awaits(self._cluster, one, now)
            ),
            default=None,
        )

    def outdated(self, workload: Workload) -> bool:
        """Return whether a workload shows a place that is kept for it no more."""
        known = workload.key in self._adopted and workload.key not in self.nominations
        return known and bool(workload.nominated) and not self.nominations.passes_on(workload.key)

    def worth_a_look(self, workload: Workload, problem: Problem) -> bool:
        """Return, at little cost, whether there may be a pod whose place the workload may
        take.
        """
        if not self._cluster.ledger.active or workload.half_placed:
            return False
        if not any(quota.need for quota in problem.needs):
            return False
        return bool(weaker(self._cluster, workload)) or any(
            planner.rights.any() for planner in self._planners(workload, problem, (), 0.0)
        )

    def evict_for(
        self, workload: Workload, problem: Problem, now: float, rows: BoolArray | None = None
    ) -> tuple[Eviction | None, bool]:
        """Return which pods go for a workload that has no place, and keep that place free.

        It is on some *rows* alone where they are given. Beside it stands whether to ask again when
        bindings that are under way have ended.
        """
        leaving = self.leaving()
        taken = self._take_over(workload, problem, leaving, now)
        if taken is not None:
            return taken, False
        plan, unsettled = self._plan(workload, problem, leaving, now, rows)
        if plan is None:
            return None, unsettled
        return self._nominate(workload, problem, plan, now), False

    def _take_over(
        self, workload: Workload, problem: Problem, leaving: Sequence[Member], now: float
    ) -> Eviction | None:
        """Give a workload the place that is being freed for less important ones, which wait
        again.
        """
        found = Takeover(self._cluster, workload, problem).find(leaving)
        if found is None:
            return None
        taken, placement = found
        names = {key for one in taken for key in one.victims}
        for one in taken:
            self.nominations.drop(one.workload)
            self._cluster.touched.add(one.workload)
        # They may not have been told to go yet; the eviction that was to tell them is dropped.
        victims = tuple(member for member in leaving if member.key in names)
        before = tuple(one.workload for one in taken)
        return self._nominate(
            workload, problem, PreemptionPlan(workload.key, placement, victims), now, before
        )

    def _plan(
        self,
        workload: Workload,
        problem: Problem,
        leaving: Sequence[Member],
        now: float,
        rows: BoolArray | None,
    ) -> tuple[PreemptionPlan | None, bool]:
        """Return the first plan there is; beside it whether bindings under way may allow one."""
        unsettled = False
        for planner in self._planners(workload, problem, leaving, now):
            plan = planner.find(rows)
            if plan is not None:
                return plan, False
            unsettled |= planner.rights.unsettled
        return None, unsettled

    def _planners(
        self, workload: Workload, problem: Problem, leaving: Sequence[Member], now: float
    ) -> Iterator[PreemptionPlanner]:
        """Yield the planners for a workload, by what it may claim; no pod has to go for members
        that it can do without.
        """
        for claim in claims(self._cluster, workload, problem.least):
            yield PreemptionPlanner(self._cluster, workload, claim, leaving=leaving, now=now)

    def keep(self, nomination: Nomination) -> None:
        """Keep a place free; from now on it is newer than what is shown of its workload."""
        self._adopted.add(nomination.workload)
        self.nominations.add(nomination)

    def _nominate(
        self,
        workload: Workload,
        problem: Problem,
        plan: PreemptionPlan,
        now: float,
        instead_of: tuple[WorkloadKey, ...] = (),
    ) -> Eviction:
        victims = tuple(member for member in plan.victims if not member.tentative)
        found = nominated_placement.nominated(
            self._cluster, plan.placement, workload.queue, purpose="Preempting", victims=victims
        )
        found.violates, found.instead_of, found.since = plan.violates, instead_of, now
        found.version, found.signature = self._cluster.table.version, problem.signature
        self.keep(found)
        priority = self._cluster.priorities.of(workload)
        told, elsewhere = _told(workload, priority), _told_elsewhere(workload, priority)
        if plan.violates:
            alone = ", and nothing else makes room"
            told += f"; {in_words(plan.violates, workload.key.namespace)}{alone}"
            elsewhere += f"; that violates a PodDisruptionBudget{alone}"
        taken_back = tuple(member for member in plan.victims if member.tentative)
        return Eviction(
            workload.key,
            found.nodes,
            victims,
            told,
            instead_of=instead_of,
            taken_back=taken_back,
            elsewhere=elsewhere,
        )

    def adopt(self, workload: Workload, problem: Problem | None, *, moot: bool = False) -> None:
        """Keep the place free that an earlier leader noted down for a workload.

        Of several workloads the next in line comes first. What it has may have been taken over from
        one of the others while that leader ended, between the two writes that this takes. One that
        may be *moot* altogether is planned anew.
        """
        if workload.key in self._adopted:
            return
        self._adopted.add(workload.key)  # from now on what is kept here is newer than what is shown
        nodes = workload.nominated
        waiting = {m.name: m for pod_group in workload.pod_groups for m in pod_group.pending}
        nodes = {pod: node for pod, node in nodes.items() if pod in waiting}
        if not nodes or workload.bound or problem is None or moot:
            return
        shapes = {pod: waiting[pod].shape for pod in nodes}
        asked = admission.spoken_for(self._cluster, shapes, nodes)
        found = Nomination(workload.key, nodes, shapes, workload.queue, asked)
        if not self._taken_over(found, workload, problem):
            self.nominations.add(found)

    def _taken_over(self, found: Nomination, workload: Workload, problem: Problem) -> bool:
        """Return whether a place is another's by now: it cannot be both's, also when victims leave.

        Where victims have not been told yet that cannot be seen, and the workload is let go as
        well: it plans anew behind the other, counting on those that do leave."""
        if not any(_meet(found, other) for other in self.nominations):
            return False
        rows = self.nominations.rows(found)
        leaving = self.leaving()
        return place_after(self._cluster, workload, problem.least, leaving, rows) is None

    def stand(
        self, workload: Workload, problem: Problem, now: float
    ) -> tuple[Placement | None, Eviction | None]:
        """Return where a nominated workload stands now; else what else has to go for its place.

        Where the place can come about no more, the workload waits again like the others.
        """
        nomination = self.nominations.get(workload.key)
        if nomination is None:
            return None, None
        awaits = nominated_placement.awaits(self._cluster, nomination, now)
        moment = (self._cluster.freed, self._cluster.table.version, awaits)
        if nomination.looked == moment:
            return None, None
        nomination.looked = moment
        self.nominations.refresh()
        plan = None
        with Supposed(self._cluster.ledger) as world:
            world.apply(partial(self.nominations.hold, nomination), -1)
            placement, stays = self._retry(workload, problem, nomination, awaits=awaits)
            if placement is None and not stays:
                rows = self.nominations.rows(nomination)
                plan, _ = self._plan(workload, problem, self.leaving(), now, rows)
        if stays:
            return None, None
        self.nominations.drop(workload.key)
        return placement, self._nominate(workload, problem, plan, now) if plan is not None else None

    def _retry(
        self, workload: Workload, problem: Problem, nomination: Nomination, *, awaits: bool
    ) -> tuple[Placement | None, bool]:
        """Return where a nominated workload stands now, while nothing is held for it; else whether
        it stays nominated, as its place may still come about.
        """
        rows = self.nominations.rows(nomination)
        placement = nominated_placement.as_planned(self._cluster, workload, problem, nomination)
        if placement is not None or awaits:
            return placement, placement is None
        placement = admission.place(self._cluster, workload, problem, rows)
        if placement is None:
            placement = admission.place(self._cluster, workload, problem)
        if placement is not None:
            return placement, False
        later = place_after(self._cluster, workload, problem.least, self.leaving(), rows)
        return None, later is not None


def _meet(one: Nomination, other: Nomination) -> bool:
    """Return whether two workloads may be in each other's way: on a node, or by their queue's
    limit.
    """
    if other.purpose != "Preempting":
        return False
    nodes = set(one.nodes.values())
    return one.queue == other.queue or not nodes.isdisjoint(other.nodes.values())


def _told(workload: Workload, priority: int) -> str:
    what = "gang" if workload.is_gang else "pod"
    return (
        f"its place goes to {what} {workload.key.namespace}/{workload.key.name} of queue "
        f"{workload.queue}, priority {priority}"
    )


def _told_elsewhere(workload: Workload, priority: int) -> str:
    what = "gang" if workload.is_gang else "pod"
    return f"its place goes to a {what} of another namespace, priority {priority}"
