"""NodePool: nodes that could exist, and who makes them."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from lockstep.api.core import Taint
from lockstep.api.duration import Duration
from lockstep.api.meta import ObjectMeta
from lockstep.api.names import API_VERSION, GROUP, VERSION
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

    label: Annotated[
        str, Meta(min_length=1, max_length=317, description="Node label that names the domain.")
    ]
    nodes: Annotated[Positive, Meta(description="How many of the pool's nodes fit under one.")]


class NodeTemplate(Wire, frozen=True):
    """What every node of a pool is like."""

    capacity: Annotated[
        dict[str, Amount],
        Meta(min_length=1, description="What a node offers: cpu, memory, nvidia.com/gpu, pods."),
    ]
    labels: Annotated[dict[str, str], Meta(description="Labels that its nodes bear.")] = {}
    annotations: Annotated[
        dict[str, str],
        Meta(description="Annotations that its nodes bear, such as lockstep.dev/devices."),
    ] = {}
    taints: Annotated[list[Taint], Meta(description="Taints that its nodes bear.")] = []


class SimulatedProvider(Wire, frozen=True):
    """Nodes that only pretend; `lockstep simulate-nodes` keeps them alive."""


class CommandProvider(Wire, frozen=True):
    """A program beside the controllers that is told what to do on its standard input."""

    program: Annotated[
        str,
        Meta(
            pattern="^[A-Za-z0-9][A-Za-z0-9._-]*$",
            max_length=100,
            description="Its file name in the directory that `lockstep controllers "
            "--pool-commands` names.",
        ),
    ]
    timeout: Annotated[Duration, Meta(description="Time that one call may take.")] = "30s"


class HookProvider(Wire, frozen=True):
    """An HTTP address that is told what to do by POST requests with JSON."""

    url: Annotated[
        str, Meta(pattern="^https?://", max_length=2000, description="Where requests go.")
    ]
    token_secret: Annotated[
        str,
        Meta(
            description="Secret in the namespace of Lockstep whose key `token` is sent as bearer "
            "token; none when left out."
        ),
    ] = ""
    timeout: Annotated[Duration, Meta(description="Time that one request may take.")] = "30s"


class ProvisioningProvider(Wire, frozen=True):
    """ProvisioningRequests, which cluster-autoscaler fulfils as a whole or not at all."""

    class_name: Annotated[
        AtomicClass, Meta(description="Provisioning class: scale up at once, or only check.")
    ] = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
    namespace: Annotated[
        str, Meta(description="Namespace of the requests and their pod templates.")
    ] = "lockstep-system"


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

    node_class_ref: Annotated[NodeClassRef, Meta(description="How its machines are made.")]
    requirements: Annotated[
        list[KarpenterRequirement], Meta(description="Which machines they may be.")
    ] = []


class PoolProvider(Wire, frozen=True):
    """Who makes the nodes: exactly one is set."""

    simulated: SimulatedProvider | None = None
    provisioning_request: ProvisioningProvider | None = None
    karpenter: KarpenterProvider | None = None
    command: CommandProvider | None = None
    hook: HookProvider | None = None


class NodePoolSpec(Wire, frozen=True):
    """How many nodes of which kind there may be, what they cost, and who makes them."""

    template: Annotated[NodeTemplate, Meta(description="What each node is like.")]
    provider: Annotated[PoolProvider, Meta(description="Who makes the nodes.")]
    min: Annotated[Count, Meta(description="Nodes that are always there.")] = 0
    max: Annotated[int, Meta(ge=1, le=MOST_NODES, description="Nodes that there are at most.")] = 1
    domains: Annotated[
        list[PoolDomain],
        Meta(max_length=16, description="How many nodes fit under a leaf, a spine and so on."),
    ] = []
    node_hour: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="What a node costs an hour; the PriceLists say it when left out."),
    ] = None
    hourly_budget: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="What all its nodes together may cost an hour."),
    ] = None
    spot: Annotated[bool, Meta(description="Whether the cloud may take its nodes back.")] = False
    arrival: Annotated[Duration, Meta(description="Time from asking until a node is ready.")] = "5m"
    timeout: Annotated[
        Duration | None,
        Meta(description="Time after which a node that has not come is given up; 3 x arrival."),
    ] = None
    idle: Annotated[Duration, Meta(description="Time that a node may stand idle.")] = "10m"
    back_off: Annotated[
        Duration,
        Meta(description="Time that a pool is left alone after it failed; doubles up to 16 times."),
    ] = "1m"


class PoolHolder(Wire, frozen=True):
    """A gang, or a pod of no gang, for which nodes are held."""

    kind: Literal["Gang", "Pod"]
    namespace: str
    name: str
    uid: str


class PoolRequest(Wire, frozen=True):
    """Nodes that were asked for at once, and for whom."""

    id: Annotated[str, Meta(description="Value of the taint that holds its nodes.")]
    slots: Annotated[list[int], Meta(description="Numbers of the nodes, from 0 to max - 1.")]
    at: Annotated[str, Meta(description="When it was decided.")]
    holders: Annotated[
        list[PoolHolder], Meta(description="Whom they are for; none for the pool's minimum.")
    ] = []
    sent: Annotated[bool, Meta(description="Whether the provider has taken it.")] = False


class PoolDecision(Wire, frozen=True):
    """Something that was decided about the pool, and why."""

    at: str
    text: str


class NodePoolStatus(Wire, frozen=True):
    """Which nodes there are, which are on their way, and what became of the last requests."""

    nodes: Annotated[int, Meta(description="Nodes that are there.")] = 0
    ready: Annotated[int, Meta(description="Nodes that are ready.")] = 0
    idle: Annotated[int, Meta(description="Nodes on which nothing runs.")] = 0
    coming: Annotated[int, Meta(description="Nodes that are on their way.")] = 0
    hourly_cost: Annotated[
        float | None, Meta(description="What its nodes cost an hour, where prices are known.")
    ] = None
    requests: Annotated[
        list[PoolRequest], Meta(description="Requests that are not fulfilled yet.")
    ] = []
    failures: Annotated[int, Meta(description="Requests in a row that failed.")] = 0
    retry_at: Annotated[
        Time | None, Meta(description="Until when it is left alone, after failures.")
    ] = None
    reason: Annotated[str, Meta(description="One word for what is wrong; empty where nothing.")] = (
        ""
    )
    message: Annotated[str, Meta(description="What is wrong, in words, and what to do.")] = ""
    decisions: Annotated[
        list[PoolDecision], Meta(max_length=20, description="The latest decisions, newest last.")
    ] = []


class NodePool(Wire, frozen=True):
    """A pool: nodes that exist only while gangs need them."""

    metadata: ObjectMeta
    spec: NodePoolSpec
    status: NodePoolStatus = NodePoolStatus()
    api_version: str = API_VERSION
    kind: str = "NodePool"


NODE_POOLS = Resource(GROUP, VERSION, "nodepools", "NodePool", False, NodePool)
