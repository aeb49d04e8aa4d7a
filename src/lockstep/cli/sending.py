"""Sending objects to the API server, and waiting for what becomes of jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec

from lockstep.api.core import AnyObject
from lockstep.api.resource import Resource
from lockstep.api.training import TRAINING_JOBS, TrainingJob
from lockstep.cli import kinds
from lockstep.cli.connect import Session
from lockstep.cli.failure import CommandFailed
from lockstep.cli.logs import Request, follow_job
from lockstep.cli.output import note
from lockstep.cli.views.jobs import ended
from lockstep.kube.client import Patch
from lockstep.kube.errors import NotFound

Json = dict[str, Any]

FIELD_MANAGER = "lockstep-submit"
LOOK_AGAIN = 0.3


async def send(session: Session, objects: Sequence[Json], *, wait: bool, follow: bool) -> None:
    """Create the objects, or apply those that exist; then wait for the jobs among them.

    Raises:
        CommandFailed: when the server does not know a kind, or a job that was waited for failed.
    """
    jobs: list[tuple[str, str]] = []
    for obj in objects:
        res = await find_resource(session, obj["apiVersion"], obj["kind"])
        name, done = await _apply(session, res, obj)
        print(f"{kinds.short_name(res)}/{name} {done}", flush=True)
        if res.kind == TRAINING_JOBS.kind and res.group == TRAINING_JOBS.group:
            jobs.append((obj["metadata"].get("namespace") or session.namespace, name))
    if follow or wait:
        failed = [
            name
            for namespace, name in jobs
            if not await _ended_well(replace(session, namespace=namespace), name, follow=follow)
        ]
        if failed:
            raise CommandFailed(
                f"job {', '.join(failed)} failed", f"lockstep describe {failed[0]} shows how"
            )


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
        await follow_job(session, Request(name))
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
