"""The last state of a job as the recorder keeps it, also after the job and its pods are gone."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import Meta, structs

from lockstep.api import timestamp
from lockstep.api.goodput import spent
from lockstep.api.meta import ObjectMeta
from lockstep.api.names import CREATOR_ANNOTATION
from lockstep.api.training import Role, TrainingJob
from lockstep.api.wire import Wire

_CONTAINER: Final = ("name", "image", "command", "args", "workingDir", "resources")
"""What is kept of a container: its environment may hold secrets, and is not."""


class JobRecord(Wire, frozen=True):
    """A job as it was seen last."""

    job: TrainingJob
    deleted: Annotated[str, Meta(description="When it was deleted; empty while it is there.")] = ""


def kept(job: TrainingJob) -> TrainingJob:
    """Return *job* without what a record does not keep: environment, volumes, annotations."""
    told = job.metadata
    creator = told.annotations.get(CREATOR_ANNOTATION)
    metadata = ObjectMeta(
        name=told.name,
        namespace=told.namespace,
        uid=told.uid,
        labels=told.labels,
        annotations={} if creator is None else {CREATOR_ANNOTATION: creator},
        creation_timestamp=told.creation_timestamp,
    )
    spec = structs.replace(job.spec, roles=[_role(role) for role in job.spec.roles])
    return structs.replace(job, metadata=metadata, spec=spec)


def closed(record: JobRecord) -> TrainingJob:
    """Return the job of *record*; what lasted when it was deleted ended then."""
    job, at = record.job, record.deleted
    status = job.status
    history, known = status.history, status.goodput
    end = timestamp.read(at)
    if end is None:
        return job
    spans = [structs.replace(s, end=s.end or max(at, s.begin)) for s in history.spans]
    attempts = [structs.replace(a, end=a.end or max(at, a.begin)) for a in history.attempts]
    history = structs.replace(history, spans=spans, attempts=attempts)
    known = structs.replace(known, cause="", since=None, seconds=spent(known, end))
    return structs.replace(job, status=structs.replace(status, history=history, goodput=known))


def _role(role: Role) -> Role:
    found: list[dict[str, Any]] = (role.template.get("spec") or {}).get("containers") or []
    containers = [{name: one[name] for name in _CONTAINER if name in one} for one in found]
    return structs.replace(role, template={"spec": {"containers": containers}})
