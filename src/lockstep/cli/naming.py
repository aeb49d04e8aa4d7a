"""What a NAME that ``list`` printed stands for: a job, the jobs of an array, or a pod."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from lockstep.api.core import PODS
from lockstep.api.names import ARRAY_LABEL, JOB_LABEL
from lockstep.api.training import TRAINING_JOBS
from lockstep.cli.connect import Session
from lockstep.cli.failure import CommandFailed
from lockstep.cli.kinds import Reference
from lockstep.cli.views.table import natural
from lockstep.kube.errors import Forbidden, NotFound


async def resolve(session: Session, ref: Reference) -> list[Reference]:
    """Return the job *ref*, or else the jobs of the array of the name, or else its pod.

    ``sweep`` stands for ``sweep-0`` and ``sweep-1``, ``digits-worker-0`` for the pod, while
    ``job/digits-worker-0`` names a job alone. Where nothing has the name, *ref* comes back.
    """
    if ref.resource is not TRAINING_JOBS:
        return [ref]
    client, namespace = session.client, session.namespace
    with suppress(NotFound):
        await client.get(TRAINING_JOBS, ref.name, namespace)
        return [ref]
    found = await client.list(TRAINING_JOBS, namespace, label_selector=f"{ARRAY_LABEL}={ref.name}")
    if found.items:
        jobs = sorted((one.metadata.name for one in found.items), key=natural)
        return [Reference("job", name, TRAINING_JOBS) for name in jobs]
    if ref.bare:
        with suppress(NotFound, Forbidden):
            await client.get(PODS, ref.name, namespace)
            return [Reference("pod", ref.name, PODS)]
    return [ref]


async def resolve_all(session: Session, refs: Iterable[Reference]) -> list[Reference]:
    """Return what each of *refs* stands for, each object once."""
    return list(dict.fromkeys([one for ref in refs for one in await resolve(session, ref)]))


async def job_names(session: Session, names: Iterable[str]) -> list[str]:
    """Return the jobs that *names* stand for, those of arrays one by one."""
    jobs = [Reference("job", name, TRAINING_JOBS) for name in names]
    return [ref.name for ref in await resolve_all(session, jobs)]


async def resolve_one(session: Session, ref: Reference) -> Reference:
    """Return the one object that *ref* stands for.

    Raises:
        CommandFailed: when it stands for the jobs of an array.
    """
    found = await resolve(session, ref)
    if len(found) > 1:
        names = ", ".join(one.name for one in found[:5])
        raise CommandFailed(
            f"{ref.name} is an array of {len(found)} jobs", f"name one of them: {names}"
        )
    return found[0]


async def job_of(session: Session, name: str) -> str:
    """Return the job of a name: the job itself, or that of the pod of this name.

    Raises:
        CommandFailed: when the name stands for the jobs of an array, or for a pod of no job.
    """
    ref = await resolve_one(session, Reference("job", name, TRAINING_JOBS, bare=True))
    if ref.kind == "job":
        return ref.name
    pod = await session.client.get(PODS, ref.name, session.namespace)
    if job := pod.metadata.labels.get(JOB_LABEL):
        return job
    raise CommandFailed(f"pod {ref.name} belongs to no job", "name a job: `lockstep list`")
