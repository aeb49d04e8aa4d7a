"""NodePool: nodes that could exist, and who makes them."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from lockstep.api.core import Taint
from lockstep.api.duration import Duration
from lockstep.api.meta import OwnObject
from lockstep.api.names import GROUP, VERSION
from lockstep.api.queue import Amount
from lockstep.api.resource import Resource
from lockstep.api.timestamp import Time
from lockstep.api.wire import Wire

Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
MOST_NODES = 10_000

AtomicClass = Literal[
    "best-effort-atomic-scale-up.autoscaling.x-k8s.io", "check-capacity.autoscaling.x-k8s.io"
]


class PoolDomain(Wire, frozen=True):
    """A tier of the network under which nodes of the pool are put together."""

    label: Annotated[str, Meta(min_length=1, max_length=317)]
    """Node label that names the domain."""
    nodes: Positive
    """How many of the pool's nodes fit under one."""


class NodeTemplate(Wire, frozen=True):
    """What every node of a pool is like."""

    capacity: Annotated[dict[str, Amount], Meta(min_length=1)]
    """What a node offers: cpu, memory, nvidia.com/gpu, pods."""
    labels: dict[str, str] = {}
    """Labels that its nodes bear."""
    annotations: dict[str, str] = {}
    """Annotations that its nodes bear, such as lockstep.dev/devices."""
    taints: list[Taint] = []
    """Taints that its nodes bear."""


class SimulatedProvider(Wire, frozen=True):
    """Nodes that only pretend; `lockstep simulate-nodes` keeps them alive."""


class CommandProvider(Wire, frozen=True):
    """A program beside the controllers that is told what to do on its standard input."""

    program: Annotated[str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]
    """Its file name in the directory that `lockstep controllers --pool-commands` names."""
    timeout: Duration = "30s"
    """Time that one call may take."""


class HookProvider(Wire, frozen=True):
    """An HTTP address that is told what to do by POST requests with JSON."""

    url: Annotated[str, Meta(pattern="^https?://", max_length=2000)]
    """Where requests go."""
    token_secret: str = ""
    """Secret in the namespace of Lockstep whose key `token` is sent as bearer token; none when left
    out."""
    timeout: Duration = "30s"
    """Time that one request may take."""


class ProvisioningProvider(Wire, frozen=True):
    """ProvisioningRequests, which cluster-autoscaler fulfils as a whole or not at all."""

    class_name: AtomicClass = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
    """Provisioning class: scale up at once, or only check."""
    namespace: str = "lockstep-system"
    """Namespace of the requests and their pod templates."""


class NodeClassRef(Wire, frozen=True):
    """A NodeClass of Karpenter: how the cloud makes its machines."""

    group: str
    kind: str
    name: str


class KarpenterRequirement(Wire, frozen=True):
    """One requirement on Karpenter's nodes, such as their instance types."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: list[str] = []


class KarpenterProvider(Wire, frozen=True):
    """NodeClaims, each of which Karpenter turns into one node."""

    node_class_ref: NodeClassRef
    """How its machines are made."""
    requirements: list[KarpenterRequirement] = []
    """Which machines they may be."""


class PoolProvider(Wire, frozen=True):
    """Who makes the nodes: exactly one is set."""

    simulated: SimulatedProvider | None = None
    provisioning_request: ProvisioningProvider | None = None
    karpenter: KarpenterProvider | None = None
    command: CommandProvider | None = None
    hook: HookProvider | None = None


class NodePoolSpec(Wire, frozen=True):
    """How many nodes of which kind there may be, what they cost, and who makes them."""

    template: NodeTemplate
    """What each node is like."""
    provider: PoolProvider
    """Who makes the nodes."""
    min: Count = 0
    """Nodes that are always there."""
    max: Annotated[int, Meta(ge=1, le=MOST_NODES)] = 1
    """Nodes that there are at most."""
    domains: Annotated[list[PoolDomain], Meta(max_length=16)] = []
    """How many nodes fit under a leaf, a spine and so on."""
    node_hour: Annotated[float, Meta(ge=0)] | None = None
    """What a node costs an hour; the PriceLists say it when left out."""
    hourly_budget: Annotated[float, Meta(ge=0)] | None = None
    """What all its nodes together may cost an hour."""
    spot: bool = False
    """Whether the cloud may take its nodes back."""
    arrival: Duration = "5m"
    """Time from asking until a node is ready."""
    timeout: Duration | None = None
    """Time after which a node that has not come is given up; 3 x arrival."""
    idle: Duration = "10m"
    """Time that a node may stand idle."""
    back_off: Duration = "1m"
    """Time that a pool is left alone after it failed; doubles up to 16 times."""


class PoolHolder(Wire, frozen=True):
    """A gang, or a pod of no gang, for which nodes are held."""

    kind: Literal["Gang", "Pod"]
    namespace: str
    name: str
    uid: str


class PoolRequest(Wire, frozen=True):
    """Nodes that were asked for at once, and for whom."""

    id: str
    """Value of the taint that holds its nodes."""
    slots: list[int]
    """Numbers of the nodes, from 0 to max - 1."""
    at: str
    """When it was decided."""
    holders: list[PoolHolder] = []
    """Whom they are for; none for the pool's minimum."""
    sent: bool = False
    """Whether the provider has taken it."""


class PoolDecision(Wire, frozen=True):
    """Something that was decided about the pool, and why."""

    at: str
    text: str


class NodePoolStatus(Wire, frozen=True):
    """Which nodes there are, which are on their way, and what became of the last requests."""

    nodes: int = 0
    """Nodes that are there."""
    ready: int = 0
    """Nodes that are ready."""
    idle: int = 0
    """Nodes on which nothing runs."""
    coming: int = 0
    """Nodes that are on their way."""
    hourly_cost: float | None = None
    """What its nodes cost an hour, where prices are known."""
    requests: list[PoolRequest] = []
    """Requests that are not fulfilled yet."""
    failures: int = 0
    """Requests in a row that failed."""
    retry_at: Time | None = None
    """Until when it is left alone, after failures."""
    reason: str = ""
    """One word for what is wrong; empty where nothing."""
    message: str = ""
    """What is wrong, in words, and what to do."""
    decisions: Annotated[list[PoolDecision], Meta(max_length=20)] = []
    """The latest decisions, newest last."""


class NodePool(OwnObject, frozen=True):
    """A pool: nodes that exist only while gangs need them."""

    spec: NodePoolSpec
    status: NodePoolStatus = NodePoolStatus()
    kind: str = "NodePool"


NODE_POOLS = Resource(GROUP, VERSION, "nodepools", "NodePool", False, NodePool)
