"""Sending objects to the API server, and waiting for what becomes of jobs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import msgspec

from lockstep.api.core import AnyObject
from lockstep.api.resource import Resource
from lockstep.api.simulated import pretends
from lockstep.api.training import TRAINING_JOBS, TrainingJob
from lockstep.api.wire import convert
from lockstep.cli import kinds
from lockstep.cli.connect import Session
from lockstep.cli.doubts import tell_doubts
from lockstep.cli.existing import Existing, job_of, make_way, taken, takes_effect
from lockstep.cli.failure import CommandFailed
from lockstep.cli.following import follow_job
from lockstep.cli.log_streams import Request
from lockstep.cli.output import note
from lockstep.cli.views.explain import NOT_EXECUTED
from lockstep.cli.views.jobs import ended
from lockstep.kube.client import Patch
from lockstep.kube.errors import AlreadyExists, NotFound

Json = dict[str, Any]

FIELD_MANAGER = "lockstep-submit"
LOOK_AGAIN = 0.3


async def send(
    session: Session,
    objects: Sequence[Json],
    *,
    wait: bool,
    follow: bool,
    existing: Existing = Existing.CHANGE,
) -> None:
    """Create the objects, or do with those that exist what *existing* says; then wait for the jobs.

    Raises:
        CommandFailed: when the server does not know a kind, the name of a job is taken, or a job
            that was waited for failed.
    """
    jobs: list[tuple[str, str]] = []
    sent: list[Json] = []
    resources = [await find_resource(session, o["apiVersion"], o["kind"]) for o in objects]
    for res, obj in zip(resources, objects, strict=True):
        if _is_job(res) and obj["metadata"].get("name"):
            await make_way(_at(session, obj), obj["metadata"]["name"], existing)
    for res, obj in zip(resources, objects, strict=True):
        name, done = await _put(session, res, obj, existing)
        # What follows on standard output are the job's own lines.
        told = sys.stderr if follow else sys.stdout
        print(f"{kinds.short_name(res)}/{name} {done}", flush=True, file=told)
        sent.append({**obj, "metadata": {**obj["metadata"], "name": name}})
        if _is_job(res):
            jobs.append((obj["metadata"].get("namespace") or session.namespace, name))
            if pretends(convert(obj, TrainingJob)):
                note(f"job {name} is {NOT_EXECUTED}")
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


async def find_resource(session: Session, api_version: str, kind: str) -> Resource[AnyObject]:
    """Return the resource that the server serves for a kind.

    Raises:
        CommandFailed: when it serves none.
    """
    group, _, version = api_version.rpartition("/")
    path = f"/apis/{group}/{version}" if group else f"/api/{version}"
    try:
        served = msgspec.json.decode(await session.client.get_raw(path))["resources"]
    except NotFound:
        served = []
    for entry in served:
        if entry["kind"] == kind and "/" not in entry["name"]:
            return Resource(group, version, entry["name"], kind, entry["namespaced"], AnyObject)
    raise CommandFailed(
        f"the API server does not serve {kind} in {api_version}",
        "`lockstep manifests crds | kubectl apply -f -` adds our kinds to a cluster",
    )


def _is_job(res: Resource[AnyObject]) -> bool:
    return res.kind == TRAINING_JOBS.kind and res.group == TRAINING_JOBS.group


def _at(session: Session, obj: Json) -> Session:
    return replace(session, namespace=obj["metadata"].get("namespace") or session.namespace)


async def _put(
    session: Session, res: Resource[AnyObject], obj: Json, existing: Existing
) -> tuple[str, str]:
    """Create or apply one object; return its name and what was done."""
    if not _is_job(res):
        return await _apply(session, res, obj)
    here, name = _at(session, obj), obj["metadata"].get("name", "")
    if existing is not Existing.CHANGE:
        try:
            made = await here.client.create(res, obj, here.namespace)
        except AlreadyExists:
            # It came a moment ago.
            job = await job_of(here, name)
            error = CommandFailed(f"job {name} came and went") if job is None else taken(job)
            raise error from None
        return made.metadata.name, "created"
    before = await job_of(here, name) if name else None
    name, done = await _apply(session, res, obj)
    after = await job_of(here, name) if before is not None else None
    if before is not None and after is not None:
        when = takes_effect(name, before.spec, after.spec)
        done = f"configured: {when}" if when else done
    return name, done


async def _apply(session: Session, res: Resource[AnyObject], obj: Json) -> tuple[str, str]:
    client = session.client
    metadata = obj.get("metadata", {})
    namespace = (metadata.get("namespace") or session.namespace) if res.namespaced else None
    name = metadata.get("name")
    if not name:
        created = await client.create(res, obj, namespace)
        return created.metadata.name, "created"
    try:
        before = await client.get(res, name, namespace)
        version = before.metadata.resource_version
    except NotFound:
        version = ""
    after = await client.patch(
        res, name, obj, namespace, how=Patch.APPLY, field_manager=FIELD_MANAGER, force=True
    )
    if not version:
        return name, "created"
    return name, "unchanged" if after.metadata.resource_version == version else "configured"


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
