"""What waits: gangs and pods on their own, and how far each of them is."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from lockstep.api import timestamp
from lockstep.api.core import Pod
from lockstep.api.creator_policy import handed_on
from lockstep.api.gang import Gang, Strategy, TopologyWish
from lockstep.api.names import (
    ALIGN_PREFERRED_ANNOTATION,
    ALIGN_REQUIRED_ANNOTATION,
    RANK_ANNOTATION,
    RUNTIME_ANNOTATION,
    SCHEDULER_NAME,
)
from lockstep.api.parallelism import Parallelism
from lockstep.compat.membership import gang_of_pod, queue_of_pod
from lockstep.scheduler.core.model.node_table import natural
from lockstep.scheduler.core.model.pod_groups import NO_WISH, PodGroup, groups_of
from lockstep.scheduler.core.model.pod_shape import PodShape
from lockstep.scheduler.core.resources.alignment import NO_ALIGNMENT, Alignment
from lockstep.scheduler.core.resources.device_allocation import Grant, granted
from lockstep.scheduler.core.util.annotation_values import rank, scheduled, seconds

_ALIGNING = frozenset((ALIGN_REQUIRED_ANNOTATION, ALIGN_PREFERRED_ANNOTATION))
DEFAULT_QUEUE = "default"
"""The queue of workloads that name none; it need not exist."""

PodKey = tuple[str, str]
"""Namespace and name."""


class WorkloadKey(NamedTuple):
    """A gang, or a pod that belongs to none."""

    kind: Literal["Gang", "Pod"]
    namespace: str
    name: str


@dataclass(eq=False, slots=True)
class Member:
    """One pod, as far as the scheduler goes by it."""

    namespace: str
    name: str
    uid: str
    version: int
    """The object's resourceVersion; of two views of one pod the newer counts."""
    shape: PodShape
    node: str
    assumed: bool
    """Whether the node is our own decision, which the API server has not confirmed yet."""
    grant: Grant
    """The devices of its node that it holds."""
    labels: dict[str, str]
    priority: int
    created: str
    gates: tuple[str, ...]
    terminating: bool
    phase: str
    started: bool
    ours: bool
    workload: WorkloadKey | None = None
    """What the pod waits with; None for other schedulers' pods."""
    rank: int | None = None
    """Its place among the pods of its job, as its maker says; None where it does not."""
    since: float | None = None
    """When it got its node or started there, in Unix time; None where that is not known."""
    scheduled: float | None = None
    """When it got its node, as the API server says; left out once it is known when it started."""
    runtime: float | None = None
    """Seconds that it is expected to run; None where that is not stated."""
    preempts: bool = True
    aligns: bool = False
    """Whether it states its own alignment of devices; that goes before its gang's."""
    tentative: bool = False
    """Whether it was not told yet of the node that we decided on."""
    nominated: str = ""
    """The node that was being made free for it when it was last heard of."""
    named_queue: str = ""
    told_of_creator: dict[str, str] = field(default_factory=dict)
    """What a pod without a gang says of who created it, as its annotations have it."""
    account: str | None = field(default=None, repr=False)
    """The name of the account that this pod is counted in, and what it counts for there."""
    charged: dict[str, int] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, pod: Pod, shape: PodShape, names: Collection[str] = (SCHEDULER_NAME,)) -> Member:
        """Read it from the object; pods of schedulers called *names* are ours to place."""
        meta = pod.metadata
        ours = pod.spec.scheduler_name in names
        return cls(
            namespace=meta.namespace,
            name=meta.name,
            uid=meta.uid,
            version=int(meta.resource_version) if meta.resource_version.isdigit() else 0,
            shape=shape,
            node=pod.spec.node_name,
            assumed=False,
            grant=granted(meta.annotations),
            labels=meta.labels,
            priority=pod.spec.priority,
            created=meta.creation_timestamp or "",
            gates=tuple(gate.name for gate in pod.spec.scheduling_gates),
            terminating=meta.deletion_timestamp is not None,
            phase=pod.status.phase,
            started=pod.status.phase == "Running"
            or any(s.state.running for s in pod.status.container_statuses),
            ours=ours,
            workload=_unit_of(pod) if ours else None,
            rank=rank(meta.annotations.get(RANK_ANNOTATION, "")),
            since=timestamp.read(pod.status.start_time),
            scheduled=scheduled(pod),
            runtime=seconds(meta.annotations.get(RUNTIME_ANNOTATION, "")),
            preempts=pod.spec.preemption_policy != "Never",
            aligns=not _ALIGNING.isdisjoint(meta.annotations),
            nominated=pod.status.nominated_node_name,
            named_queue=queue_of_pod(meta.labels, meta.annotations, meta.namespace),
            told_of_creator=handed_on(meta.annotations),
        )

    @property
    def key(self) -> PodKey:
        """Return namespace and name."""
        return self.namespace, self.name

    @property
    def owner(self) -> WorkloadKey:
        """Return the workload that it counts for: a pod of another scheduler is its own."""
        return self.workload or WorkloadKey("Pod", self.namespace, self.name)

    @property
    def gpus(self) -> int:
        """Return the mask of its GPUs."""
        return self.grant.gpus

    @property
    def order(self) -> tuple[bool, int, tuple[tuple[int, int | str], ...]]:
        """Return a sort key: by rank where it is known, then by name."""
        return self.rank is None, self.rank or 0, natural(self.name)

    @property
    def over(self) -> bool:
        """Return whether the pod has ended and takes nothing any more."""
        return self.phase in ("Succeeded", "Failed")

    @property
    def holds(self) -> bool:
        """Return whether the pod takes room on a node."""
        return bool(self.node) and not self.over

    @property
    def queue(self) -> str:
        """Return the queue that the pod itself names; its gang's goes before that."""
        return self.named_queue or DEFAULT_QUEUE


def _unit_of(pod: Pod) -> WorkloadKey:
    meta = pod.metadata
    gang = gang_of_pod(pod)
    return WorkloadKey("Gang" if gang else "Pod", meta.namespace, gang or meta.name)


class Workload:
    """A gang with its members, or one pod on its own."""

    def __init__(self, key: WorkloadKey) -> None:
        self.key = key
        self.gang: Gang | None = None
        self.members: dict[str, Member] = {}
        self._whole = False
        self._pod_groups: list[PodGroup[Member]] | None = None
        self._awaited: set[str] | None = None
        """Members whose nodes the API server does not show yet, once they have been counted."""
        self._groups, self.unreadable = groups_of(None, alone=key.kind == "Pod")
        self.aligns = False
        """Whether the gang says of any members how their devices are to be aligned."""
        self.strays: list[Member] = []

    @property
    def is_gang(self) -> bool:
        """Return whether this is a gang (whose object may still be missing)."""
        return self.key.kind == "Gang"

    @property
    def uid(self) -> str:
        """Return what tells the workload from one of the same name before or after it."""
        if self.is_gang:
            return self.gang.metadata.uid if self.gang is not None else ""
        return next((m.uid for m in self.members.values()), "")

    @property
    def told_of_creator(self) -> Mapping[str, str]:
        """Return what the gang or its one pod says of who created it."""
        if self.is_gang:
            return self.gang.metadata.annotations if self.gang is not None else {}
        return next((m.told_of_creator for m in self.members.values()), {})

    @property
    def wish(self) -> TopologyWish:
        """Return the wish for all members together."""
        return (self.gang.spec.topology if self.gang else None) or NO_WISH

    @property
    def queue(self) -> str:
        """Return the name of the queue that the workload waits in."""
        if self.gang is not None:
            return self.gang.spec.queue
        first = next(iter(self.members.values()), None)
        return first.queue if first is not None else DEFAULT_QUEUE

    @property
    def since(self) -> float | None:
        """Return when the workload got its place; None where that is not known or not so yet."""
        known = [m.since for m in self.bound if m.since is not None]
        placed = timestamp.read(self.gang.status.placed_at) if self.gang is not None else None
        return min([*known, *([placed] if placed is not None else [])], default=None)

    @property
    def runtime(self) -> float | None:
        """Return the seconds that the workload is expected to run: its gang's, else its longest
        pod's.

        None where the gang does not say so nor every one of its pods.
        """
        if self.gang is not None:
            stated = seconds(self.gang.metadata.annotations.get(RUNTIME_ANNOTATION, ""))
            if stated is not None:
                return stated
        known = [m.runtime for m in self.members.values()]
        return max((r for r in known if r is not None), default=None) if None not in known else None

    @property
    def nominated(self) -> dict[str, str]:
        """Return by pod the node that was being made free for it when it was last heard of."""
        if self.gang is not None:
            return self.gang.status.nominated
        return {m.name: m.nominated for m in self.members.values() if m.nominated}

    @property
    def parallelism(self) -> Parallelism | None:
        """Return how the ranks are split, where the gang states it."""
        stated = self.gang.spec.parallelism if self.gang is not None else None
        return stated if stated is not None and stated.stated else None

    @property
    def node_policy(self) -> str:
        """Return the NodePolicy that the gang names, empty for none."""
        return self.gang.spec.node_policy if self.gang is not None else ""

    @property
    def strategy(self) -> Strategy | None:
        """Return how the gang itself says that it chooses nodes; None where it does not."""
        return self.gang.spec.strategy if self.gang is not None else None

    @property
    def queued_at(self) -> str:
        """Return since when the workload stands in line: of a suspended job, from before that."""
        if self.gang is not None:
            return self.gang.status.queued_at or self.gang.metadata.creation_timestamp or ""
        return min((m.created for m in self.members.values()), default="")

    def changed(self) -> None:
        """Drop what was derived from the members; to be called after any of them changed."""
        self._pod_groups = self._awaited = None

    def confirmed(self, member: Member) -> bool:
        """Take note that the API server shows the node that a member was assumed to have.

        Nothing else about the member has changed, so what was derived from it stays. Returns
        whether anything may follow: only the last one makes a gang whole.
        """
        if self._pod_groups is None:
            return True
        if self._awaited is None:
            self._awaited = {m.name for m in self.bound if m.assumed}
        self._awaited.discard(member.name)
        if self._awaited:
            return False
        self._note_whole(self._pod_groups)
        return True

    def confirm(self) -> None:
        """Take it that the API server shows by now what was assumed of the members."""
        for member in self.bound:
            member.assumed = False
        self._note_whole(self.pod_groups)

    def adopt(self, gang: Gang | None) -> None:
        """Take over the gang's object, or its absence."""
        if gang is not None and self.gang is not None and gang.spec == self.gang.spec:
            self.gang = gang  # its status is what this scheduler itself writes
            return
        groups = groups_of(gang, alone=not self.is_gang)
        if gang is not None and self.gang is None and gang.status.placed_at:
            self._whole = True
        self.gang = gang
        self._groups, self.unreadable = groups
        self.aligns = any(group.alignment != NO_ALIGNMENT for group in self._groups)
        self.changed()

    def alignment_for(self, member: Member) -> Alignment:
        """Return what the gang says of how a member's devices are to be aligned."""
        only = len(self._groups) == 1
        homes = (group for group in self._groups if group.has(member.labels, only=only))
        return next((home.alignment for home in homes), NO_ALIGNMENT)

    @property
    def pod_groups(self) -> list[PodGroup[Member]]:
        """Return the groups with their members."""
        if self._pod_groups is None:
            self._pod_groups = [PodGroup[Member](group) for group in self._groups]
            self.strays = []
            members = list(self.members.values())
            if len(members) > 1:
                members.sort(key=lambda m: m.order)
            for member in members:
                self._count(member)
            self._note_whole(self._pod_groups)
        return self._pod_groups

    @property
    def whole(self) -> bool:
        """Return whether every group had the members it needs, and some of them are still there.

        It outlives the loss of a member, which tells repair from a start that never came about.
        """
        self.pod_groups  # noqa: B018  brings it up to date
        return self._whole

    def _note_whole(self, pod_groups: list[PodGroup[Member]]) -> None:
        bound = [member for pod_group in pod_groups for member in pod_group.bound]
        if not bound:
            self._whole = False
        elif not any(m.need for m in pod_groups) and not any(m.assumed for m in bound):
            self._whole = True

    def _count(self, member: Member) -> None:
        if member.terminating or member.phase == "Failed":
            return
        pod_groups = self._pod_groups or []
        only = len(pod_groups) == 1
        home = next((m for m in pod_groups if m.group.has(member.labels, only=only)), None)
        if home is None:
            self.strays.append(member)
        elif member.over:
            home.finished += 1
        elif member.node:
            home.bound.append(member)
        elif member.gates:
            home.gated.append(member)
        else:
            home.pending.append(member)

    @property
    def pending(self) -> list[Member]:
        """Return all members that wait for a node, gated ones and strays included."""
        found = [m for pod_group in self.pod_groups for m in (*pod_group.pending, *pod_group.gated)]
        return found + [m for m in self.strays if not m.node and not m.over]

    @property
    def bound(self) -> list[Member]:
        """Return the members that have a node and have not ended."""
        return [m for pod_group in self.pod_groups for m in pod_group.bound]

    @property
    def half_placed(self) -> bool:
        """Return whether some but too few members have nodes and the gang was never whole."""
        if not self.is_gang or self.whole:
            return False
        pod_groups = self.pod_groups
        return any(m.bound for m in pod_groups) and any(m.need for m in pod_groups)

    @property
    def over(self) -> bool:
        """Return whether the workload has run and nothing of it is left that could."""
        if any(m.bound or m.pending or m.gated for m in self.pod_groups):
            return False
        if self.members and all(m.over for m in self.members.values()):
            return True
        # Its pods may be cleaned up one after the other; that it ran stays true.
        return self.gang is not None and self.gang.status.phase == "Finished"

    @property
    def failed(self) -> bool:
        """Return whether the gang has given up waiting, for good."""
        return self.gang is not None and self.gang.status.phase == "Failed" and not self.bound

    @property
    def open(self) -> bool:
        """Return whether there is anything left to place."""
        if not self.is_gang:
            return any(m.pending or m.gated for m in self.pod_groups)
        return not (self.over or self.failed) and any(m.need or m.want for m in self.pod_groups)
