"""``submit`` where a job of that name is there already: refused, replaced, or changed."""

from __future__ import annotations

import time
from dataclasses import replace
from enum import Enum, auto

from msgspec import structs

from lockstep.api.roles import elastic
from lockstep.api.training import TRAINING_JOBS, TrainingJob, TrainingJobSpec
from lockstep.cli import kinds
from lockstep.cli.connect import Session
from lockstep.cli.deletion import delete_all
from lockstep.cli.failure import CommandFailed
from lockstep.cli.views.jobs import ended
from lockstep.cli.views.times import ago

GONE_WITHIN = 120.0


class Existing(Enum):
    """What is done with a job whose name is taken."""

    REFUSE = auto()
    CHANGE = auto()
    """Change it where it has not ended."""
    REPLACE = auto()


async def make_way(session: Session, name: str, existing: Existing) -> bool:
    """Delete the job of that name where it is to be replaced; return whether there was one.

    Raises:
        CommandFailed: when it is there and stays, with what can be done.
    """
    job = await session.find(TRAINING_JOBS, name)
    if job is None:
        return False
    if existing is Existing.REPLACE:
        here = replace(session, namespace=job.metadata.namespace)
        await delete_all(here, [kinds.reference(f"job/{name}")], GONE_WITHIN, missing_ok=True)
        return True
    if existing is Existing.REFUSE or ended(job):
        raise taken(job)
    return False


def taken(job: TrainingJob) -> CommandFailed:
    """Return the error of a name that another job has."""
    name, status = job.metadata.name, job.status
    if job.metadata.deletion_timestamp is not None:
        return CommandFailed(
            f"job {name} is still being deleted", f"wait for its end: `lockstep delete {name}`"
        )
    other = "choose another --name"
    if ended(job):
        since = ago(status.completion_time, time.time())
        word = "succeeded" if status.phase == "Succeeded" else "failed"
        return CommandFailed(
            f"job {name} is there already: it {word} {since} ago, and nothing was run",
            f"--replace deletes it with its logs and runs this; or {other}",
        )
    return CommandFailed(
        f"job {name} is there already: it is {status.phase}, and nothing was changed",
        f"--replace ends it and runs this; `submit -f FILE` changes it; or {other}",
    )


def takes_effect(name: str, before: TrainingJobSpec, after: TrainingJobSpec) -> str:
    """Say when what was changed of a job that has not ended takes effect; empty for nothing."""
    told = []
    sizes = [[structs.replace(role, template={}) for role in s.roles] for s in (before, after)]
    if sizes[0] != sizes[1]:
        at_once = all(elastic(role) for role in (*before.roles, *after.roles))
        told.append("the new size at once" if at_once else "the job starts anew with its new size")
    pods = [
        ({role.name: role.template for role in spec.roles}, spec.simulated, spec.code)
        for spec in (before, after)
    ]
    if pods[0] != pods[1]:
        told.append(f"the new pods with the next attempt (`lockstep restart {name}`)")
    if before.topology != after.topology:
        told.append("the topology for pods placed from now on")
    seen = ("roles", "simulated", "code", "topology")
    rest = [f for f in after.__struct_fields__ if f not in seen]
    if any(getattr(before, field) != getattr(after, field) for field in rest):
        told.append("the rest at once")
    return "; ".join(told)
