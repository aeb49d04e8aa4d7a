"""Queue: who may use what."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from lockstep.api.containers import Quantity
from lockstep.api.duration import Duration
from lockstep.api.gang import Strategy
from lockstep.api.meta import Condition, LabelSelector, ObjectMeta
from lockstep.api.names import API_VERSION, GROUP, VERSION
from lockstep.api.quantity import NOT_NEGATIVE
from lockstep.api.resource import Resource
from lockstep.api.wire import Wire

Amount = (
    Annotated[str, Meta(pattern=NOT_NEGATIVE)]
    | Annotated[int, Meta(ge=0)]
    | Annotated[float, Meta(ge=0)]
)
"""How much of a resource a queue has or may have."""


class DefragmentationPolicy(Wire, frozen=True):
    """When other gangs are moved, without being asked, so that one of the queue fits."""

    after: Annotated[
        Duration, Meta(description="How long a gang waits before others move for it.")
    ] = "10m"
    max_price: Annotated[
        Duration,
        Meta(
            description="Most work thrown away for one gang, as time of one GPU: 8h is an hour of "
            "eight GPUs."
        ),
    ] = "8h"
    cool_down: Annotated[
        Duration,
        Meta(
            description="Time between two such rearrangements for the queue, and for which a gang "
            "that got its place is left alone."
        ),
    ] = "1h"


class AllowedUse(Wire, frozen=True):
    """Who may use a queue beside the team that it belongs to."""

    namespaces: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=63)]],
        Meta(max_length=1000, description="Namespaces whose workloads may use it."),
    ] = []
    namespace_selector: Annotated[
        LabelSelector | None,
        Meta(description="Labels of namespaces whose workloads may use it; {} means all."),
    ] = None
    users: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=253)]],
        Meta(max_length=1000, description="Users whose jobs and gangs may use it anywhere."),
    ] = []
    groups: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=253)]],
        Meta(max_length=1000, description="Groups whose jobs and gangs may use it anywhere."),
    ] = []


class QueueSpec(Wire, frozen=True):
    """The share of a team or a purpose."""

    parent: Annotated[
        str | None, Meta(description="Queue that this one is part of; none for a top queue.")
    ] = None
    allowed: Annotated[
        AllowedUse | None,
        Meta(
            description="Who may use the queue beside its team. When left out: its team alone, as "
            "the label lockstep.dev/team says; without a team those of its parent; at the top all."
        ),
    ] = None
    guaranteed: Annotated[
        dict[str, Amount],
        Meta(
            description="Amount of each resource that the queue always gets back; GPUs of one "
            "model are nvidia.com/gpu/MODEL, by the node label nvidia.com/gpu.product."
        ),
    ] = {}
    limit: Annotated[
        dict[str, Amount], Meta(description="Amount of each resource never exceeded.")
    ] = {}
    weight: Annotated[
        int, Meta(ge=0, description="Share of what is left over, against its siblings.")
    ] = 1
    lending: Annotated[
        Literal["Always", "Never"],
        Meta(description="Whether others may use the queue's guaranteed share while it is idle."),
    ] = "Always"
    lending_limit: Annotated[
        dict[str, Amount],
        Meta(description="Most of its guaranteed amount of a resource that others may use."),
    ] = {}
    borrowing_limit: Annotated[
        dict[str, Amount],
        Meta(description="Most of a resource that the queue may use beyond its guaranteed amount."),
    ] = {}
    preemption: Annotated[
        Literal["LowerPriority", "Never"],
        Meta(
            description="Whether a gang may take the place of less important ones of its queue; "
            "Never holds for all parts of the queue."
        ),
    ] = "LowerPriority"
    strategy: Annotated[
        Strategy | None,
        Meta(
            description="How its pods choose nodes unless their gang says so: that of its parent "
            "when left out; at the top Fragmentation where shares of GPUs are in use, else Binpack."
        ),
    ] = None
    defragmentation: Annotated[
        DefragmentationPolicy | None,
        Meta(
            description="Moves elastic and checkpointed gangs for those that wait because free "
            "room is scattered; that of its parent when left out, none at the top."
        ),
    ] = None
    hourly_budget: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(
            description="What the nodes that pools get for its gangs, those of its parts included, "
            "may cost an hour together."
        ),
    ] = None
    usage_half_life: Annotated[
        Duration | None,
        Meta(description="Lets past use count against the fair share, halved each such time."),
    ] = None


class UsualRequest(Wire, frozen=True):
    """What pods that are gone had asked for, and how often."""

    requests: Annotated[
        dict[str, Quantity], Meta(description="What one of them asked for of each resource.")
    ] = {}
    models: Annotated[
        list[str], Meta(description="GPU models that would do for them; none means any.")
    ] = []
    pods: Annotated[Quantity, Meta(description="How many there were, the old ones in part.")] = 0


class Usual(Wire, frozen=True):
    """What usually comes, as far as pods tell that are no longer there."""

    day: Annotated[
        str,
        Meta(
            description="Day as of which pods are counted: one made seven days before it counts "
            "half."
        ),
    ] = ""
    asked: Annotated[
        list[UsualRequest], Meta(description="Kinds of requests, the commonest first.")
    ] = []


class QueueStatus(Wire, frozen=True):
    """What the queue uses and holds back."""

    pending: Annotated[int, Meta(description="Gangs that wait.")] = 0
    running: Annotated[int, Meta(description="Gangs that are placed.")] = 0
    used: Annotated[
        dict[str, Quantity], Meta(description="What its pods hold, those of its parts included.")
    ] = {}
    borrowed: Annotated[
        dict[str, Quantity], Meta(description="What of it is beyond the guaranteed amounts.")
    ] = {}
    share: Annotated[
        str,
        Meta(
            description="Its dominant share of the cluster beyond what is guaranteed, in percent, "
            "divided by its weight; the smallest is served next."
        ),
    ] = ""
    average_use: Annotated[
        dict[str, Quantity],
        Meta(description="Its decayed average use, where past use counts, as of averageAt."),
    ] = {}
    average_at: Annotated[
        str | None,
        Meta(description="When that was so; since then it has used much the same all the time."),
    ] = None
    usual: Annotated[
        Usual | None,
        Meta(
            description="What its pods asked for that are gone, by which shares of GPUs are placed."
        ),
    ] = None
    observed_generation: int = 0
    conditions: list[Condition] = []


class Queue(Wire, frozen=True):
    """A queue; workloads that name no queue use ``default``."""

    metadata: ObjectMeta
    spec: QueueSpec = QueueSpec()
    status: QueueStatus = QueueStatus()
    api_version: str = API_VERSION
    kind: str = "Queue"


QUEUES = Resource(GROUP, VERSION, "queues", "Queue", False, Queue)
