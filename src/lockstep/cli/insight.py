"""``explain``: why things wait."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated

from lockstep.api.core import PODS, Pod
from lockstep.api.dataset_cache import DATASET_CACHES
from lockstep.api.gang import GANGS, Gang
from lockstep.api.job_record import JobRecord, closed
from lockstep.api.node_health import NODE_HEALTHS, slow_network
from lockstep.api.training import TRAINING_JOBS, TrainingJob
from lockstep.cli import kinds
from lockstep.cli.app import App
from lockstep.cli.completion import OneNamed
from lockstep.cli.connect import Session, run
from lockstep.cli.failure import CommandFailed, usage
from lockstep.cli.gone_jobs import job_or_record, was_deleted
from lockstep.cli.naming import resolve_one
from lockstep.cli.options import Namespaced, Output
from lockstep.cli.output import Format, print_lines, show
from lockstep.cli.views.explain import (
    claims_within,
    data_lines,
    explain_deleted,
    explain_gang,
    explain_job,
    explain_pod,
    facts,
)
from lockstep.cli.views.jobs import ended
from lockstep.cli.views.network import slow_lines
from lockstep.kube.errors import Forbidden, NotFound
from lockstep.kube.silent_parts import CARRY, warnings

app = App()

PATIENCE = 3.0
"""Seconds that a gang just submitted may take to be looked at before that itself is the answer."""
UNDECIDED = ("", "MembersMissing")
"""Reasons of gangs that are about to get another: their pods are still being made."""


@app.command()
def explain(
    name: OneNamed,
    *,
    output: Output = Format.TABLE,
    layout: Annotated[
        bool, "--layout", "Draw which ranks are on which node, and the cost."
    ] = False,
    network: Annotated[
        bool, "--network", "Say what ranks should be told of the network, and why."
    ] = False,
    target: Namespaced,
) -> None:
    """Say why a job, a gang or a pod waits, and what would change it.

    NAME alone is a job, or the gang of that name where there is no such job.

    \b
    Examples:
      lockstep explain digits
      lockstep explain gang/g1
      lockstep explain llm --layout
      lockstep explain llm --network
    """
    with usage("NAME"):
        wanted = kinds.single(name)
        if wanted.kind not in ("job", "gang", "pod"):
            raise ValueError(f"{wanted} does not wait; explain takes a job, a gang or a pod")
    plain = len(name) == 1 and "/" not in name[0]
    if layout:
        # The scheduler's arrays take longer to load than all the rest that explain needs.
        from lockstep.cli.layout import layout_of

        print_lines(run(target, lambda session: layout_of(session, wanted.name)))
        return
    if network:
        from lockstep.cli import network_explain

        found = run(target, lambda session: network_explain.network_of(session, wanted.name))
        show(network_explain.tree(found), network_explain.lines(found), output)
        return
    meant, lines, subject = run(target, lambda s: _explained(s, wanted, plain))
    show({"name": str(meant), "lines": lines, **facts(subject)}, lines, output)


async def _data(session: Session, claims: list[str]) -> list[str]:
    """Return what share of each dataset among *claims* each node has."""
    if not claims:
        return []
    try:
        caches = (await session.client.list(DATASET_CACHES, session.namespace)).items
    except NotFound:
        return []
    return [line for claim in claims for line in data_lines(claim, caches)]


async def _slow(session: Session, gang: Gang | None) -> list[str]:
    """Return which nodes the scheduler takes last because of their network, and why."""
    if gang is None:
        return []
    try:
        healths = (await session.client.list(NODE_HEALTHS)).items
    except (NotFound, Forbidden):
        return []
    return slow_lines({one.metadata.name: slow_network(one) for one in healths})


async def _looked_at(session: Session, name: str) -> Gang | None:
    """Return the gang; one that is new only once the scheduler has said something about it."""
    deadline = time.monotonic() + PATIENCE
    while True:
        gang = await session.find(GANGS, name)
        new = gang is not None and gang.status.phase == "Pending"
        if gang is None or not new or gang.status.reason not in UNDECIDED:
            return gang
        if time.monotonic() > deadline:
            return gang
        await asyncio.sleep(0.1)


async def _explained(
    session: Session, wanted: kinds.Reference, plain: bool
) -> tuple[kinds.Reference, list[str], TrainingJob | Gang | Pod]:
    """Return what *wanted* stands for, and why it waits, after the parts that do not run."""
    silent = asyncio.create_task(warnings(session.client, CARRY))
    meant = await resolve_one(session, wanted)
    lines, subject = await _explain(session, meant, plain)
    return meant, [*await silent, *lines], subject


async def _explain(
    session: Session, wanted: kinds.Reference, plain: bool
) -> tuple[list[str], TrainingJob | Gang | Pod]:
    client, now = session.client, time.time()
    if wanted.kind == "pod":
        pod = await client.get(PODS, wanted.name, session.namespace)
        claims = [one.claim for one in pod.spec.volumes if one.claim]
        return [*explain_pod(pod, now), *await _data(session, claims)], pod
    gang = await _looked_at(session, wanted.name)
    if wanted.kind == "job":
        job = await session.find(TRAINING_JOBS, wanted.name)
        if job is not None:
            waiting = gang is not None and not ended(job)
            lines = [*explain_job(job, gang, now), *await _data(session, claims_within(job))]
            lines += await _slow(session, gang)
            return lines, gang if gang is not None and waiting else job
        if gang is None or not plain:
            found = await job_or_record(session, wanted.name)
            if isinstance(found, JobRecord):
                return [was_deleted(found), *explain_deleted(closed(found), now)], closed(found)
    if gang is None:
        raise CommandFailed(
            f"there is no gang {wanted.name!r} in namespace {session.namespace}",
            "`lockstep list gangs` shows what there is; -n chooses the namespace",
        )
    return [*explain_gang(gang, now), *await _slow(session, gang)], gang
