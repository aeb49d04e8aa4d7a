"""Training jobs as rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from lockstep.api import duration
from lockstep.api.gang import Gang
from lockstep.api.goodput import spent
from lockstep.api.simulated import pretends
from lockstep.api.training import TrainingJob
from lockstep.cli.views import gangs as gang_views
from lockstep.cli.views.pods import marked
from lockstep.cli.views.table import IN_NAMESPACE, NAMED, Cells, Column, Table, age, rows
from lockstep.cli.views.times import between

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


def ran(job: TrainingJob, now: float) -> str:
    """Return how long the job has held its place, by its record: neither queued nor suspended."""
    seconds = spent(job.status.goodput, now)
    if not seconds:  # seen by a controller that kept no record
        return between(job.status.start_time, job.status.completion_time, now)
    held = sum(seconds.values()) - seconds.get("waiting", 0.0)
    return duration.show(held) if job.status.start_time else ""


def job_table(jobs: Iterable[TrainingJob], gangs: Mapping[Key, Gang], now: float) -> Table:
    """Return the jobs as a table, oldest first."""

    def of_gang(read: Callable[[Gang], object]) -> Callable[[TrainingJob], object]:
        return lambda job: read(gang) if (gang := gangs.get(_key(job))) is not None else None

    cells: Cells[TrainingJob] = (
        IN_NAMESPACE,
        NAMED,
        ("Framework", lambda job: job.spec.framework),
        ("Phase", phase),
        (Column("Gang", number=True), lambda job: members(job, gangs.get(_key(job)))),
        ("Queue", lambda job: job.spec.queue),
        (Column("Priority", wide=True), lambda job: job.spec.priority_class_name),
        (Column("Topology", wide=True), lambda job: gang_views.wish(job.spec.topology)),
        (Column("Domain", wide=True), of_gang(gang_views.domain)),
        (Column("Restarts", number=True), lambda job: job.status.restarts),
        (Column("Runtime", wide=True), lambda job: ran(job, now)),
        (Column("Position", number=True, wide=True), of_gang(lambda gang: gang.status.position)),
        (Column("Starts in", wide=True), of_gang(lambda gang: gang_views.starts(gang, now))),
        age(now),
        (Column("Why", text=True), lambda job: why(job, gangs.get(_key(job)))),
    )
    ordered = sorted(jobs, key=lambda job: (job.metadata.creation_timestamp or "", _key(job)))
    return rows(ordered, cells)


def _key(job: TrainingJob) -> Key:
    return (job.metadata.namespace, job.metadata.name)
