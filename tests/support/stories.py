"""What the stories of the crash tests have in common: jobs that come, wait and run, and the end."""

from __future__ import annotations

import contextlib
from typing import Any

from tests.support.crashing import Stage

from lockstep.api.core import PODS, PRIORITY_CLASSES, Pod
from lockstep.api.gang import GANGS, Gang
from lockstep.api.names import GPU, JOB_LABEL
from lockstep.api.queue import QUEUES
from lockstep.api.training import TRAINING_JOBS, TrainingJob
from lockstep.kube.client import Client
from lockstep.kube.errors import AlreadyExists

Json = dict[str, Any]
IMPORTANT = "crash-important"


async def add_importance(client: Client, name: str = IMPORTANT, value: int = 100) -> None:
    """Make the class of what is more important than the rest; it stays for other tests."""
    with contextlib.suppress(AlreadyExists):
        await client.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})


async def add_queue(client: Client, name: str, **spec: Any) -> None:
    """Create a queue."""
    await client.create(QUEUES, {"metadata": {"name": name}, "spec": spec})


async def submit(
    client: Client,
    name: str,
    replicas: int,
    *,
    least: int | None = None,
    gpus: int = 8,
    important: bool = False,
    **spec: Any,
) -> None:
    """Create a job of one role; with *least* it is elastic and may run with so many."""
    container = {"name": "main", "image": "none", "command": ["train"]}
    template = {
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [{**container, "resources": {"limits": {GPU: gpus}}}],
        }
    }
    role: Json = {"name": "worker", "replicas": replicas, "template": template}
    if least is not None:
        role |= {"min": least, "max": replicas}
    if important:
        spec["priorityClassName"] = IMPORTANT
    body = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"framework": "pytorch", "roles": [role], "simulated": True, **spec},
    }
    await client.create(TRAINING_JOBS, body)


async def edit(client: Client, name: str, **spec: Any) -> None:
    """Change fields of a job's spec."""
    await client.patch(TRAINING_JOBS, name, {"spec": spec}, "default")


async def are(stage: Stage, **phases: str) -> None:
    """Wait until jobs are in these phases, and their pods are as that means.

    A job that is pending or restarting has all of its pods, and none of them has a node.
    """

    async def look() -> bool:
        jobs = {j.metadata.name: j for j in (await stage.client.list(TRAINING_JOBS)).items}
        pods = (await stage.client.list(PODS, "default")).items
        return all(_is(jobs[name], phase, pods) for name, phase in phases.items())

    await stage.until(look, f"{phases}")


def _is(job: TrainingJob, phase: str, pods: list[Pod]) -> bool:
    name = job.metadata.name
    mine = [p for p in pods if p.metadata.labels[JOB_LABEL] == name]
    if job.status.phase != phase or any(p.metadata.deletion_timestamp for p in mine):
        return False
    if phase == "Suspended":
        return not mine
    least = sum(r.replicas if r.min is None else r.min for r in job.spec.roles)
    if phase == "Running":
        return sum(p.status.phase == "Running" for p in mine) >= least
    return len(mine) >= least and not any(p.spec.node_name for p in mine)


async def stand(stage: Stage, *names: str) -> None:
    """Wait until these pods have nodes."""

    async def look() -> bool:
        pods = (await stage.client.list(PODS, "default")).items
        return {p.metadata.name for p in pods if p.spec.node_name} >= set(names)

    await stage.until(look, f"{names} have nodes")


async def end_of(stage: Stage) -> Json:
    """Return all that must be the same however a story with jobs went.

    Which of the equal nodes a gang stands on is left out, how often a pod was made, got a node or
    was ended is not.
    """
    pods = (await stage.client.list(PODS, "default")).items
    gangs = (await stage.client.list(GANGS)).items
    jobs = (await stage.client.list(TRAINING_JOBS, "default")).items
    audit = stage.audit
    return {
        "jobs": {
            j.metadata.name: (j.status.phase, j.status.attempt, j.status.restarts) for j in jobs
        },
        "gangs": {g.metadata.name: _gang(g) for g in gangs},
        "pods": {p.metadata.name: _pod(p) for p in pods},
        "made": dict(+audit.made),
        "given": dict(+audit.given),
        "ended": dict(+audit.ended),
    }


def _gang(gang: Gang) -> tuple[object, ...]:
    status = gang.status
    # What is kept for a crash must be taken out again when it is over.
    kept = sorted(status.nominated), sorted(status.preempted)
    return status.phase, status.reason, status.members, status.bound, kept


def _pod(pod: Pod) -> tuple[object, ...]:
    disrupted = any(c.type == "DisruptionTarget" for c in pod.status.conditions)
    return pod.status.phase, bool(pod.spec.node_name), disrupted
