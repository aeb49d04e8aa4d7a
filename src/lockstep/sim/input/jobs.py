"""The jobs of a simulation: gangs with their pods, when they arrive and how long they run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import msgspec

from lockstep.api import checkpoint, timestamp
from lockstep.api.core import Pod, PodSpec
from lockstep.api.gang import Gang, GangSpec, GangStatus, Strategy
from lockstep.api.meta import ObjectMeta, OwnerReference
from lockstep.api.names import (
    API_VERSION,
    ARRIVAL_ANNOTATION,
    ELAPSED_ANNOTATION,
    GANG_GROUP_LABEL,
    GANG_LABEL,
    GPU,
    JOB_LABEL,
    RANK_ANNOTATION,
    RUNTIME_ANNOTATION,
    SCHEDULER_NAME,
    WAITED_ANNOTATION,
)
from lockstep.api.training import TrainingJob
from lockstep.api.wire import Json
from lockstep.jobs import objects
from lockstep.jobs.frameworks import FRAMEWORKS
from lockstep.jobs.frameworks.base import members
from lockstep.jobs.validate import problems
from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.core.resources.columns import WHOLE_CARD, pod_request
from lockstep.scheduler.core.resources.gpu_shares import split_off
from lockstep.sim.input.initial_cluster import InitialCluster, InputError, view

_SIMULATION = OwnerReference(API_VERSION, "Simulation", "simulation", "", controller=True)
"""Stands behind every gang: its pods are made again, as a controller would."""
OVER = ("Succeeded", "Failed", "Finished", "Suspended")
"""Phases of jobs and gangs that ask for nothing."""


@dataclass(frozen=True, slots=True)
class Job:
    """One job of the input."""

    key: WorkloadKey
    arrival: float
    """Seconds after the start."""
    runtime: float | None
    """Seconds it runs with all its members; None: for ever."""
    elapsed: float
    """Seconds of these that it had run before the start: it stood in the cluster already."""
    gang: Gang
    pods: tuple[Pod, ...]
    ranks: tuple[int, ...]
    """The rank of each pod among all pods of the job."""
    pod_gpus: tuple[float, ...]
    """GPUs of each pod, shares as fractions."""

    @property
    def gpus(self) -> float:
        """Return the GPUs of all its pods, shares as fractions."""
        return sum(self.pod_gpus)

    @property
    def name(self) -> str:
        """Return namespace and name, the namespace left out where it is the default one."""
        namespace, name = self.key.namespace, self.key.name
        return name if namespace == "default" else f"{namespace}/{name}"

    @property
    def queue(self) -> str:
        """Return the queue that it waits in."""
        return self.gang.spec.queue


def read_jobs(
    objs: Iterable[Json], world: InitialCluster, strategy: Strategy | None = None
) -> list[Job]:
    """Return the jobs among *objs* (TrainingJob and Gang), in the order of their arrival.

    A Gang that a TrainingJob of the same name stands behind is that job's own and is not counted
    twice, so that a snapshot of a cluster can be read as it is. *strategy* is that of the jobs that
    name none.

    Raises:
        InputError: naming the object, the field and what it may be.
    """
    ours = [obj for obj in objs if obj.get("apiVersion") == API_VERSION and not _over(obj)]
    gangs = [obj for obj in ours if obj.get("kind") == "Gang"]
    behind = {_named(gang): gang for gang in gangs if owned(gang)}
    found: dict[WorkloadKey, Job] = {}
    for obj in ours:
        if obj.get("kind") == "TrainingJob":
            # It waits since its gang does, not since it was made.
            work = _of_job(obj, behind.get(_named(obj), obj), world)
        elif obj.get("kind") == "Gang" and not owned(obj):
            work = _of_gang(obj, world)
        else:
            continue
        if strategy is not None and "strategy" not in obj["spec"]:
            work = _with_strategy(work, strategy)
        if work.key in found:
            raise InputError(f"{obj['kind']} {work.name} is there twice; give one another name")
        found[work.key] = work
    return sorted(found.values(), key=lambda work: work.arrival)


def read_standing(objs: Iterable[Json], world: InitialCluster) -> list[Job]:
    """Return the jobs of a cluster as ``read_jobs`` does, without those that cannot be read.

    A job with a fault of its own, such as an unknown PriorityClass, starts nothing there: it is no
    reason to say nothing of others.
    """
    there = list(objs)
    try:
        return read_jobs(there, world)
    except InputError:
        pass
    behind = {_named(obj): obj for obj in there if obj.get("kind") == "Gang" and owned(obj)}
    found: list[Job] = []
    for obj in there:
        if obj.get("kind") not in ("TrainingJob", "Gang") or owned(obj):
            continue
        gang = behind.get(_named(obj))
        with suppress(InputError):
            found += read_jobs([obj] if gang is None else [obj, gang], world)
    return sorted(found, key=lambda work: work.arrival)


def _named(obj: Json) -> tuple[str, str]:
    meta = obj.get("metadata") or {}
    return meta.get("namespace") or "default", meta.get("name", "")


def _with_strategy(work: Job, strategy: Strategy) -> Job:
    spec = msgspec.structs.replace(work.gang.spec, strategy=strategy)
    return replace(work, gang=msgspec.structs.replace(work.gang, spec=spec))


def _over(obj: Json) -> bool:
    return (obj.get("status") or {}).get("phase") in OVER


def owned(obj: Json) -> bool:
    """Return whether a Gang is a TrainingJob's own."""
    owners = (obj.get("metadata") or {}).get("ownerReferences") or []
    return any(owner.get("kind") == "TrainingJob" for owner in owners)


def _of_job(obj: Json, gang_of: Json, world: InitialCluster) -> Job:
    job = view(obj, TrainingJob)
    meta = job.metadata
    if wrong := problems(job):
        raise InputError(f"TrainingJob {meta.name}: " + "; ".join(map(str, wrong)))
    framework = FRAMEWORKS[job.spec.framework]
    job = msgspec.structs.replace(job, metadata=_placed(meta))
    everyone = members(job)
    bodies = [objects.pod(job, framework, member, everyone) for member in everyone]
    since, saved = _history(gang_of)
    placed = msgspec.structs.replace(job.metadata, creation_timestamp=since)
    status = GangStatus(
        last_checkpoint=saved or _history(obj)[1],
        waiting_since=_waiting_since(gang_of, world),
        reservation=None if gang_of is obj else view(gang_of, Gang).status.reservation,
    )
    # What the job's controller would see to is the gang's own business here.
    spec = msgspec.structs.replace(objects.gang_spec(job), max_wait=job.spec.max_wait)
    gang = Gang(metadata=placed, spec=spec, status=status)
    return _workload(obj, gang, bodies, world)


def _history(obj: Json) -> tuple[str | None, str | None]:
    """Return since when a job or gang is queued, and when its work was last saved."""
    meta, status = obj.get("metadata") or {}, obj.get("status") or {}
    saved = checkpoint.last(meta.get("annotations") or {}, status.get("lastCheckpoint"))
    since = status.get("queuedAt") or meta.get("creationTimestamp")
    return since, None if saved is None else timestamp.show(saved)


def _waiting_since(obj: Json, world: InitialCluster) -> str | None:
    """Return since when a gang waits that had waited before the start."""
    where = f"{obj.get('kind')} {_named(obj)[1]}: "
    annotations = (obj.get("metadata") or {}).get("annotations") or {}
    waited = _seconds(where, annotations, WAITED_ANNOTATION)
    return None if waited is None else timestamp.show(world.epoch - waited)


def _of_gang(obj: Json, world: InitialCluster) -> Job:
    gang = view(obj, Gang)
    since, saved = _history(obj)
    placed = msgspec.structs.replace(_placed(gang.metadata), creation_timestamp=since)
    status = GangStatus(
        last_checkpoint=saved,
        waiting_since=_waiting_since(obj, world),
        reservation=gang.status.reservation,  # it was promised in what was there before
    )
    gang = msgspec.structs.replace(gang, metadata=placed, status=status)
    bodies: list[Json] = []
    for number, group in enumerate(gang.spec.groups):
        if group.template is None:
            raise InputError(
                f"Gang {gang.metadata.name}: spec.groups[{number}].template is missing; "
                "write a pod template: a simulation makes the group's pods from it"
            )
        for index in range(group.desired or group.min):
            bodies.append(_member(gang, group.name, group.template, index, len(bodies)))
    if not bodies:
        raise InputError(
            f"Gang {gang.metadata.name}: spec.groups is empty; write groups, each with a template"
        )
    return _workload(obj, gang, bodies, world)


def _member(gang: Gang, group: str, template: Json, index: int, rank: int) -> Json:
    given = template.get("metadata") or {}
    name = f"{gang.metadata.name}-{group}-{index}"
    labels = {
        **(given.get("labels") or {}),
        GANG_LABEL: gang.metadata.name,
        GANG_GROUP_LABEL: group,
        JOB_LABEL: gang.metadata.name,
    }
    annotations = {**(given.get("annotations") or {}), RANK_ANNOTATION: str(rank)}
    meta = {"name": name, "namespace": gang.metadata.namespace}
    spec = {**(template.get("spec") or {}), "schedulerName": SCHEDULER_NAME}
    return {"metadata": {**meta, "labels": labels, "annotations": annotations}, "spec": spec}


def _placed(meta: ObjectMeta) -> ObjectMeta:
    return msgspec.structs.replace(
        meta, namespace=meta.namespace or "default", uid=meta.uid or f"sim-{meta.name}"
    )


def _workload(obj: Json, gang: Gang, bodies: Sequence[Json], world: InitialCluster) -> Job:
    key = WorkloadKey("Gang", gang.metadata.namespace, gang.metadata.name)
    where = f"{obj['kind']} {key.name}: "
    annotations = gang.metadata.annotations
    arrival = _seconds(where, annotations, ARRIVAL_ANNOTATION)
    runtime = _seconds(where, annotations, RUNTIME_ANNOTATION)
    if runtime is None and bodies:  # as simulated nodes read it
        runtime = _seconds(where, bodies[0]["metadata"]["annotations"], RUNTIME_ANNOTATION)
    created = timestamp.show(world.epoch + (arrival or 0.0))
    if arrival is None and gang.metadata.creation_timestamp:
        created = gang.metadata.creation_timestamp
    spec = _decided(gang.spec, where, world)
    meta = msgspec.structs.replace(
        gang.metadata,
        creation_timestamp=created,
        resource_version="",
        owner_references=[_SIMULATION],
    )
    pods = tuple(_pod(body, gang.spec, created, where, world) for body in bodies)
    return Job(
        key=key,
        arrival=arrival or 0.0,
        runtime=runtime,
        elapsed=_seconds(where, annotations, ELAPSED_ANNOTATION) or 0.0,
        gang=Gang(metadata=meta, spec=spec, status=gang.status),
        pods=pods,
        ranks=tuple(int(pod.metadata.annotations.get(RANK_ANNOTATION, 0)) for pod in pods),
        pod_gpus=tuple(_gpus(pod.spec, world) for pod in pods),
    )


def _gpus(spec: PodSpec, world: InitialCluster) -> float:
    request = pod_request(spec)
    share = split_off(spec, request)
    if share is None:
        return request.get(GPU, 0)
    by_memory = share.memory / world.card_memory if world.card_memory else 0.0
    return share.cards * min(1.0, max(share.compute / WHOLE_CARD, by_memory))


def _decided(spec: GangSpec, where: str, world: InitialCluster) -> GangSpec:
    try:
        world.priority(spec.priority_class_name)
    except InputError as error:
        raise InputError(f"{where}{error}") from None
    groups = [msgspec.structs.replace(group, template=None) for group in spec.groups]
    return msgspec.structs.replace(spec, groups=groups)


def _pod(body: Json, spec: GangSpec, created: str, where: str, world: InitialCluster) -> Pod:
    pod = view({"kind": "Pod", **body}, Pod)
    named = pod.spec.priority_class_name or spec.priority_class_name
    try:
        priority = world.priority(named)
    except InputError as error:
        raise InputError(f"{where}{error}") from None
    meta = msgspec.structs.replace(
        pod.metadata, namespace=pod.metadata.namespace or "default", creation_timestamp=created
    )
    return Pod(metadata=meta, spec=msgspec.structs.replace(pod.spec, priority=priority))


def _seconds(where: str, annotations: dict[str, str], name: str) -> float | None:
    text = annotations.get(name)
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e12:
        field = f"metadata.annotations[{name}]"
        raise InputError(f"{where}{field} is {text!r}; write seconds, 0 or more")
    return value
