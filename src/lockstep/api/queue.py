"""Queue: who may use what."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from lockstep.api.containers import Quantity
from lockstep.api.duration import Duration
from lockstep.api.gang import Strategy
from lockstep.api.meta import Condition, LabelSelector, OwnObject
from lockstep.api.names import GROUP, VERSION
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

    after: Duration = "10m"
    """How long a gang waits before others move for it."""
    max_price: Duration = "8h"
    """Most work thrown away for one gang, as time of one GPU: 8h is an hour of eight GPUs."""
    cool_down: Duration = "1h"
    """Time between two such rearrangements for the queue, and for which a gang that got its place
    is left alone."""


class AllowedUse(Wire, frozen=True):
    """Who may use a queue beside the team that it belongs to."""

    namespaces: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=63)]], Meta(max_length=1000)
    ] = []
    """Namespaces whose workloads may use it."""
    namespace_selector: LabelSelector | None = None
    """Labels of namespaces whose workloads may use it; {} means all."""
    users: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=253)]], Meta(max_length=1000)
    ] = []
    """Users whose jobs and gangs may use it anywhere."""
    groups: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=253)]], Meta(max_length=1000)
    ] = []
    """Groups whose jobs and gangs may use it anywhere."""


class QueueSpec(Wire, frozen=True):
    """The share of a team or a purpose."""

    parent: str | None = None
    """Queue that this one is part of; none for a top queue."""
    allowed: AllowedUse | None = None
    """Who may use the queue beside its team. When left out: its team alone, as the label
    lockstep.dev/team says; without a team those of its parent; at the top all."""
    guaranteed: dict[str, Amount] = {}
    """Amount of each resource that the queue always gets back; GPUs of one model are
    nvidia.com/gpu/MODEL, by the node label nvidia.com/gpu.product."""
    limit: dict[str, Amount] = {}
    """Amount of each resource never exceeded."""
    weight: Annotated[float, Meta(ge=0)] = 1
    """Share of what is left over, against its siblings."""
    lending: Literal["Always", "Never"] = "Always"
    """Whether others may use the queue's guaranteed share while it is idle."""
    lending_limit: dict[str, Amount] = {}
    """Most of its guaranteed amount of a resource that others may use."""
    borrowing_limit: dict[str, Amount] = {}
    """Most of a resource that the queue may use beyond its guaranteed amount."""
    preemption: Literal["LowerPriority", "Never"] = "LowerPriority"
    """Whether a gang may take the place of less important ones of its queue; Never holds for all
    parts of the queue."""
    strategy: Strategy | None = None
    """How its pods choose nodes unless their gang says so: that of its parent when left out; at the
    top Fragmentation where shares of GPUs are in use, else Binpack."""
    defragmentation: DefragmentationPolicy | None = None
    """Moves elastic and checkpointed gangs for those that wait because free room is scattered; that
    of its parent when left out, none at the top."""
    hourly_budget: Annotated[float, Meta(ge=0)] | None = None
    """What the nodes that pools get for its gangs, those of its parts included, may cost an hour
    together."""
    usage_half_life: Duration | None = None
    """Lets past use count against the fair share, halved each such time."""


class QueueStatus(Wire, frozen=True):
    """What the queue uses and holds back."""

    pending: int = 0
    """Gangs that wait."""
    running: int = 0
    """Gangs that are placed."""
    used: dict[str, Quantity] = {}
    """What its pods hold, those of its parts included."""
    borrowed: dict[str, Quantity] = {}
    """What of it is beyond the guaranteed amounts."""
    share: str = ""
    """Its dominant share of the cluster beyond what is guaranteed, in percent, divided by its
    weight; the smallest is served next."""
    average_use: dict[str, Quantity] = {}
    """Its decayed average use, where past use counts, as of averageAt."""
    average_at: str | None = None
    """When that was so; since then it has used much the same all the time."""
    observed_generation: int = 0
    conditions: list[Condition] = []


class Queue(OwnObject, frozen=True):
    """A queue; workloads that name no queue use ``default``."""

    spec: QueueSpec = QueueSpec()
    status: QueueStatus = QueueStatus()
    kind: str = "Queue"


QUEUES = Resource(GROUP, VERSION, "queues", "Queue", False, Queue)
