"""Taking the place of others, step by step: plan it, keep it free, wait for it, stand there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lockstep.scheduler.core.arrays import BoolArray
from lockstep.scheduler.core.cluster import Cluster
from lockstep.scheduler.core.placement import Placement
from lockstep.scheduler.core.preemption import planned
from lockstep.scheduler.core.preemption.budgets import in_words
from lockstep.scheduler.core.preemption.claims import claims
from lockstep.scheduler.core.preemption.nominations import Nomination, Nominations
from lockstep.scheduler.core.preemption.plan import Plan, Planner
from lockstep.scheduler.core.preemption.takeover import Takeover, least, place_after, weaker
from lockstep.scheduler.core.problem import Problem
from lockstep.scheduler.core.queues import admission
from lockstep.scheduler.core.units import Member, Unit, UnitKey


@dataclass(frozen=True, slots=True)
class Eviction:
    """Pods that go so that a unit can have their place.

    Whoever carries it out notes down first which nodes the unit's pods are to get, so that nothing
    of it is lost, and then ends the victims.
    """

    unit: UnitKey
    nodes: dict[str, str]
    """By pod of the unit, the node that it is to get."""
    victims: tuple[Member, ...]
    message: str
    """What is said to the victims."""
    reason: str = "PreemptionByScheduler"
    """The same in one word, as their condition has it."""
    instead_of: tuple[UnitKey, ...] = ()
    """Units whose place it was; they show it no more once it is noted down."""
    taken_back: tuple[Member, ...] = ()
    """Pods that lose their place before anybody was told that they have it."""


class Preemptor:
    """Plans evictions and sees to it that what they free goes to whom it was freed for."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.nominations: Nominations = cluster.nominations
        self._adopted: set[UnitKey] = set()
        self._warned: set[UnitKey] = set()
        """Gangs of which it is written down that pods of theirs end."""

    def note(self, key: UnitKey) -> None:
        """Take note of a unit that changed: whether pods of it have been told to go."""
        unit = self._cluster.units.get(key)
        if unit is not None and unit.gang is not None and unit.gang.status.preempted:
            self._warned.add(key)
        else:
            self._warned.discard(key)

    def told(self) -> list[Member]:
        """Return the pods of which it is written down that they go, and which do not go yet.

        Whoever wrote that may have ended in the middle of a gang.
        """
        found = []
        for key in self._warned:
            unit = self._cluster.units.get(key)
            if unit is None or unit.gang is None:
                continue
            for name, uid in unit.gang.status.preempted.items():
                member = self._cluster.pods.get((key.namespace, name))
                if member is not None and member.uid == uid and member.holds:
                    found += [] if member.terminating else [member]
        return found

    def leaving(self) -> list[Member]:
        """Return the pods that are on their way out."""
        going = {m.key: m for m in self.nominations.condemned(self._cluster.pods)}
        going |= {m.key: m for m in self.told()}
        return list((going | self._cluster.leaving).values())

    def wake_at(self, now: float) -> float | None:
        """Return when to look again for those who have waited for their victims for long enough."""
        return min(
            (
                one.since + planned.PATIENCE
                for one in self.nominations
                if planned.awaits(self._cluster, one, now)
            ),
            default=None,
        )

    def outdated(self, unit: Unit) -> bool:
        """Return whether a unit shows a place that is kept for it no more."""
        known = unit.key in self._adopted and unit.key not in self.nominations
        return known and bool(unit.nominated) and not self.nominations.passes_on(unit.key)

    def worth_a_look(self, unit: Unit, problem: Problem) -> bool:
        """Return, at little cost, whether there may be somebody whose place the unit may take."""
        if not self._cluster.ledger.active or unit.half_placed:
            return False
        if not any(quota.need for quota in problem.needs):
            return False
        return bool(weaker(self._cluster, unit)) or any(
            planner.rights.any() for planner in self._planners(unit, problem, (), 0.0)
        )

    def evict_for(
        self, unit: Unit, problem: Problem, now: float, rows: BoolArray | None = None
    ) -> tuple[Eviction | None, bool]:
        """Return who goes for a unit that has no place, and keep that place free.

        It is on some *rows* alone where they are given. Beside it stands whether to ask again when
        bindings that are under way have ended.
        """
        leaving = self.leaving()
        taken = self._take_over(unit, problem, leaving, now)
        if taken is not None:
            return taken, False
        plan, unsettled = self._plan(unit, problem, leaving, now, rows)
        if plan is None:
            return None, unsettled
        return self._nominate(unit, problem, plan, now), False

    def _take_over(
        self, unit: Unit, problem: Problem, leaving: Sequence[Member], now: float
    ) -> Eviction | None:
        """Give a unit the place that is being freed for less important ones, which wait again."""
        found = Takeover(self._cluster, unit, problem).find(leaving)
        if found is None:
            return None
        taken, placement = found
        names = {key for one in taken for key in one.victims}
        for one in taken:
            self.nominations.drop(one.unit)
            self._cluster.touched.add(one.unit)
        # They may not have been told to go yet; whoever was to tell them gives up now.
        victims = tuple(member for member in leaving if member.key in names)
        before = tuple(one.unit for one in taken)
        return self._nominate(unit, problem, Plan(unit.key, placement, victims), now, before)

    def _plan(
        self,
        unit: Unit,
        problem: Problem,
        leaving: Sequence[Member],
        now: float,
        rows: BoolArray | None,
    ) -> tuple[Plan | None, bool]:
        """Return the first plan there is; beside it whether bindings under way may allow one."""
        unsettled = False
        for planner in self._planners(unit, problem, leaving, now):
            plan = planner.find(rows)
            if plan is not None:
                return plan, False
            unsettled |= planner.rights.unsettled
        return None, unsettled

    def _planners(
        self, unit: Unit, problem: Problem, leaving: Sequence[Member], now: float
    ) -> Iterator[Planner]:
        """Yield who plans for a unit, by what it may claim; nobody has to go for members that it
        can do without.
        """
        for claim in claims(self._cluster, unit, least(problem)):
            yield Planner(self._cluster, unit, claim, leaving=leaving, now=now)

    def keep(self, nomination: Nomination) -> None:
        """Keep a place free; from now on it is newer than what is shown of its unit."""
        self._adopted.add(nomination.unit)
        self.nominations.add(nomination)

    def _nominate(
        self,
        unit: Unit,
        problem: Problem,
        plan: Plan,
        now: float,
        instead_of: tuple[UnitKey, ...] = (),
    ) -> Eviction:
        placed = plan.placement.assignments
        nodes = {one.member.name: one.spot.node for one in placed}
        victims = tuple(member for member in plan.victims if not member.tentative)
        self.keep(
            Nomination(
                unit.key,
                nodes,
                {one.member.name: one.member.shape for one in placed},
                unit.queue,
                admission.counted(self._cluster, plan.placement),
                {one.member.name: one.spot.grant for one in placed},
                {member.key: member.uid for member in victims},
                violates=plan.violates,
                instead_of=instead_of,
                since=now,
                version=self._cluster.table.version,
                signature=problem.signature,
            )
        )
        told = _told(unit, self._cluster.priorities.of(unit))
        if plan.violates:
            told += f"; {in_words(plan.violates, unit.key.namespace)}, and nothing else makes room"
        taken_back = tuple(member for member in plan.victims if member.tentative)
        return Eviction(
            unit.key, nodes, victims, told, instead_of=instead_of, taken_back=taken_back
        )

    def adopt(self, unit: Unit, problem: Problem | None, *, moot: bool = False) -> None:
        """Keep the place free that an earlier leader noted down for a unit.

        Of several units the next in line comes first. What it has may have been taken over from
        one of the others while that leader ended, between the two writes that this takes. One that
        may be *moot* altogether is planned anew.
        """
        if unit.key in self._adopted:
            return
        self._adopted.add(unit.key)  # from now on what is kept here is newer than what is shown
        nodes = unit.nominated
        waiting = {m.name: m for muster in unit.musters for m in muster.pending}
        nodes = {pod: node for pod, node in nodes.items() if pod in waiting}
        if not nodes or unit.bound or problem is None or moot:
            return
        shapes = {pod: waiting[pod].shape for pod in nodes}
        asked = admission.spoken_for(self._cluster, shapes, nodes)
        found = Nomination(unit.key, nodes, shapes, unit.queue, asked)
        if not self._taken_over(found, unit, problem):
            self.nominations.add(found)

    def _taken_over(self, found: Nomination, unit: Unit, problem: Problem) -> bool:
        """Return whether a place is another's by now: it cannot be both's, whoever still leaves.

        Where victims have not been told yet that cannot be seen, and the unit is let go as well: it
        plans anew behind the other, counting on those that do leave.
        """
        if not any(_meet(found, other) for other in self.nominations):
            return False
        rows = self.nominations.rows(found)
        leaving = self.leaving()
        return place_after(self._cluster, unit, least(problem), leaving, rows) is None

    def stand(
        self, unit: Unit, problem: Problem, now: float
    ) -> tuple[Placement | None, Eviction | None]:
        """Return where a nominated unit stands now; else who else has to go for its place.

        Where the place can come about no more, the unit waits again like the others.
        """
        nomination = self.nominations.get(unit.key)
        if nomination is None:
            return None, None
        awaits = planned.awaits(self._cluster, nomination, now)
        moment = (self._cluster.freed, self._cluster.table.version, awaits)
        if nomination.looked == moment:
            return None, None
        nomination.looked = moment
        with self.nominations.lifted(unit.key):
            rows = self.nominations.rows(nomination)
            placement = planned.as_planned(self._cluster, unit, problem, nomination)
            if placement is None and awaits:
                return None, None
            if placement is None:
                placement = admission.place(self._cluster, unit, problem, rows)
            if placement is None:
                placement = admission.place(self._cluster, unit, problem)
            if placement is not None:
                self.nominations.drop(unit.key)
                return placement, None
            leaving = self.leaving()
            if place_after(self._cluster, unit, least(problem), leaving, rows) is not None:
                return None, None
            plan, _ = self._plan(unit, problem, leaving, now, rows)
        self.nominations.drop(unit.key)
        return None, self._nominate(unit, problem, plan, now) if plan is not None else None


def _meet(one: Nomination, other: Nomination) -> bool:
    """Return whether two units may be in each other's way: on a node, or by their queue's limit."""
    if other.purpose != "Preempting":
        return False
    nodes = set(one.nodes.values())
    return one.queue == other.queue or not nodes.isdisjoint(other.nodes.values())


def _told(unit: Unit, priority: int) -> str:
    what = "gang" if unit.is_gang else "pod"
    return (
        f"its place goes to {what} {unit.key.namespace}/{unit.key.name} of queue {unit.queue}, "
        f"priority {priority}"
    )
