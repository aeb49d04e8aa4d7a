"""Defragmentation step by step: asked for or due, planned, kept, waited for, told.

One rearrangement is carried out at a time. The place of the waiting gang and the new place of each
gang that moves are kept from the moment of the decision; what comes back first stands first. A
gang that loses its new place on the way, or whose pods are not made again, is back in line.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from operator import attrgetter

from lockstep.api import duration
from lockstep.api.gang import Defragmentation
from lockstep.api.names import DEFRAGMENT_ANNOTATION
from lockstep.api.queue import DefragmentationPolicy
from lockstep.scheduler.core.defrag import messages
from lockstep.scheduler.core.defrag.candidates import MoveCosts, Stated, candidate_sets
from lockstep.scheduler.core.defrag.migration import (
    Moving,
    Rearrangement,
    begin,
    kept_again,
    kept_for,
    resume,
)
from lockstep.scheduler.core.defrag.planner import MovePlan, MovePlanner
from lockstep.scheduler.core.model.decisions import Note
from lockstep.scheduler.core.model.workload import Workload, WorkloadKey
from lockstep.scheduler.core.placement import admission
from lockstep.scheduler.core.placement.problem import Problem
from lockstep.scheduler.core.preemption.nominated_placement import nominated
from lockstep.scheduler.core.preemption.preemptor import Preemptor
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.state.nominations import Nomination

RETURN_SECONDS = 300.0
"""Time for which the new place of a gang is kept after its last pod has ended, for its pods to be
made again."""
STATED = Stated()


@dataclass(frozen=True, slots=True)
class Look:
    """A waiting gang that is looked at, and what must not be touched for it."""

    workload: Workload
    problem: Problem
    now: float
    spared: Collection[str] = ()
    """Nodes from which no pod moves, because a reservation counts on what ends there."""


class Defragmenter:
    """Plans rearrangements and follows them to their end."""

    def __init__(self, cluster: Cluster, preemptor: Preemptor, costs: MoveCosts = STATED) -> None:
        self._cluster = cluster
        self._preemptor = preemptor
        self._costs = costs
        self._under_way: dict[WorkloadKey, Rearrangement] = {}
        self._moving: dict[WorkloadKey, Moving] = {}
        self._read: set[WorkloadKey] = set()
        self._requested: set[WorkloadKey] = set()

    @property
    def idle(self) -> bool:
        """Return whether nothing is being moved."""
        return not self._under_way

    # What is on its way.

    def read(self, workload: Workload) -> Rearrangement | None:
        """Take note of what a gang shows; return what an earlier leader left half done."""
        gang = workload.gang
        if gang is None:
            return None
        if DEFRAGMENT_ANNOTATION in gang.metadata.annotations and self._asked(workload):
            self._requested.add(workload.key)
        shown = gang.status.defragmentation
        if workload.key in self._read or shown is None or shown.phase != "Moving":
            return None
        one = resume(gang, shown)
        for move in one.moves.values():
            self._keep_again(move)
        self._follow(one)
        waiting = {m.name: m for pod_group in workload.pod_groups for m in pod_group.pending}
        if not workload.bound and one.nodes.keys() <= waiting.keys() and one.nodes:
            shapes = {pod: waiting[pod].shape for pod in one.nodes}
            asked = admission.spoken_for(self._cluster, shapes, one.nodes)
            place = Nomination(workload.key, one.nodes, shapes, workload.queue, asked)
            place.purpose = "Defragmenting"
            self._preemptor.keep(place)
        return one

    def _keep_again(self, move: Moving) -> None:
        workload = self._cluster.workloads.get(move.key)
        if move.settled or workload is None or workload.gang is None:
            return
        if move.old(self._cluster) or not move.placed(workload):
            self._preemptor.keep(kept_again(self._cluster, workload, move))

    def _follow(self, one: Rearrangement) -> None:
        self._read.add(one.workload)
        self._under_way[one.workload] = one
        self._moving |= one.moves

    def awaits(self, key: WorkloadKey) -> bool:
        """Return whether a gang's new place is kept although its pods have not all come back."""
        move = self._moving.get(key)
        return move is not None and not move.settled and not self._back(move)

    def _back(self, move: Moving) -> bool:
        workload = self._cluster.workloads.get(move.key)
        if workload is None or move.old(self._cluster):
            return False
        return sum(len(pod_group.pending) for pod_group in workload.pod_groups) >= len(move.nodes)

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
        workload = self._cluster.workloads.get(one.workload)
        nominated = one.workload in self._cluster.nominations
        stands = (
            workload is not None
            and bool(workload.bound)
            and not any(m.need for m in workload.pod_groups)
        )
        if not nominated and not one.begun(self._cluster):
            self._call_off(one)
        for move in one.moves.values():
            if not move.settled:
                yield from self._step(move, now)
        if not nominated and not stands and not one.failed:
            one.failed = "the place that was made free for it came to nothing; it is back in line"
            yield Note(one.workload, "DefragmentationFailed", one.failed, "Warning")
        over = not nominated and all(move.settled for move in one.moves.values())
        told = messages.progress(one)
        if over:
            del self._under_way[one.workload]
            for key in one.moves:
                self._moving.pop(key, None)
            if not one.failed:
                yield Note(one.workload, "Defragmented", told)
        self._show(one.workload, one.shown(told, over=over))

    def _call_off(self, one: Rearrangement) -> None:
        for move in one.moves.values():
            if not move.settled:
                move.step = "Stayed"
                self._cluster.nominations.drop(move.key)

    def _step(self, move: Moving, now: float) -> Iterator[Note]:
        """Say how far one gang is."""
        cluster = self._cluster
        workload = cluster.workloads.get(move.key)
        if workload is None or workload.gang is None or workload.over:
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
        if move.placed(workload) and not any(m.need for m in workload.pod_groups):
            move.step = "Standing"
            where = sorted(
                {m.node for m in workload.bound if not move.stays or m.name in move.nodes}
            )
            yield Note(move.key, "Moved", f"has moved to {', '.join(where)}")
        else:
            move.step = "Waiting"
            lost = "its new place is lost on the way, or its pods were not made again in time"
            yield Note(move.key, "PlaceLost", f"{lost}; it is back in line", "Warning")

    def _show(self, key: WorkloadKey, record: Defragmentation) -> None:
        if self._cluster.defragmentations.get(key) != record:
            self._cluster.defragmentations[key] = record
            self._cluster.touched.add(key)

    def forget(self, key: WorkloadKey) -> None:
        """Forget a gang that is gone."""
        self._requested.discard(key)
        if key not in self._under_way:
            self._read.discard(key)
            self._cluster.defragmentations.pop(key, None)

    # What is asked for.

    def _asked(self, workload: Workload) -> str:
        """Return the request of a gang that has not been answered yet, empty for none."""
        gang = workload.gang
        if gang is None or workload.key in self._under_way:
            return ""
        shown = self._cluster.defragmentations.get(workload.key) or gang.status.defragmentation
        asked = gang.metadata.annotations.get(DEFRAGMENT_ANNOTATION, "")
        return "" if shown is not None and shown.request == asked else asked

    def requested(self) -> Iterator[Workload]:
        """Yield the gangs for which a user has asked that others move."""
        for key in sorted(self._requested):
            workload = self._cluster.workloads.get(key)
            if workload is not None and key not in self._cluster.nominations:
                yield workload

    def answer(self, look: Look) -> Rearrangement | None:
        """Return the rearrangement that was asked for; where there is none the gang says why."""
        workload = look.workload
        self._requested.discard(workload.key)
        asked = self._asked(workload)
        if not asked:
            return None
        try:
            most = duration.parse(asked.partition(" ")[0])
        except ValueError as error:
            return self._refuse(workload, asked, f"annotation {DEFRAGMENT_ANNOTATION}: {error}")
        if workload.bound:
            return self._refuse(workload, asked, "it has its nodes; nothing needs to move for it")
        found = self.propose(look)
        if isinstance(found, str):
            return self._refuse(workload, asked, found)
        if found.price > most:
            price, agreed = messages.of_one_gpu(found.price), messages.of_one_gpu(most)
            why = f"the price is now {price}, and {agreed} was agreed to; ask again"
            return self._refuse(workload, asked, why)
        return self._begin(workload, found, asked, look.now)

    def by_policy(self, look: Look, policy: DefragmentationPolicy) -> Rearrangement | None:
        """Return the rearrangement that a policy allows for a gang; None where it allows none."""
        found = self.propose(look, duration.parse(policy.cool_down))
        if isinstance(found, str) or found.price > duration.parse(policy.max_price):
            return None
        return self._begin(look.workload, found, "", look.now)

    def propose(self, look: Look, rest: float = 0.0) -> MovePlan | str:
        """Return the plan that lets a gang start; where there is none, why.

        No gang moves that got its place less than *rest* seconds ago.
        """
        workload, problem = look.workload, look.problem
        if admission.over_quota(self._cluster, workload, problem) is not None:
            return "its queue may not use what it asks for; moves do not change that"
        planner = MovePlanner(self._cluster, workload, problem, self._preemptor.leaving())
        if planner.fits():
            return "it has room without any move, and waits for its turn"
        sets = candidate_sets(
            self._cluster,
            workload,
            problem,
            costs=self._costs,
            now=look.now,
            rest=rest,
            spared=look.spared,
        )
        plans = (planner.find(movers) for movers in sets)
        plan = min((one for one in plans if one is not None), key=attrgetter("price"), default=None)
        return plan or messages.no_plan(len({m.key for movers in sets for m in movers}))

    def _refuse(self, workload: Workload, asked: str, why: str) -> Rearrangement | None:
        self._show(workload.key, Defragmentation(phase="Refused", request=asked, message=why))
        return None

    def _begin(self, workload: Workload, plan: MovePlan, request: str, now: float) -> Rearrangement:
        place = nominated(
            self._cluster, plan.placement, workload.queue, purpose="Defragmenting", victims=()
        )
        places = [place, *(kept_for(self._cluster, move) for move in plan.moves)]
        for one in places:
            self._preemptor.keep(one)
        found = begin(plan, place.nodes, request, now)
        self._follow(found)
        self._show(workload.key, found.shown(messages.progress(found)))
        return found
