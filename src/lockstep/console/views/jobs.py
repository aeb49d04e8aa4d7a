"""Training jobs as rows of a list."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Final, get_args

import msgspec

from lockstep.api import roles
from lockstep.api.gang import Gang
from lockstep.api.names import CREATOR_ANNOTATION
from lockstep.api.training import Phase, TrainingJob

PHASES: Final[tuple[str, ...]] = get_args(Phase)


class JobRow(msgspec.Struct, frozen=True, gc=False):
    """A job in a list; times are RFC 3339 or empty."""

    name: str
    namespace: str
    uid: str
    phase: str
    why: str
    framework: str
    queue: str
    pods: int
    gpus: int
    bound: int
    restarts: int
    position: int | None
    simulated: bool
    created: str
    started: str
    ended: str
    user: str
    fewest: int
    most: int
    version: str


_SORTABLE: Final = (
    *("name", "namespace", "phase", "queue", "framework", "gpus", "restarts", "created", "user"),
)
COLUMNS: Final[dict[str, Callable[[JobRow], Any]]] = {one: attrgetter(one) for one in _SORTABLE}
"""By what a list can be sorted."""


def key_of(namespace: str, name: str) -> str:
    """Return the key of a namespaced row."""
    return f"{namespace}/{name}"


def why(job: TrainingJob, gang: Gang | None) -> str:
    """Return why a job does not run; empty while it does, and when it has succeeded."""
    if job.status.phase in ("Running", "Succeeded"):
        return ""
    if job.status.message or job.status.phase == "Failed" or gang is None:
        return job.status.message
    return gang.status.message or gang.status.reason


def row(job: TrainingJob, gang: Gang | None) -> JobRow:
    """Return the row of a job and its gang, if it has one."""
    meta, spec, status = job.metadata, job.spec, job.status
    waits = gang is not None and gang.status.phase in ("Pending", "Placing")
    return JobRow(
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        phase="Deleting" if meta.deletion_timestamp else status.phase,
        why=why(job, gang),
        framework=spec.framework,
        queue=spec.queue,
        pods=sum(role.replicas for role in spec.roles),
        gpus=sum(role.replicas * roles.gpus(role) for role in spec.roles),
        bound=gang.status.bound if gang is not None else 0,
        restarts=status.restarts,
        position=gang.status.position if gang is not None and waits else None,
        simulated=spec.simulated,
        created=meta.creation_timestamp or "",
        started=status.start_time or "",
        ended=status.completion_time or "",
        user=meta.annotations.get(CREATOR_ANNOTATION, ""),
        fewest=sum(role.min or role.replicas for role in spec.roles),
        most=sum(role.max or role.replicas for role in spec.roles),
        version=str(meta.generation or 0),
    )


def slim(job: TrainingJob) -> TrainingJob:
    """Return a job without what no list shows, which would fill the memory."""
    kept = [
        msgspec.structs.replace(role, template=_resources_alone(role.template))
        for role in job.spec.roles
    ]
    return msgspec.structs.replace(job, spec=msgspec.structs.replace(job.spec, roles=kept))


def _resources_alone(template: Mapping[str, Any]) -> dict[str, Any]:
    spec = template.get("spec") or {}
    containers = [
        {"name": c.get("name", ""), "resources": c.get("resources") or {}}
        for c in spec.get("containers") or ()
    ]
    return {"spec": {"containers": containers}}
