"""Deleting objects, and waiting until they are gone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from lockstep.api import duration, timestamp
from lockstep.api.core import PODS
from lockstep.api.names import JOB_LABEL
from lockstep.api.queue import QUEUES
from lockstep.api.training import TRAINING_JOBS
from lockstep.cli import kinds
from lockstep.cli.connect import Session
from lockstep.cli.failure import CommandFailed
from lockstep.cli.output import note
from lockstep.cli.queue_guard import check_unused
from lockstep.kube.errors import NotFound


async def delete_all(
    session: Session,
    wanted: Sequence[kinds.Reference],
    seconds: float,
    *,
    missing_ok: bool = False,
    force: bool = False,
) -> None:
    """Delete objects, and wait up to *seconds* until they are gone; 0 does not wait.

    Queues that are in use are deleted with *force* only. What is not there does not keep the rest.

    Raises:
        CommandFailed: when one is still there or was not there, or a queue is in use.
    """
    queues = [ref.name for ref in wanted if ref.resource is QUEUES]
    if queues and not force:
        await check_unused(session, queues)
    going, missing = [], []
    for ref in wanted:
        namespace = session.home(ref.resource)
        try:
            # Dependents first, so that "gone" means that the pods are gone too.
            await session.client.delete(ref.resource, ref.name, namespace, propagation="Foreground")
        except NotFound:
            missing.append(str(ref))
            continue
        going.append(ref)
    if not seconds:
        for ref in going:
            print(f"{ref} is being deleted")
    else:
        end = time.monotonic() + seconds
        for ref in going:
            await _gone(session, ref, end)
            print(f"{ref} deleted")
    if missing and not missing_ok:
        raise CommandFailed(
            f"not found: {', '.join(missing)}",
            "`lockstep list` shows what there is; -n chooses the namespace",
        )


async def _what_holds(session: Session, ref: kinds.Reference) -> str:
    """Return what an object waits for that is being deleted: of a job, its pods' grace."""
    hint = f"`lockstep describe {ref}` shows what holds it"
    if ref.resource is not TRAINING_JOBS:
        return hint
    label = f"{JOB_LABEL}={ref.name}"
    listed = await session.client.list(PODS, session.namespace, label_selector=label)
    ends = [pod.metadata.deletion_timestamp for pod in listed.items]
    last = max((timestamp.parse(end) for end in ends if end), default=0.0)
    left = last - time.time()
    return f"what still runs is killed in {duration.show(left)}; {hint}" if left > 0 else hint


async def _gone(session: Session, ref: kinds.Reference, end: float) -> None:
    said = time.monotonic() + 1
    while True:
        try:
            await session.client.get(ref.resource, ref.name, session.home(ref.resource))
        except NotFound:
            return
        now = time.monotonic()
        if now > end:
            raise CommandFailed(
                f"{ref} is still there; its deletion goes on", await _what_holds(session, ref)
            )
        if now > said:
            note(f"waiting for the end of {ref}")
            said = now + 5
        await asyncio.sleep(0.1)
