"""Gang: pods that start together or not at all."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from lockstep.api.alignment import AlignmentWish
from lockstep.api.checkpoint import Checkpoint, LastCheckpoint, QueuedAt
from lockstep.api.duration import Duration
from lockstep.api.meta import Condition, LabelSelector, OwnObject
from lockstep.api.names import GROUP, VERSION
from lockstep.api.parallelism import Parallelism
from lockstep.api.resource import Resource
from lockstep.api.wire import Wire

Positive = Annotated[int, Meta(ge=1)]
Count = Annotated[int, Meta(ge=0)]
Strategy = Literal["Binpack", "Spread", "Fragmentation"]


class TopologyWish(Wire, frozen=True):
    """How close together the members must or should be; tiers are named by the Topology."""

    required: str | None = None
    """Tier that all members must share, such as leaf."""
    preferred: str | None = None
    """Tier that members should share where that is possible."""


class GangGroup(Wire, frozen=True):
    """Members that are alike: one role of a job."""

    name: Annotated[str, Meta(min_length=1, max_length=63)]
    """Name of the group."""
    min: Annotated[int, Meta(ge=0)]
    """Members without which the gang cannot start."""
    desired: Positive | None = None
    """Members wanted; the minimum when left out."""
    spares: Annotated[int, Meta(ge=0)] = 0
    """Of those wanted, how many stand by: the last by their ranks. They cost nothing when they lose
    their place, and are the first to give it up."""
    provision: Literal["Min", "Desired"] = "Min"
    """For how many members NodePools get nodes: for the minimum, so that the gang starts, or once
    it stands for all that are wanted, as far as there are nodes."""
    selector: LabelSelector | None = None
    """Which pods of the gang belong to the group; by default those whose label
    lockstep.dev/gang-group holds its name."""
    topology: TopologyWish | None = None
    """A wish of this group alone, inside the gang's."""
    alignment: AlignmentWish | None = None
    """How close together the devices of each member must be, in place of what the gang says; a
    pod's own annotations go before both."""
    template: dict[str, Any] | None = None
    """Pod template of the members, for simulations and what-if; the controller that makes the gang
    makes its pods."""
    processes: Count | None = None
    """Ranks that a member runs: by default one for each of its GPUs, else one."""


class GangSpec(Wire, frozen=True):
    """What must be placed together."""

    min_member: Positive | None = None
    """Short form for a single group: how many pods at least."""
    groups: Annotated[list[GangGroup], Meta(max_length=64)] = []
    """Long form: several groups of members."""
    topology: TopologyWish | None = None
    """How close together all members must be."""
    alignment: AlignmentWish | None = None
    """How close together the devices of each member must be, where neither its group nor its own
    annotations say so."""
    parallelism: Parallelism | None = None
    """How the members' ranks are split; they are laid out by that."""
    queue: str = "default"
    """Queue that the gang waits in."""
    priority_class_name: str = ""
    """PriorityClass that orders the gang in its queue."""
    node_policy: str = ""
    """NodePolicy by which nodes are filled; the queue's when left out."""
    max_wait: Duration | None = None
    """Longest time that the gang waits for its place; then it fails."""
    strategy: Strategy | None = None
    """Fill nodes one after the other, use many, or leave the least that no pod can use; the queue's
    when left out."""
    checkpoint: Checkpoint | None = None


class GroupStatus(Wire, frozen=True):
    """How many members of one group there are, and how far they are."""

    name: str
    members: int = 0
    bound: int = 0
    running: int = 0


class GangMove(Wire, frozen=True):
    """A running gang that moves so that another fits."""

    namespace: str
    name: str
    price: int = 0
    """GPU-seconds of work that moving it throws away."""
    pods: dict[str, str] = {}
    """Uids of its pods that end, by name."""
    nodes: dict[str, str] = {}
    """By pod, the node that is kept for it meanwhile."""
    asks: dict[str, int] = {}
    """Most that one of its pods takes of each resource: bytes, milli-CPUs."""
    stays: int = 0
    """Its pods that do not move; 0 where the whole gang does."""
    phase: Literal["Leaving", "Returning", "Standing", "Waiting", "Stayed", "Gone"] = "Leaving"
    """Leaving: its pods end. Returning: they are made again. Standing: it runs where it was to.
    Waiting: it lost its new place. Stayed: it was not moved. Gone."""


class Defragmentation(Wire, frozen=True):
    """Moves of other gangs that are made, or were asked for, so that this one fits."""

    phase: Literal["Moving", "Done", "Failed", "Refused"]
    """Moving, Done, Failed or Refused."""
    request: str = ""
    """The annotation that this answers; empty where a queue's policy asked."""
    message: str = ""
    """How far it is, or why it is not done."""
    price: int = 0
    """GPU-seconds of work that it throws away."""
    started_at: str | None = None
    moves: list[GangMove] = []


class GangReservation(Wire, frozen=True):
    """The time and the place that are kept for the first gang that does not fit."""

    time: str
    """When it starts at the latest, by the run times stated."""
    place: dict[str, str] = {}
    """By pod, the node on which room is kept for it."""


class Provision(Wire, frozen=True):
    """Nodes that NodePools get for a gang that has no room, or why they get none."""

    phase: Literal["Requested", "Held", "Refused"]
    """Requested: nodes are on their way. Held: they are there and kept for the gang. Refused: no
    pool helps."""
    message: str = ""
    """Which nodes, or why none, in words."""
    pools: dict[str, int] = {}
    """Nodes asked for, by pool."""
    expected_at: str | None = None
    """When the last of them should be ready."""


class GangStatus(Wire, frozen=True):
    """How far the gang is, and why it waits."""

    phase: Literal["Pending", "Placing", "Placed", "Running", "Finished", "Failed"] = "Pending"
    """Pending, Placing, Placed, Running, Finished or Failed."""
    reason: str = ""
    """One word for why the gang waits."""
    message: str = ""
    """Why the gang waits, in words and numbers."""
    remedy: str = ""
    """What would let it start; tried where it can be."""
    members: int = 0
    bound: int = 0
    running: int = 0
    groups: list[GroupStatus] = []
    domain: dict[str, str] = {}
    """Topology domain that holds the gang, by tier."""
    position: int | None = None
    """Place in its queue, 1 is next."""
    estimated_start: str | None = None
    """When it starts by the run times stated, if nothing new comes."""
    estimated_at: str | None = None
    """When that was found; what was found later says much the same."""
    no_estimate: str = ""
    """Why it has no estimated start, where it has none."""
    not_before: str | None = None
    """Until when it surely does not start, where no more could be told."""
    nominated: dict[str, str] = {}
    """By pod, the node that is being made free for it."""
    reservation: GangReservation | None = None
    """What is kept for it, as the first in line that does not fit."""
    defragmentation: Defragmentation | None = None
    """Moves of others so that this gang fits."""
    provision: Provision | None = None
    """Nodes that NodePools get so that this gang fits."""
    preempted: dict[str, str] = {}
    """Pods whose place went to others, with their uids, until others of these names come."""
    queued_at: QueuedAt = None
    last_checkpoint: LastCheckpoint = None
    waiting_since: str | None = None
    placed_at: str | None = None
    observed_generation: int = 0
    conditions: list[Condition] = []


class Gang(OwnObject, frozen=True):
    """A gang: groups of pods that are placed as a whole."""

    spec: GangSpec = GangSpec()
    status: GangStatus = GangStatus()
    kind: str = "Gang"


GANGS = Resource(GROUP, VERSION, "gangs", "Gang", True, Gang)
