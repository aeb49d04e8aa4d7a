"""Sending objects to the API server, and waiting for what becomes of jobs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from lockstep.api.core import AnyObject
from lockstep.api.meta import ObjectMeta
from lockstep.api.resource import Resource
from lockstep.api.simulated import pretends
from lockstep.api.training import TRAINING_JOBS, TrainingJob
from lockstep.api.wire import Json, convert
from lockstep.cli import kinds
from lockstep.cli.connect import Session
from lockstep.cli.doubts import tell_doubts
from lockstep.cli.existing import Existing, make_way, taken, takes_effect
from lockstep.cli.failure import CommandFailed
from lockstep.cli.following import follow_job
from lockstep.cli.log_streams import Request
from lockstep.cli.output import note
from lockstep.cli.served_kinds import find_resource
from lockstep.cli.views.explain import NOT_EXECUTED
from lockstep.cli.views.jobs import ended
from lockstep.kube.client import Patch
from lockstep.kube.errors import AlreadyExists

FIELD_MANAGER = "lockstep-submit"
LOOK_AGAIN = 0.3


async def send(
    session: Session,
    objects: Sequence[Json],
    *,
    wait: bool,
    follow: bool,
    existing: Existing = Existing.CHANGE,
    code: dict[str, bytes] | None = None,
) -> None:
    """Create the objects, or do with those that exist what *existing* says; then wait for the jobs.

    The jobs own the parts of *code*, which were sent for them.

    Raises:
        CommandFailed: when the server does not know a kind, the name of a job is taken, or a job
            that was waited for failed.
    """
    jobs: list[tuple[str, str]] = []
    sent: list[Json] = []
    owners: list[ObjectMeta] = []
    resources = [await find_resource(session, o["apiVersion"], o["kind"]) for o in objects]
    for res, obj in zip(resources, objects, strict=True):
        if _is_job(res) and obj["metadata"].get("name"):
            await make_way(_at(session, obj), obj["metadata"]["name"], existing)
    for res, obj in zip(resources, objects, strict=True):
        made, done = await _put(session, res, obj, existing)
        name = made.name
        # What follows on standard output are the job's own lines.
        told = sys.stderr if follow else sys.stdout
        print(f"{kinds.short_name(res)}/{name} {done}", flush=True, file=told)
        sent.append({**obj, "metadata": {**obj["metadata"], "name": name}})
        if _is_job(res):
            jobs.append((made.namespace, name))
            owners.append(made)
            if pretends(convert(obj, TrainingJob)):
                note(f"job {name} is {NOT_EXECUTED}")
    if code:
        await _owned(session, code, owners)
    with told_when_left([name for _, name in jobs]):
        await tell_doubts(session, sent)
        failed = [
            name
            for namespace, name in (jobs if follow or wait else ())
            if not await _ended_well(replace(session, namespace=namespace), name, follow=follow)
        ]
    if failed:
        raise CommandFailed(
            f"job {', '.join(failed)} failed", f"lockstep describe {failed[0]} shows how"
        )


async def _owned(session: Session, code: dict[str, bytes], jobs: Sequence[ObjectMeta]) -> None:
    # Most commands send no code.
    from lockstep.kube.code.store import adopt

    for space in {one.namespace for one in jobs}:
        theirs = [one for one in jobs if one.namespace == space]
        await adopt(session.client, space, code, theirs)


@contextmanager
def told_when_left(jobs: Sequence[str]) -> Iterator[None]:
    """Say that jobs go on where the command is interrupted while it waits for them."""
    try:
        yield
    except asyncio.CancelledError:
        for name in jobs:
            note(
                f"job {name} goes on; `lockstep logs -f {name}` follows it, "
                f"`lockstep delete {name}` ends it"
            )
        raise


def _is_job(res: Resource[AnyObject]) -> bool:
    return res.kind == TRAINING_JOBS.kind and res.group == TRAINING_JOBS.group


def _at(session: Session, obj: Json) -> Session:
    return replace(session, namespace=obj["metadata"].get("namespace") or session.namespace)


async def _put(
    session: Session, res: Resource[AnyObject], obj: Json, existing: Existing
) -> tuple[ObjectMeta, str]:
    """Create or apply one object; return its metadata and what was done."""
    if not _is_job(res):
        return await _apply(session, res, obj)
    here, name = _at(session, obj), obj["metadata"].get("name", "")
    if existing is not Existing.CHANGE:
        try:
            created = await here.client.create(res, obj, here.namespace)
        except AlreadyExists:
            # It came a moment ago.
            job = await here.find(TRAINING_JOBS, name)
            error = CommandFailed(f"job {name} came and went") if job is None else taken(job)
            raise error from None
        return created.metadata, "created"
    before = await here.find(TRAINING_JOBS, name) if name else None
    made, done = await _apply(session, res, obj)
    after = await here.find(TRAINING_JOBS, name) if before is not None else None
    if before is not None and after is not None:
        when = takes_effect(name, before.spec, after.spec)
        done = f"configured: {when}" if when else done
    return made, done


async def _apply(session: Session, res: Resource[AnyObject], obj: Json) -> tuple[ObjectMeta, str]:
    client = session.client
    metadata = obj.get("metadata", {})
    namespace = (metadata.get("namespace") or session.namespace) if res.namespaced else None
    name = metadata.get("name")
    if not name:
        created = await client.create(res, obj, namespace)
        return created.metadata, "created"
    before = await replace(session, namespace=namespace or "").find(res, name)
    after = await client.patch(
        res, name, obj, namespace, how=Patch.APPLY, field_manager=FIELD_MANAGER, force=True
    )
    if before is None:
        return after.metadata, "created"
    same = after.metadata.resource_version == before.metadata.resource_version
    return after.metadata, "unchanged" if same else "configured"


async def _ended_well(session: Session, name: str, *, follow: bool) -> bool:
    if follow:
        await follow_job(session, Request(name), from_start=True)
    said = ""
    while True:
        job = await session.client.get(TRAINING_JOBS, name, session.namespace)
        if (news := _news(job)) != said:
            note(news)
            said = news
        if ended(job):
            return job.status.phase == "Succeeded"
        await asyncio.sleep(LOOK_AGAIN)


def _news(job: TrainingJob) -> str:
    status = job.status
    return f"job {job.metadata.name} is {status.phase}" + (
        f": {status.message}" if status.message else ""
    )
