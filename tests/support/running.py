"""A scheduler's core with what carries its decisions out, at once and without a server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace
from tests.support.drawn import Drawn, draw, draw_gang, queue

from lockstep.api.core import Pod, PriorityClass
from lockstep.api.meta import ObjectMeta, OwnerReference
from lockstep.api.timestamp import show
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.cycle.result import CycleResult
from lockstep.scheduler.core.defrag.migration import Rearrangement
from lockstep.scheduler.core.explain.diagnosis import explain
from lockstep.scheduler.core.model.decisions import Eviction, Verdict
from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.util.bitmask import format_indices, indices_of, mask_of

PRIORITIES = {"low": -10, "high": 10, "top": 100}


@dataclass
class Running:
    """A cluster, its gangs, and a clock that the test moves."""

    cluster: Cluster
    now: float = 1_000_000.0
    gangs: dict[str, Drawn] = field(default_factory=dict)
    evicted: list[str] = field(default_factory=list)
    """Gangs that lost pods, in order."""
    rearranged: list[Rearrangement] = field(default_factory=list)
    """The moves for the sake of others that were carried out, in order."""
    graceful: bool = False
    """Whether victims take their time: they stay until ``end`` is called for them."""

    @classmethod
    def on(cls, drawing: str, queues: dict[str, dict[str, Any]] | None = None) -> Running:
        cluster = draw(Cluster(), drawing)
        for name, value in PRIORITIES.items():
            cluster.set_priority_class(PriorityClass(metadata=ObjectMeta(name=name), value=value))
        for name, spec in (queues or {}).items():
            cluster.set_queue(queue(name, **spec))
        running = cls(cluster)
        running.decider = Decider(cluster)
        return running

    def __post_init__(self) -> None:
        self.decider = Decider(self.cluster)

    def submit(self, text: str, queue: str = "default", priority: str = "", **more: Any) -> str:
        """Add a gang and its pods; nothing is decided yet.

        With ``owned=False`` nobody makes its pods again when they have ended.
        """
        annotations, owned = more.pop("annotations", {}), more.pop("owned", True)
        drawn = draw_gang(
            text, created=show(self.now), queue=queue, priorityClassName=priority, **more
        )
        owner = OwnerReference("lockstep.dev/v1alpha1", "TrainingJob", "job", "1", controller=True)
        owners = [owner] if owned else []
        metadata = replace(drawn.gang.metadata, annotations=annotations, owner_references=owners)
        drawn.gang = replace(drawn.gang, metadata=metadata)
        name = drawn.gang.metadata.name
        self.gangs[name] = drawn
        self.cluster.set_gang(drawn.gang)
        for one in drawn.pods:
            self.cluster.set_pod(one)
        self.now += 1.0
        return name

    def stand(self, name: str, nodes: Sequence[str]) -> None:
        """Let a gang's pods stand on these nodes, pod by pod, with the first GPUs free there."""
        for one, node in zip(self.gangs[name].pods, nodes, strict=True):
            wanted = self.cluster.pods["default", one.metadata.name].shape.gpus
            row = self.cluster.table.rows[node]
            free = indices_of(self.cluster.table.free_devices(row))
            self._bind(one, node, mask_of(list(free)[:wanted]))
            self.cluster.pods["default", one.metadata.name].since = self.now

    def annotate(self, name: str, annotations: dict[str, str]) -> None:
        """Change a gang's annotations, as its owner may."""
        drawn = self.gangs[name]
        metadata = replace(
            drawn.gang.metadata, annotations={**drawn.gang.metadata.annotations, **annotations}
        )
        drawn.gang = replace(drawn.gang, metadata=metadata)
        self.cluster.set_gang(drawn.gang)

    def show(self, name: str, **status: Any) -> None:
        """Let a gang show these fields in its status."""
        drawn = self.gangs[name]
        drawn.gang = replace(drawn.gang, status=replace(drawn.gang.status, **status))
        self.cluster.set_gang(drawn.gang)

    def step(self) -> CycleResult:
        """Decide once and carry it out."""
        result = self.decider.decide(self.now)
        assert not result.errors, result.errors
        for placement in result.placements:
            for one in placement.assignments:
                self._bind(self._pod(one.member.name), one.spot.node, one.spot.gpus)
        for eviction in result.evictions:
            self._evict(eviction)
        for rearrangement in result.rearrangements:
            self.rearranged.append(rearrangement)
            for eviction in rearrangement.evictions(self.cluster):
                self._evict(eviction)
        return result

    def settle(self, most: int = 50) -> None:
        """Decide until nothing changes any more."""
        for _ in range(most):
            result = self.step()
            acted = result.placements or result.evictions or result.rearrangements
            if not (acted or result.more or self.cluster.touched):
                return
        raise AssertionError(f"no end of decisions; evicted so far: {self.evicted}")

    def run(self, text: str, queue: str = "default", priority: str = "", **more: Any) -> str:
        """Submit a gang and let it start."""
        name = self.submit(text, queue, priority, **more)
        self.settle()
        return name

    def end(self, name: str, *, again: bool = False) -> None:
        """Let a gang's pods be gone; *again*: whoever made them makes them anew."""
        for one in self.gangs[name].pods:
            self.cluster.remove_pod("default", one.metadata.name)
        if again:
            for one in self.gangs[name].pods:
                self.renew(one.metadata.name)
        else:
            self.cluster.remove_gang("default", name)
            del self.gangs[name]

    def renew(self, name: str) -> None:
        """Let a pod be gone and its successor, of the same name, be there."""
        self.cluster.remove_pod("default", name)
        drawn = next(g for g in self.gangs.values() for p in g.pods if p.metadata.name == name)
        number = next(i for i, p in enumerate(drawn.pods) if p.metadata.name == name)
        old = drawn.pods[number]
        metadata = replace(old.metadata, uid=f"{old.metadata.uid}'")
        drawn.pods[number] = replace(old, metadata=metadata)
        self.cluster.set_pod(drawn.pods[number])

    def places(self, name: str) -> dict[str, str]:
        """Return the nodes of a gang's pods."""
        found = {}
        for one in self.gangs[name].pods:
            member = self.cluster.pods.get(("default", one.metadata.name))
            if member is not None and member.node and not member.terminating:
                found[one.metadata.name] = member.node
        return found

    def there(self) -> set[str]:
        """Return the gangs of which at least one pod has a node."""
        return {name for name in self.gangs if self.places(name)}

    def why(self, name: str) -> tuple[str, str]:
        """Return reason and words of a gang that waits."""
        verdict = self._verdict(name)
        return verdict.reason, verdict.message

    def remedy(self, name: str) -> str:
        """Return what is said to help a gang that waits."""
        return self._verdict(name).remedy

    def _verdict(self, name: str) -> Verdict:
        workload = self.cluster.workloads[WorkloadKey("Gang", "default", name)]
        return explain(self.cluster, workload)

    def set_queue(self, name: str, **spec: Any) -> None:
        """Let a queue say something else."""
        self.cluster.set_queue(queue(name, **spec))

    def _pod(self, name: str) -> Pod:
        return next(p for g in self.gangs.values() for p in g.pods if p.metadata.name == name)

    def _bind(self, pod: Pod, node: str, gpus: int) -> None:
        held = {"lockstep.dev/gpus": format_indices(gpus)} if gpus else {}
        self.cluster.set_pod(
            replace(
                pod,
                metadata=replace(pod.metadata, annotations={**pod.metadata.annotations, **held}),
                spec=replace(pod.spec, node_name=node),
                status=replace(pod.status, phase="Running"),
            )
        )

    def _evict(self, eviction: Eviction) -> None:
        hit: dict[str, list[str]] = {}
        for member in eviction.victims:
            assert member.workload is not None
            hit.setdefault(member.workload.name, []).append(member.name)
        for name, pods in hit.items():
            self.evicted.append(name)
            for pod in pods:
                self._leave(pod)

    def _leave(self, name: str) -> None:
        pod, member = self._pod(name), self.cluster.pods["default", name]
        if not self.graceful:
            self.renew(name)
            return
        metadata = replace(pod.metadata, deletion_timestamp=show(self.now))
        held = {"lockstep.dev/gpus": format_indices(member.gpus)} if member.gpus else {}
        metadata = replace(metadata, annotations=held)
        spec = replace(pod.spec, node_name=member.node)
        self.cluster.set_pod(replace(pod, metadata=metadata, spec=spec))
