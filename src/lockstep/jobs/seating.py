"""Which pods hold the ranks: those of the job's size, but for spares that took a place over.

A spare takes the place of a pod that was lost; no other pod moves. Where there is none, and none
can be placed, the others go on as a smaller world if the job's ``min`` allows, and take the pod in
again once it is there. Only a new size numbers anew, in the order of the pods.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from msgspec import structs

from lockstep.api.core import Pod
from lockstep.api.rendezvous import Report
from lockstep.api.roles import launched, least
from lockstep.api.training import Seats, TrainingJob, TrainingJobStatus
from lockstep.jobs import conditions as cond
from lockstep.jobs.frameworks.base import Member, members, pool

SMALLER_AFTER: Final = 30.0
"""Seconds for which a lost pod may wait for a place before the others go on without it."""


def seated(job: TrainingJob, status: TrainingJobStatus) -> dict[str, Member]:
    """Return the members that hold ranks, by name, in the order of the ranks."""
    everyone = {member.name: member for member in pool(job)}
    seats = status.seats
    if seats is None or seats.replicas != job.spec.roles[0].replicas:
        return {member.name: member for member in members(job)}
    there = [everyone[name] for name in seats.pods if name in everyone]
    return {member.name: replace(member, rank=rank) for rank, member in enumerate(there)}


def _seats(job: TrainingJob, status: TrainingJobStatus, pods: Sequence[str]) -> TrainingJobStatus:
    seats: Seats | None = Seats(replicas=job.spec.roles[0].replicas, pods=list(pods))
    if list(pods) == [member.name for member in members(job)]:
        seats = None
    return structs.replace(status, seats=seats)


def taken_over(
    job: TrainingJob, status: TrainingJobStatus, lost: Collection[str], ready: Sequence[str]
) -> TrainingJobStatus | None:
    """Return *status* with spares of those *ready* in the places of the *lost*; None if too few."""
    if not lost or len(ready) < len(lost):
        return None
    free = iter(ready)
    return _seats(job, status, [next(free) if n in lost else n for n in seated(job, status)])


def ready(
    standing: Mapping[str, Pod], told: Mapping[str, Report], status: TrainingJobStatus
) -> list[str]:
    """Return the pods without a rank whose launchers are ready to take one."""
    return [
        name
        for name, pod in standing.items()
        if pod.status.phase == "Running"
        and pod.metadata.deletion_timestamp is None
        and name in told
        and (told[name].generation, told[name].state) == (status.generation, "Ready")
    ]


def smaller_at(job: TrainingJob, status: TrainingJobStatus) -> float | None:
    """Return when the others may go on without the pods that have no place; None for never.

    That is so at the first start, too: pods beyond the least may find no node for long.
    """
    since = cond.since(status, cond.RESTARTING, True)
    if since is None and not cond.holds(status, cond.RUNNING):
        since = cond.since(status, cond.PLACED, True)
    if len(job.spec.roles) != 1 or not launched(job) or since is None:
        return None
    return since + SMALLER_AFTER


def smaller(
    job: TrainingJob,
    status: TrainingJobStatus,
    current: Mapping[str, Pod],
    told: Mapping[str, Report],
    now: float,
) -> TrainingJobStatus | None:
    """Return *status* without the pods that have no place, if the others may go on; else None."""
    due = smaller_at(job, status)
    if due is None or now < due:
        return None
    there = [n for n in seated(job, status) if n in current and current[n].spec.node_name]
    wanted = seated(job, status)
    if len(there) == len(wanted) or len(there) < least(job.spec.roles[0]):
        return None
    gathered = all(
        name in told and (told[name].generation, told[name].state) == (status.generation, "Ready")
        for name in there
    )
    return _seats(job, status, there) if gathered else None


def larger(
    job: TrainingJob, status: TrainingJobStatus, ready: Sequence[str]
) -> TrainingJobStatus | None:
    """Return *status* with those of *ready* that a smaller world lacks; None if it lacks none."""
    now = seated(job, status)
    short = job.spec.roles[0].replicas - len(now)
    if short <= 0 or not ready:
        return None
    chosen = {*now, *ready[:short]}
    return _seats(job, status, [member.name for member in pool(job) if member.name in chosen])
