"""Queue: who may use what."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from lockstep.api.core import Quantity
from lockstep.api.meta import Condition, ObjectMeta
from lockstep.api.names import API_VERSION, GROUP, VERSION
from lockstep.api.resource import Resource
from lockstep.api.wire import Wire


class QueueSpec(Wire, frozen=True):
    """The share of a team or a purpose."""

    parent: Annotated[
        str | None, Meta(description="Queue that this one is part of; none for a top queue.")
    ] = None
    guaranteed: Annotated[
        dict[str, Quantity],
        Meta(description="Amount of each resource that the queue always gets back."),
    ] = {}
    limit: Annotated[
        dict[str, Quantity], Meta(description="Amount of each resource never exceeded.")
    ] = {}
    weight: Annotated[
        int, Meta(ge=0, description="Share of what is left over, against its siblings.")
    ] = 1
    lending: Annotated[
        Literal["Always", "Never"],
        Meta(description="Whether others may use the queue's guaranteed share while it is idle."),
    ] = "Always"
    preemption: Annotated[
        Literal["LowerPriority", "Never"],
        Meta(description="Whether a gang may take the place of less important ones."),
    ] = "LowerPriority"


class QueueStatus(Wire, frozen=True):
    """What the queue uses and holds back."""

    pending: Annotated[int, Meta(description="Gangs that wait.")] = 0
    running: Annotated[int, Meta(description="Gangs that are placed.")] = 0
    used: dict[str, Quantity] = {}
    observed_generation: int = 0
    conditions: list[Condition] = []


class Queue(Wire, frozen=True):
    """A queue; ``default`` is used by whatever names none."""

    metadata: ObjectMeta
    spec: QueueSpec = QueueSpec()
    status: QueueStatus = QueueStatus()
    api_version: str = API_VERSION
    kind: str = "Queue"


QUEUES = Resource(GROUP, VERSION, "queues", "Queue", False, Queue)
