"""One run of the protocol: every arrival is placed at once or dropped, and nothing ever leaves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from bench.fgd.lists import ListedNode, ListedPod, Placement
from bench.fgd.nodes import ListedNodes
from bench.fgd.policies import Policy
from lockstep.scheduler.core.scoring.gpu_milli import Request

MARKS = (100, 130)
"""Arrived demand, in per cent of the cluster's GPUs, at which the allocation is told."""
TOLERANCE = 0.5
"""Points below a mark from which it counts as reached: arrivals seldom end on it."""

STRIDE = 256
"""Arrivals between two reports of progress."""

Progress = Callable[[float], None]


def class_of(request: Request) -> str:
    """Return a request's class: ``cpu``, ``share``, or the number of its cards as ``8-gpu``."""
    if not request.cards:
        return "cpu"
    return "share" if request.shared else f"{request.cards}-gpu"


@dataclass(slots=True)
class Outcome:
    """What a run came to; demand and allocation are in per cent of the cluster's GPU milli."""

    capacity: int
    arrived: int = 0
    allocated: int = 0
    pods: int = 0
    first_drop_at: float | None = None
    allocation: dict[str, float] = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)
    placements: list[Placement] = field(default_factory=list)

    @property
    def demand(self) -> float:
        """Return the demand that has arrived."""
        return 100.0 * self.arrived / self.capacity

    @property
    def share(self) -> float:
        """Return the allocation now."""
        return 100.0 * self.allocated / self.capacity

    def arrive(self, request: Request) -> None:
        """Count an arrival; tell the allocation at the marks that it goes beyond."""
        after = 100.0 * (self.arrived + request.gpu) / self.capacity
        for mark in MARKS:
            if str(mark) not in self.allocation and after > mark:
                self.allocation[str(mark)] = self.share
        self.arrived += request.gpu
        self.pods += 1

    def drop(self, request: Request) -> None:
        """Count an arrival for which no node had room."""
        self.dropped[class_of(request)] += 1
        if self.first_drop_at is None:
            self.first_drop_at = self.demand

    def end(self) -> None:
        """Tell the allocation at the marks that the last arrival came close enough to."""
        for mark in MARKS:
            if str(mark) not in self.allocation and self.demand >= mark - TOLERANCE:
                self.allocation[str(mark)] = self.share


class Cluster:
    """The nodes of a run, in the order in which equals are preferred: drawn by chance."""

    def __init__(self, nodes: Sequence[ListedNode], random: Random) -> None:
        self._listed = sorted(nodes, key=lambda node: node.name)
        random.shuffle(self._listed)
        self.free = ListedNodes.fresh([node.offer for node in self._listed])

    def name(self, row: int) -> str:
        """Return the name of the node in a row."""
        return self._listed[row].name


def fill(
    cluster: Cluster,
    arrivals: Sequence[tuple[str, ListedPod]],
    policy: Policy,
    progress: Progress | None = None,
) -> Outcome:
    """Let the *arrivals* come one by one and return what came of it.

    The policy is shown one arrival at a time.
    """
    outcome = Outcome(cluster.free.capacity)
    for arrival, pod in arrivals:
        outcome.arrive(pod.request)
        place = policy.choose(pod.request)
        if place is None:
            outcome.drop(pod.request)
            outcome.placements.append(Placement(arrival, pod.name, "", ()))
            continue
        cluster.free.take(place.row, pod.request, place.cards)
        policy.changed(place.row)
        outcome.allocated += pod.request.gpu
        node = cluster.name(place.row)
        outcome.placements.append(Placement(arrival, pod.name, node, place.cards))
        if progress is not None and len(outcome.placements) % STRIDE == 0:
            progress(outcome.demand)
    outcome.end()
    return outcome
