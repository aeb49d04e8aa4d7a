"""Training jobs as rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lockstep.api.gang import Gang
from lockstep.api.simulated import pretends
from lockstep.api.training import TrainingJob
from lockstep.cli.views import gangs as gang_views
from lockstep.cli.views.pods import marked
from lockstep.cli.views.table import NAMESPACE, Column, Table, table
from lockstep.cli.views.times import ago, between

COLUMNS = (
    NAMESPACE,
    "Name",
    "Framework",
    "Phase",
    Column("Gang", number=True),
    "Queue",
    Column("Priority", wide=True),
    Column("Topology", wide=True),
    Column("Domain", wide=True),
    Column("Restarts", number=True),
    Column("Runtime", wide=True),
    Column("Position", number=True, wide=True),
    Column("Starts in", wide=True),
    "Age",
    Column("Why", text=True),
)
ENDED = ("Succeeded", "Failed")

Key = tuple[str, str]


def ended(job: TrainingJob) -> bool:
    """Return whether the job is over."""
    return job.status.phase in ENDED


def phase(job: TrainingJob) -> str:
    """Return the job's phase, marked where its commands are not executed."""
    return marked(job.status.phase, simulated=pretends(job))


def why(job: TrainingJob, gang: Gang | None) -> str:
    """Return why the job does not run; empty when it runs or has succeeded.

    It is what the status says. Before the controller has seen the gang, the gang knows it best.
    """
    if job.status.phase in ("Running", "Succeeded"):
        return ""
    if job.status.message or ended(job) or gang is None:
        return job.status.message
    return gang_views.why(gang)


def members(job: TrainingJob, gang: Gang | None) -> str:
    """Return how many members have a place, of how many the job needs: ``2/2``."""
    if ended(job):
        return ""
    if gang is not None:
        return f"{gang.status.bound}/{gang_views.minimum(gang)}"
    needed = sum(role.min or role.replicas for role in job.spec.roles)
    return f"0/{needed}"


def job_table(jobs: Iterable[TrainingJob], gangs: Mapping[Key, Gang], now: float) -> Table:
    """Return the jobs as a table, oldest first."""
    ordered = sorted(jobs, key=lambda job: (job.metadata.creation_timestamp or "", _key(job)))
    return table(COLUMNS, (_row(job, gangs.get(_key(job)), now) for job in ordered))


def _key(job: TrainingJob) -> Key:
    return (job.metadata.namespace, job.metadata.name)


def _row(job: TrainingJob, gang: Gang | None, now: float) -> tuple[object, ...]:
    spec, status = job.spec, job.status
    return (
        job.metadata.namespace,
        job.metadata.name,
        spec.framework,
        phase(job),
        members(job, gang),
        spec.queue,
        spec.priority_class_name,
        gang_views.wish(spec.topology),
        gang_views.domain(gang) if gang else "",
        status.restarts,
        between(status.start_time, status.completion_time, now),
        gang.status.position if gang is not None else None,
        gang_views.starts(gang, now) if gang is not None else "",
        ago(job.metadata.creation_timestamp, now),
        why(job, gang),
    )
