"""Jobs that were deleted, as the recorder keeps them."""

from __future__ import annotations

import time

from lockstep.api.job_record import JobRecord
from lockstep.api.training import TRAINING_JOBS, TrainingJob
from lockstep.cli.connect import Session
from lockstep.cli.views.times import ago
from lockstep.kube.errors import NotFound
from lockstep.kube.usage import recorded_jobs


async def job_or_record(session: Session, name: str) -> TrainingJob | JobRecord:
    """Return a job, or the record of the last of the name, which was deleted.

    Raises:
        NotFound: when there is neither.
    """
    try:
        return await session.client.get(TRAINING_JOBS, name, session.namespace)
    except NotFound:
        found = await last_record(session, name)
        if found is None:
            raise
        return found


async def last_record(session: Session, name: str) -> JobRecord | None:
    """Return the record of the last job of a name; None where no recorder knows one."""
    return next(iter(await recorded_jobs(session.client, session.namespace, name)), None)


def was_deleted(record: JobRecord) -> str:
    """Return that and when a job was deleted: ``job digits was deleted 3m ago``."""
    when = f" {ago(record.deleted, time.time())} ago" if record.deleted else ""
    return f"job {record.job.metadata.name} was deleted{when}"
