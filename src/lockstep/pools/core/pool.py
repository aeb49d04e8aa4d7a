"""A pool as decisions see it: its slots, what a node in one is like, and what it costs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from lockstep.api import duration, names, quantity, timestamp
from lockstep.api.backoff import Backoff
from lockstep.api.core import Node, NodeSpec, NodeStatus, Taint
from lockstep.api.meta import Condition, ObjectMeta
from lockstep.api.node_pool import NodePool, PoolHolder, PoolRequest
from lockstep.api.simulated import SIMULATED
from lockstep.scheduler.core.model.workload import WorkloadKey

NAME_LIMIT = 40
"""Characters of a pool's name: names of nodes and domains are made of it."""
PATIENCE = 3.0
"""Times as long as nodes should take that one is waited for, where a pool does not say."""
LEAST_PATIENCE = 60.0
BACK_OFF_LIMIT = 16.0
"""Times as long as at first that a pool is left alone at most."""
CPUS_PER_GPU = 12.0
"""CPUs that count as much as a GPU where pools without prices are compared."""
STARTING = frozenset(
    {
        "node.kubernetes.io/not-ready",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "karpenter.sh/unregistered",
    }
)
"""Keys of taints that a new node bears for a moment, some of them after it has said it is ready."""


@dataclass(frozen=True)
class Pool:
    """A NodePool with what follows from it."""

    object: NodePool
    node_hour: float | None = None
    """What a node costs an hour; None where no price is known."""
    names: Mapping[int, str] = field(default_factory=dict)
    """Names of the nodes that there are, by slot."""
    ready: frozenset[int] = frozenset()
    """Slots of those that are ready."""
    leaving: frozenset[int] = frozenset()
    """Slots of nodes that are being given back."""
    blocked: frozenset[int] = frozenset()
    """Slots whose machines are being removed."""

    @property
    def name(self) -> str:
        """Return what the pool is called."""
        return self.object.metadata.name

    @property
    def requests(self) -> list[PoolRequest]:
        """Return what was asked for and is not fulfilled."""
        return self.object.status.requests

    @cached_property
    def arrival(self) -> float:
        """Return the seconds from asking for a node until it is ready."""
        return duration.parse(self.object.spec.arrival)

    @cached_property
    def patience(self) -> float:
        """Return the seconds after which a node that has not come is given up."""
        stated = self.object.spec.timeout
        if stated is not None:
            return duration.parse(stated)
        return max(LEAST_PATIENCE, PATIENCE * self.arrival)

    @cached_property
    def idle(self) -> float:
        """Return the seconds that a node may stand idle."""
        return duration.parse(self.object.spec.idle)

    @cached_property
    def cost(self) -> float:
        """Return what a node costs an hour, or what stands for it where no price is known."""
        if self.node_hour is not None:
            return self.node_hour
        offered = self.object.spec.template.capacity
        gpus = quantity.to_int(offered.get(names.GPU, 0))
        cpus = float(quantity.parse(str(offered.get(names.CPU, 1))))
        return float(gpus) or cpus / CPUS_PER_GPU

    @cached_property
    def coming(self) -> frozenset[int]:
        """Return the slots of nodes that were asked for and are not ready."""
        asked = {slot for request in self.requests for slot in request.slots}
        return frozenset(asked - self.ready)

    @property
    def size(self) -> int:
        """Return how many nodes there are or will be; those that leave count until they are
        gone.
        """
        return len(self.names.keys() | self.coming | self.blocked)

    def affordable(self) -> int:
        """Return how many more nodes the pool's own bounds and budget allow."""
        spec = self.object.spec
        left = spec.max - self.size
        if spec.hourly_budget is not None and self.node_hour:
            left = min(left, int(spec.hourly_budget / self.node_hour + 1e-9) - self.size)
        return max(0, left)

    def free_slots(self) -> list[int]:
        """Return the slots without a node, and without one on its way."""
        taken = self.names.keys() | self.coming | self.blocked
        return [slot for slot in range(self.object.spec.max) if slot not in taken]

    def rests_until(self) -> float | None:
        """Return until when the pool is left alone after failures; None where it is not."""
        return timestamp.read(self.object.status.retry_at)

    def node_name(self, slot: int) -> str:
        """Return what a node is asked to be called."""
        return f"{self.name}-{slot}"

    def labels(self, slot: int) -> dict[str, str]:
        """Return the labels that the node in a slot bears."""
        spec = self.object.spec
        places = {one.label: f"{self.name}-{slot // one.nodes}" for one in spec.domains}
        return {
            **spec.template.labels,
            **places,
            **({names.NODE_KIND_LABEL: SIMULATED} if spec.provider.simulated else {}),
            **({names.SPOT_LABEL: "true"} if spec.spot else {}),
            names.POOL_LABEL: self.name,
            names.POOL_SLOT_LABEL: str(slot),
        }

    def domain(self, slot: int) -> tuple[int, ...]:
        """Return under what a slot stands, the narrowest last."""
        ordered = sorted((one.nodes for one in self.object.spec.domains), reverse=True)
        return tuple(slot // nodes for nodes in ordered)

    def _taints(self) -> list[Taint]:
        """Return the template's taints; a simulated node keeps away pods that do not ask for it."""
        taints = list(self.object.spec.template.taints)
        if self.object.spec.provider.simulated and all(
            one.key != names.SIMULATED_TAINT for one in taints
        ):
            taints.append(Taint(key=names.SIMULATED_TAINT, effect="NoSchedule"))
        return taints

    def node(self, slot: int, name: str = "") -> Node:
        """Return the node that a slot would hold, ready and held for no gang."""
        name = name or self.node_name(slot)
        template = self.object.spec.template
        capacity = {names.PODS: 110, **template.capacity}
        return Node(
            metadata=ObjectMeta(
                name=name,
                labels={names.HOSTNAME_LABEL: name, **self.labels(slot)},
                annotations=template.annotations,
            ),
            spec=NodeSpec(taints=self._taints()),
            status=NodeStatus(
                capacity=capacity,
                allocatable=capacity,
                conditions=[Condition(type="Ready", status="True")],
            ),
        )


def seen(
    pool: NodePool,
    nodes: Iterable[Node],
    node_hour: float | None,
    blocked: frozenset[int] = frozenset(),
) -> Pool:
    """Return a pool with its *nodes*; *blocked* are slots whose machines are being removed."""
    by_slot = {slot: node for node in nodes if (slot := slot_of(node)) is not None}
    return Pool(
        pool,
        node_hour,
        {slot: node.metadata.name for slot, node in by_slot.items()},
        frozenset(slot for slot, node in by_slot.items() if is_ready(node)),
        frozenset(
            s for s, n in by_slot.items() if names.LEAVING_ANNOTATION in n.metadata.annotations
        ),
        blocked,
    )


def is_ready(node: Node) -> bool:
    """Return whether a node says that it is ready, and pods may come.

    Until then it counts as on its way: what waits for it gets no other.
    """
    says_so = any(c.type == "Ready" and c.status == "True" for c in node.status.conditions)
    return says_so and not any(taint.key in STARTING for taint in node.spec.taints)


def key_of(holder: PoolHolder) -> WorkloadKey:
    """Return whose holder it is."""
    return WorkloadKey(holder.kind, holder.namespace, holder.name)


def held_for(taints: Iterable[Taint]) -> str:
    """Return the request whose gangs a node is held for; empty where it is held for none."""
    return next((taint.value for taint in taints if taint.key == names.HELD_TAINT), "")


def slot_of(node: Node) -> int | None:
    """Return which of its pool's nodes a node is; None where it does not say."""
    text = node.metadata.labels.get(names.POOL_SLOT_LABEL, "")
    return int(text) if text.isdecimal() else None


def back_off(pool: Pool, failures: int) -> float:
    """Return the seconds for which a pool is left alone after so many failures in a row."""
    first = duration.parse(pool.object.spec.back_off)
    return Backoff(first, BACK_OFF_LIMIT * first).ceiling(failures)


def problems(pool: NodePool) -> Iterator[str]:
    """Yield what is wrong with a pool that its schema does not tell: field, value, remedy."""
    spec, name = pool.spec, pool.metadata.name
    if len(name) > NAME_LIMIT:
        yield f"metadata.name: {name!r} has more than {NAME_LIMIT} characters; choose a shorter one"
    if spec.min > spec.max:
        yield f"spec.min: {spec.min} exceeds spec.max, {spec.max}; lower one or raise the other"
    given = (
        "simulated",
        "provisioning_request",
        "karpenter",
        "command",
        "hook",
    )
    count = sum(getattr(spec.provider, one) is not None for one in given)
    if count != 1:
        yield (
            f"spec.provider: {count} providers are set; set exactly one of simulated, "
            "provisioningRequest, karpenter, command and hook"
        )
    outside = spec.provider.provisioning_request or spec.provider.karpenter
    if spec.domains and outside is not None:
        yield (
            "spec.domains: the provider chooses itself under which leaf nodes stand; leave domains "
            "out, and gangs that require a tier get no nodes of this pool"
        )
    for field_name, amount in spec.template.capacity.items():
        if quantity.parse(str(amount)) <= 0:
            yield f"spec.template.capacity.{field_name}: {amount!r} is nothing; state what there is"
    for field_name in ("arrival", "idle", "back_off", "timeout"):
        text = getattr(spec, field_name)
        try:
            _ = text is None or duration.parse(text)
        except ValueError as error:
            yield f"spec.{field_name}: {error}"
