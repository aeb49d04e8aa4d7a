"""Gang: pods that start together or not at all."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from lockstep.api.alignment import AlignmentWish
from lockstep.api.checkpoint import Checkpoint, LastCheckpoint, QueuedAt
from lockstep.api.duration import Duration
from lockstep.api.meta import Condition, LabelSelector, ObjectMeta
from lockstep.api.names import API_VERSION, GROUP, VERSION
from lockstep.api.parallelism import Parallelism
from lockstep.api.resource import Resource
from lockstep.api.wire import Wire

Positive = Annotated[int, Meta(ge=1)]
Count = Annotated[int, Meta(ge=0)]
Strategy = Literal["Binpack", "Spread", "Fragmentation"]


class TopologyWish(Wire, frozen=True):
    """How close together the members must or should be; tiers are named by the Topology."""

    required: Annotated[
        str | None, Meta(description="Tier that all members must share, such as leaf.")
    ] = None
    preferred: Annotated[
        str | None, Meta(description="Tier that members should share where that is possible.")
    ] = None


class GangGroup(Wire, frozen=True):
    """Members that are alike: one role of a job."""

    name: Annotated[str, Meta(min_length=1, max_length=63, description="Name of the group.")]
    min: Annotated[int, Meta(ge=0, description="Members without which the gang cannot start.")]
    desired: Annotated[
        Positive | None, Meta(description="Members wanted; the minimum when left out.")
    ] = None
    spares: Annotated[
        int,
        Meta(
            ge=0,
            description="Of those wanted, how many stand by: the last by their ranks. They cost "
            "nothing when they lose their place, and are the first to give it up.",
        ),
    ] = 0
    provision: Annotated[
        Literal["Min", "Desired"],
        Meta(
            description="For how many members NodePools get nodes: for the minimum, so that the "
            "gang starts, or once it stands for all that are wanted, as far as there are nodes."
        ),
    ] = "Min"
    selector: Annotated[
        LabelSelector | None,
        Meta(
            description="Which pods of the gang belong to the group; by default those whose label "
            "lockstep.dev/gang-group holds its name."
        ),
    ] = None
    topology: Annotated[
        TopologyWish | None, Meta(description="A wish of this group alone, inside the gang's.")
    ] = None
    alignment: Annotated[
        AlignmentWish | None,
        Meta(
            description="How close together the devices of each member must be, in place of what "
            "the gang says; a pod's own annotations go before both."
        ),
    ] = None
    template: Annotated[
        dict[str, Any] | None,
        Meta(
            description="Pod template of the members, for simulations and what-if; the "
            "controller that makes the gang makes its pods."
        ),
    ] = None
    processes: Annotated[
        Count | None,
        Meta(
            description="Ranks that a member runs: by default one for each of its GPUs, else one.",
        ),
    ] = None


class GangSpec(Wire, frozen=True):
    """What must be placed together."""

    min_member: Annotated[
        Positive | None, Meta(description="Short form for a single group: how many pods at least.")
    ] = None
    groups: Annotated[
        list[GangGroup],
        Meta(max_length=64, description="Long form: several groups of members."),
    ] = []
    topology: Annotated[
        TopologyWish | None, Meta(description="How close together all members must be.")
    ] = None
    alignment: Annotated[
        AlignmentWish | None,
        Meta(
            description="How close together the devices of each member must be, where neither its "
            "group nor its own annotations say so."
        ),
    ] = None
    parallelism: Annotated[
        Parallelism | None,
        Meta(description="How the members' ranks are split; they are laid out by that."),
    ] = None
    queue: Annotated[str, Meta(description="Queue that the gang waits in.")] = "default"
    priority_class_name: Annotated[
        str, Meta(description="PriorityClass that orders the gang in its queue.")
    ] = ""
    node_policy: Annotated[
        str,
        Meta(description="NodePolicy by which nodes are filled; the queue's when left out."),
    ] = ""
    max_wait: Annotated[
        Duration | None,
        Meta(description="Longest time that the gang waits for its place; then it fails."),
    ] = None
    strategy: Annotated[
        Strategy | None,
        Meta(
            description="Fill nodes one after the other, use many, or leave the least that no "
            "pod can use; the queue's when left out."
        ),
    ] = None
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
    price: Annotated[int, Meta(description="GPU-seconds of work that moving it throws away.")] = 0
    pods: Annotated[dict[str, str], Meta(description="Uids of its pods that end, by name.")] = {}
    nodes: Annotated[
        dict[str, str], Meta(description="By pod, the node that is kept for it meanwhile.")
    ] = {}
    asks: Annotated[
        dict[str, int],
        Meta(description="Most that one of its pods takes of each resource: bytes, milli-CPUs."),
    ] = {}
    stays: Annotated[
        int, Meta(description="Its pods that do not move; 0 where the whole gang does.")
    ] = 0
    phase: Annotated[
        Literal["Leaving", "Returning", "Standing", "Waiting", "Stayed", "Gone"],
        Meta(
            description="Leaving: its pods end. Returning: they are made again. Standing: it runs "
            "where it was to. Waiting: it lost its new place. Stayed: it was not moved. Gone."
        ),
    ] = "Leaving"


class Defragmentation(Wire, frozen=True):
    """Moves of other gangs that are made, or were asked for, so that this one fits."""

    phase: Annotated[
        Literal["Moving", "Done", "Failed", "Refused"],
        Meta(description="Moving, Done, Failed or Refused."),
    ]
    request: Annotated[
        str,
        Meta(description="The annotation that this answers; empty where a queue's policy asked."),
    ] = ""
    message: Annotated[str, Meta(description="How far it is, or why it is not done.")] = ""
    price: Annotated[int, Meta(description="GPU-seconds of work that it throws away.")] = 0
    started_at: str | None = None
    moves: list[GangMove] = []


class GangReservation(Wire, frozen=True):
    """The time and the place that are kept for the first gang that does not fit."""

    time: Annotated[str, Meta(description="When it starts at the latest, by the run times stated.")]
    place: Annotated[
        dict[str, str], Meta(description="By pod, the node on which room is kept for it.")
    ] = {}


class Provision(Wire, frozen=True):
    """Nodes that NodePools get for a gang that has no room, or why they get none."""

    phase: Annotated[
        Literal["Requested", "Held", "Refused"],
        Meta(
            description="Requested: nodes are on their way. Held: they are there and kept for the "
            "gang. Refused: no pool helps."
        ),
    ]
    message: Annotated[str, Meta(description="Which nodes, or why none, in words.")] = ""
    pools: Annotated[dict[str, int], Meta(description="Nodes asked for, by pool.")] = {}
    expected_at: Annotated[
        str | None, Meta(description="When the last of them should be ready.")
    ] = None


class GangStatus(Wire, frozen=True):
    """How far the gang is, and why it waits."""

    phase: Annotated[
        Literal["Pending", "Placing", "Placed", "Running", "Finished", "Failed"],
        Meta(description="Pending, Placing, Placed, Running, Finished or Failed."),
    ] = "Pending"
    reason: Annotated[str, Meta(description="One word for why the gang waits.")] = ""
    message: Annotated[str, Meta(description="Why the gang waits, in words and numbers.")] = ""
    remedy: Annotated[str, Meta(description="What would let it start; tried where it can be.")] = ""
    members: int = 0
    bound: int = 0
    running: int = 0
    groups: list[GroupStatus] = []
    domain: Annotated[
        dict[str, str], Meta(description="Topology domain that holds the gang, by tier.")
    ] = {}
    position: Annotated[int | None, Meta(description="Place in its queue, 1 is next.")] = None
    estimated_start: Annotated[
        str | None,
        Meta(description="When it starts by the run times stated, if nothing new comes."),
    ] = None
    estimated_at: Annotated[
        str | None,
        Meta(description="When that was found; what was found later says much the same."),
    ] = None
    no_estimate: Annotated[
        str, Meta(description="Why it has no estimated start, where it has none.")
    ] = ""
    not_before: Annotated[
        str | None,
        Meta(description="Until when it surely does not start, where no more could be told."),
    ] = None
    nominated: Annotated[
        dict[str, str], Meta(description="By pod, the node that is being made free for it.")
    ] = {}
    reservation: Annotated[
        GangReservation | None,
        Meta(description="What is kept for it, as the first in line that does not fit."),
    ] = None
    defragmentation: Annotated[
        Defragmentation | None, Meta(description="Moves of others so that this gang fits.")
    ] = None
    provision: Annotated[
        Provision | None, Meta(description="Nodes that NodePools get so that this gang fits.")
    ] = None
    preempted: Annotated[
        dict[str, str],
        Meta(
            description="Pods whose place went to others, with their uids, until others of these "
            "names come."
        ),
    ] = {}
    queued_at: QueuedAt = None
    last_checkpoint: LastCheckpoint = None
    waiting_since: str | None = None
    placed_at: str | None = None
    observed_generation: int = 0
    conditions: list[Condition] = []


class Gang(Wire, frozen=True):
    """A gang: groups of pods that are placed as a whole."""

    metadata: ObjectMeta
    spec: GangSpec = GangSpec()
    status: GangStatus = GangStatus()
    api_version: str = API_VERSION
    kind: str = "Gang"


GANGS = Resource(GROUP, VERSION, "gangs", "Gang", True, Gang)
