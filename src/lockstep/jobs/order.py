"""Which roles of a job may start: those whose turn has come."""

from __future__ import annotations

from lockstep.api.training import ReplicaStatus, Role, TrainingJob

_NONE = ReplicaStatus()


def open_roles(job: TrainingJob) -> frozenset[str]:
    """Return the names of the roles whose pods are created by now; once begun they stay.

    It is told by the counts in the job's status, so that a crash between two looks changes nothing.
    """
    return frozenset(role.name for role in job.spec.roles if _open(job, role))


def waits_for(job: TrainingJob) -> list[str]:
    """Return in words what each role waits for that may not start yet."""
    roles = {role.name: role for role in job.spec.roles}
    return [
        f"{role.name} starts once {one.role} is "
        f"{'done' if one.condition == 'Complete' else 'ready'}"
        for role in roles.values()
        if not _open(job, role)
        for one in role.after
        if not _holds(job, roles[one.role], one.condition)
    ]


def _open(job: TrainingJob, role: Role) -> bool:
    if not role.after or job.status.replica_statuses.get(role.name, _NONE).created:
        return True
    roles = {one.name: one for one in job.spec.roles}
    return all(_holds(job, roles[one.role], one.condition) for one in role.after)


def _holds(job: TrainingJob, role: Role, condition: str) -> bool:
    known = job.status.replica_statuses.get(role.name, _NONE)
    far = known.succeeded if condition == "Complete" else known.ready + known.succeeded
    return far >= role.replicas
