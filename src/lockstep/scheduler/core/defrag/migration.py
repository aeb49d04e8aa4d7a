"""A plan of moves that is being carried out, and how it is written down on the waiting gang.

What is written is all that a later leader needs: which pods leave, by uid, and which nodes are kept
for which gang. It is written before the first pod is told to go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from lockstep.api import timestamp
from lockstep.api.gang import Defragmentation, Gang, GangMove
from lockstep.scheduler.core.defrag.planner import Move, MovePlan
from lockstep.scheduler.core.model.decisions import Eviction
from lockstep.scheduler.core.model.workload import Member, PodKey, Workload, WorkloadKey
from lockstep.scheduler.core.placement import admission
from lockstep.scheduler.core.preemption.nominated_placement import nominated
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.state.nominations import Nomination

Step = Literal["Leaving", "Returning", "Standing", "Waiting", "Stayed", "Gone"]
SETTLED: tuple[Step, ...] = ("Standing", "Waiting", "Stayed", "Gone")
"""Steps after which nothing more happens to a gang for the sake of the plan."""


@dataclass(slots=True)
class Moving:
    """A gang on its way from its old place to its new one."""

    key: WorkloadKey
    price: int
    pods: dict[str, str]
    """Uids of the pods that end, by name."""
    nodes: dict[str, str]
    """By pod, the node that is kept for it."""
    asks: dict[str, int]
    stays: int = 0
    """Members that do not move; 0 where the whole gang does."""
    step: Step = "Leaving"
    gone_at: float | None = None
    """Since when none of its old pods is there, as far as this leader has seen."""

    def old(self, cluster: Cluster) -> list[Member]:
        """Return its pods that have yet to end."""
        found = ((cluster.pods.get((self.key.namespace, n)), uid) for n, uid in self.pods.items())
        return [m for m, uid in found if m is not None and m.uid == uid and m.holds]

    def placed(self, workload: Workload) -> bool:
        """Return whether those that move have nodes again."""
        if not self.stays:
            return bool(workload.bound)
        return len(workload.bound) >= self.stays + len(self.nodes)

    def victims(self) -> dict[PodKey, str]:
        """Return the uids of its pods that end, as nominations hold them."""
        return {(self.key.namespace, name): uid for name, uid in self.pods.items()}

    @property
    def settled(self) -> bool:
        """Return whether nothing more happens to it."""
        return self.step in SETTLED

    def shown(self) -> GangMove:
        """Return it as it is written down; what is not needed any more is left out."""
        over = self.settled
        return GangMove(
            namespace=self.key.namespace,
            name=self.key.name,
            price=self.price,
            pods={} if over else self.pods,
            nodes=self.nodes,
            asks={} if over else self.asks,
            stays=self.stays,
            phase=self.step,
        )


@dataclass(slots=True)
class Rearrangement:
    """A gang for which others move, and how far they are."""

    workload: WorkloadKey
    nodes: dict[str, str]
    """By pod of the gang, the node that it is to get."""
    request: str
    started_at: float
    moves: dict[WorkloadKey, Moving] = field(default_factory=dict)
    failed: str = ""
    """Why the gang lost the place that was made free for it."""

    @property
    def price(self) -> int:
        """Return the GPU-seconds of work that it throws away."""
        return sum(move.price for move in self.moves.values())

    def evictions(self, cluster: Cluster) -> list[Eviction]:
        """Return by gang the pods that have yet to end, each with where it is to stand again."""
        found = []
        for move in self.moves.values():
            victims = tuple(m for m in move.old(cluster) if not m.terminating)
            if victims and not move.settled:
                own = move.key.namespace == self.workload.namespace
                who = f"gang {self.workload.name}" if own else "a gang of another namespace"
                message = f"it moves so that {who} fits; its new place is kept for it"
                found.append(
                    Eviction(move.key, move.nodes, victims, message, "DefragmentationByScheduler")
                )
        return found

    def begun(self, cluster: Cluster) -> bool:
        """Return whether any pod has been told to go, so that all of them must."""
        return any(
            len([m for m in move.old(cluster) if not m.terminating]) < len(move.pods)
            for move in self.moves.values()
        )

    def shown(self, progress: str, *, over: bool = False) -> Defragmentation:
        """Return it as it is written down on the gang, with its *progress* in words."""
        ended: Literal["Done", "Failed"] = "Failed" if self.failed else "Done"
        return Defragmentation(
            phase=ended if over else "Moving",
            request=self.request,
            message=f"{self.failed}; {progress}" if self.failed else progress,
            price=self.price,
            started_at=timestamp.show(self.started_at),
            moves=[move.shown() for move in self.moves.values()],
        )


def begin(plan: MovePlan, nodes: dict[str, str], request: str, now: float) -> Rearrangement:
    """Return the rearrangement that carries a plan out."""
    found = Rearrangement(plan.workload, nodes, request, now)
    for move in plan.moves:
        members = move.mover.members
        found.moves[move.mover.key] = Moving(
            move.mover.key,
            round(move.mover.price),
            {member.name: member.uid for member in members},
            {one.member.name: one.spot.node for one in move.placement.assignments},
            _most(member.shape.request for member in members),
            move.mover.stays,
        )
    return found


def resume(gang: Gang, shown: Defragmentation) -> Rearrangement:
    """Return the rearrangement that an earlier leader wrote down on a gang."""
    key = WorkloadKey("Gang", gang.metadata.namespace, gang.metadata.name)
    started = timestamp.read(shown.started_at) or 0.0
    found = Rearrangement(key, gang.status.nominated, shown.request, started)
    for one in shown.moves:
        mover = WorkloadKey("Gang", one.namespace, one.name)
        found.moves[mover] = Moving(
            mover, one.price, one.pods, one.nodes, one.asks, one.stays, one.phase
        )
    return found


def kept_for(cluster: Cluster, move: Move) -> Nomination:
    """Return the new place of a gang that is about to move."""
    mover = move.mover
    return nominated(
        cluster, move.placement, mover.workload.queue, purpose="Moving", victims=mover.members
    )


def kept_again(cluster: Cluster, workload: Workload, move: Moving) -> Nomination:
    """Return the new place of a gang that moves, as far as it was written down."""
    known = cluster.shapes.asking(move.asks)
    pods = {name: cluster.pods.get((move.key.namespace, name)) for name in move.nodes}
    shapes = {name: pod.shape if pod is not None else known for name, pod in pods.items()}
    asked = admission.spoken_for(cluster, shapes, move.nodes)
    return Nomination(
        move.key,
        move.nodes,
        shapes,
        workload.queue,
        asked,
        victims=move.victims(),
        purpose="Moving",
    )


def _most(requests: Iterable[dict[str, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for request in requests:
        for name, amount in request.items():
            found[name] = max(amount, found.get(name, 0))
    return found
