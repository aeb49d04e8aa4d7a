"""Defragmentation step by step: asked for or due, planned, kept, waited for, told.

One rearrangement is carried out at a time. The place of the waiting gang and the new place of each
gang that moves are kept from the moment of the decision; whoever comes back first stands first. A
gang that loses its new place on the way, or whose pods nobody makes again, is back in line.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal

from lockstep.api import duration
from lockstep.api.gang import Defragmentation
from lockstep.api.names import DEFRAGMENT_ANNOTATION
from lockstep.api.queue import DefragmentationPolicy
from lockstep.scheduler.core.cluster import Cluster
from lockstep.scheduler.core.defrag import words
from lockstep.scheduler.core.defrag.movers import Costs, Stated, movers
from lockstep.scheduler.core.defrag.plan import Plan, Planner
from lockstep.scheduler.core.defrag.rearrangement import (
    Moving,
    Rearrangement,
    begin,
    kept_again,
    kept_for,
    resume,
)
from lockstep.scheduler.core.preemption.nominations import Nomination
from lockstep.scheduler.core.preemption.preemptor import Preemptor
from lockstep.scheduler.core.problem import Problem
from lockstep.scheduler.core.queues import admission
from lockstep.scheduler.core.units import Unit, UnitKey

RETURN_SECONDS = 300.0
"""Time for which the new place of a gang is kept after its last pod has ended, for its pods to be
made again."""
STATED = Stated()


@dataclass(frozen=True, slots=True)
class Note:
    """Something to be told about a gang, as an Event."""

    unit: UnitKey
    reason: str
    message: str
    kind: Literal["Normal", "Warning"] = "Normal"


@dataclass(frozen=True, slots=True)
class Look:
    """A waiting gang that is looked at, and what must not be touched for it."""

    unit: Unit
    problem: Problem
    now: float
    spared: Collection[str] = ()
    """Nodes from which nobody moves, because a reservation counts on who ends there."""


class Defragmenter:
    """Plans rearrangements and follows them to their end."""

    def __init__(self, cluster: Cluster, preemptor: Preemptor, costs: Costs = STATED) -> None:
        self._cluster = cluster
        self._preemptor = preemptor
        self._costs = costs
        self._under_way: dict[UnitKey, Rearrangement] = {}
        self._moving: dict[UnitKey, Moving] = {}
        self._read: set[UnitKey] = set()
        self._requested: set[UnitKey] = set()

    @property
    def idle(self) -> bool:
        """Return whether nothing is being moved."""
        return not self._under_way

    # What is on its way.

    def read(self, unit: Unit) -> Rearrangement | None:
        """Take note of what a gang shows; return what an earlier leader left half done."""
        gang = unit.gang
        if gang is None:
            return None
        if DEFRAGMENT_ANNOTATION in gang.metadata.annotations and self._asked(unit):
            self._requested.add(unit.key)
        shown = gang.status.defragmentation
        if unit.key in self._read or shown is None or shown.phase != "Moving":
            return None
        one = resume(gang, shown)
        for move in one.moves.values():
            self._keep_again(move)
        self._follow(one)
        waiting = {m.name: m for muster in unit.musters for m in muster.pending}
        if not unit.bound and one.nodes.keys() <= waiting.keys() and one.nodes:
            shapes = {pod: waiting[pod].shape for pod in one.nodes}
            asked = admission.spoken_for(self._cluster, shapes, one.nodes)
            place = Nomination(unit.key, one.nodes, shapes, unit.queue, asked)
            place.purpose = "Defragmenting"
            self._preemptor.keep(place)
        return one

    def _keep_again(self, move: Moving) -> None:
        unit = self._cluster.units.get(move.key)
        if move.settled or unit is None or unit.gang is None:
            return
        if move.old(self._cluster) or not move.placed(unit):
            self._preemptor.keep(kept_again(self._cluster, unit, move))

    def _follow(self, one: Rearrangement) -> None:
        self._read.add(one.unit)
        self._under_way[one.unit] = one
        self._moving |= one.moves

    def awaits(self, key: UnitKey) -> bool:
        """Return whether a gang's new place is kept although its pods have not all come back."""
        move = self._moving.get(key)
        return move is not None and not move.settled and not self._back(move)

    def _back(self, move: Moving) -> bool:
        unit = self._cluster.units.get(move.key)
        if unit is None or move.old(self._cluster):
            return False
        return sum(len(muster.pending) for muster in unit.musters) >= len(move.nodes)

    def advance(self, now: float) -> Iterator[Note]:
        """Bring what is under way up to date; yield what there is to tell."""
        for one in list(self._under_way.values()):
            yield from self._advance(one, now)

    def wake_at(self) -> float | None:
        """Return when a place will have been kept long enough."""
        ends = [
            move.gone_at + RETURN_SECONDS
            for move in self._moving.values()
            if move.gone_at is not None and self.awaits(move.key)
        ]
        return min(ends, default=None)

    def _advance(self, one: Rearrangement, now: float) -> Iterator[Note]:
        unit = self._cluster.units.get(one.unit)
        nominated = one.unit in self._cluster.nominations
        stands = unit is not None and bool(unit.bound) and not any(m.need for m in unit.musters)
        if not nominated and not one.begun(self._cluster):
            self._call_off(one)
        for move in one.moves.values():
            if not move.settled:
                yield from self._step(move, now)
        if not nominated and not stands and not one.failed:
            one.failed = "the place that was made free for it came to nothing; it is back in line"
            yield Note(one.unit, "DefragmentationFailed", one.failed, "Warning")
        over = not nominated and all(move.settled for move in one.moves.values())
        told = words.progress(one)
        if over:
            del self._under_way[one.unit]
            for key in one.moves:
                self._moving.pop(key, None)
            if not one.failed:
                yield Note(one.unit, "Defragmented", told)
        self._show(one.unit, one.shown(told, over=over))

    def _call_off(self, one: Rearrangement) -> None:
        for move in one.moves.values():
            if not move.settled:
                move.step = "Stayed"
                self._cluster.nominations.drop(move.key)

    def _step(self, move: Moving, now: float) -> Iterator[Note]:
        """Say how far one gang is."""
        cluster = self._cluster
        unit = cluster.units.get(move.key)
        if unit is None or unit.gang is None or unit.over:
            move.step = "Gone"
            cluster.nominations.drop(move.key)
            return
        if move.old(cluster):
            return
        move.step = "Returning"
        move.gone_at = now if move.gone_at is None else move.gone_at
        if self.awaits(move.key) and now >= move.gone_at + RETURN_SECONDS:
            cluster.nominations.drop(move.key)
        if move.key in cluster.nominations:
            return
        if move.placed(unit) and not any(m.need for m in unit.musters):
            move.step = "Standing"
            where = sorted({m.node for m in unit.bound if not move.stays or m.name in move.nodes})
            yield Note(move.key, "Moved", f"has moved to {', '.join(where)}")
        else:
            move.step = "Waiting"
            lost = "its new place is lost on the way, or its pods were not made again in time"
            yield Note(move.key, "PlaceLost", f"{lost}; it is back in line", "Warning")

    def _show(self, key: UnitKey, record: Defragmentation) -> None:
        if self._cluster.defragmentations.get(key) != record:
            self._cluster.defragmentations[key] = record
            self._cluster.touched.add(key)

    def forget(self, key: UnitKey) -> None:
        """Forget a gang that is gone."""
        self._requested.discard(key)
        if key not in self._under_way:
            self._read.discard(key)
            self._cluster.defragmentations.pop(key, None)

    # What is asked for.

    def _asked(self, unit: Unit) -> str:
        """Return the request of a gang that has not been answered yet, empty for none."""
        gang = unit.gang
        if gang is None or unit.key in self._under_way:
            return ""
        shown = self._cluster.defragmentations.get(unit.key) or gang.status.defragmentation
        asked = gang.metadata.annotations.get(DEFRAGMENT_ANNOTATION, "")
        return "" if shown is not None and shown.request == asked else asked

    def requested(self) -> Iterator[Unit]:
        """Yield the gangs for which somebody has asked that others move."""
        for key in sorted(self._requested):
            unit = self._cluster.units.get(key)
            if unit is not None and key not in self._cluster.nominations:
                yield unit

    def answer(self, look: Look) -> Rearrangement | None:
        """Return the rearrangement that was asked for; where there is none the gang says why."""
        unit = look.unit
        self._requested.discard(unit.key)
        asked = self._asked(unit)
        if not asked:
            return None
        try:
            most = duration.parse(asked.partition(" ")[0])
        except ValueError as error:
            return self._refuse(unit, asked, f"annotation {DEFRAGMENT_ANNOTATION}: {error}")
        if unit.bound:
            return self._refuse(unit, asked, "it has its nodes; nobody needs to move for it")
        found = self.propose(look)
        if isinstance(found, str):
            return self._refuse(unit, asked, found)
        if found.price > most:
            price, agreed = words.of_one_gpu(found.price), words.of_one_gpu(most)
            why = f"the price is now {price}, and {agreed} was agreed to; ask again"
            return self._refuse(unit, asked, why)
        return self._begin(unit, found, asked, look.now)

    def by_policy(self, look: Look, policy: DefragmentationPolicy) -> Rearrangement | None:
        """Return the rearrangement that a policy allows for a gang; None where it allows none."""
        found = self.propose(look, duration.parse(policy.cool_down))
        if isinstance(found, str) or found.price > duration.parse(policy.max_price):
            return None
        return self._begin(look.unit, found, "", look.now)

    def propose(self, look: Look, rest: float = 0.0) -> Plan | str:
        """Return the plan that lets a gang start; where there is none, why.

        Nobody moves who got its place less than *rest* seconds ago.
        """
        unit, problem = look.unit, look.problem
        if admission.over_quota(self._cluster, unit, problem) is not None:
            return "its queue may not use what it asks for; moves do not change that"
        planner = Planner(self._cluster, unit, problem, self._preemptor.leaving())
        if planner.fits():
            return "it has room without anybody moving, and waits for its turn"
        found = movers(
            self._cluster,
            unit,
            problem,
            costs=self._costs,
            now=look.now,
            rest=rest,
            spared=look.spared,
        )
        plan = planner.find(found) if found else None
        return plan or words.no_plan(len({mover.key for mover in found}))

    def _refuse(self, unit: Unit, asked: str, why: str) -> Rearrangement | None:
        self._show(unit.key, Defragmentation(phase="Refused", request=asked, message=why))
        return None

    def _begin(self, unit: Unit, plan: Plan, request: str, now: float) -> Rearrangement:
        placed = plan.placement.assignments
        nodes = {one.member.name: one.spot.node for one in placed}
        place = Nomination(
            unit.key,
            nodes,
            {one.member.name: one.member.shape for one in placed},
            unit.queue,
            admission.counted(self._cluster, plan.placement),
            {one.member.name: one.spot.grant for one in placed},
            purpose="Defragmenting",
        )
        places = [place, *(kept_for(self._cluster, move) for move in plan.moves)]
        for one in places:
            self._preemptor.keep(one)
        found = begin(plan, nodes, request, now)
        self._follow(found)
        self._show(unit.key, found.shown(words.progress(found)))
        return found
