"""``explain`` and ``top``: why things wait, and who uses what."""

from __future__ import annotations

import asyncio
import time
from enum import StrEnum
from typing import Annotated

import typer

from lockstep.api.core import NODES, PODS
from lockstep.api.gang import GANGS, Gang
from lockstep.api.queue import QUEUES
from lockstep.api.training import TRAINING_JOBS
from lockstep.cli import kinds
from lockstep.cli.connect import Session, Target, run
from lockstep.cli.failure import CommandFailed
from lockstep.cli.listing import find_gang
from lockstep.cli.options import (
    AllNamespaces,
    Context,
    Kubeconfig,
    Named,
    Namespace,
    Output,
)
from lockstep.cli.output import Format, print_lines, print_table
from lockstep.cli.usage import usage
from lockstep.cli.views.explain import explain_gang, explain_job, explain_pod
from lockstep.cli.views.nodes import node_table
from lockstep.cli.views.top import summary, top_jobs, top_queues
from lockstep.kube.errors import NotFound

app = typer.Typer(rich_markup_mode=None)

PATIENCE = 3.0
"""Seconds that a gang just submitted may take to be looked at before that itself is the answer."""
UNDECIDED = ("", "MembersMissing")
"""Reasons of gangs that are about to get another: their pods are still being made."""


class Subject(StrEnum):
    """What ``top`` sums up by."""

    NODES = "nodes"
    QUEUES = "queues"
    JOBS = "jobs"


@app.command()
def explain(
    name: Named,
    *,
    layout: Annotated[
        bool, typer.Option("--layout", help="Draw which ranks are on which node, and the cost.")
    ] = False,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Say why a job, a gang or a pod waits, and what would change it.

    NAME alone is a job, or the gang of that name where there is no such job.

    \b
    Examples:
      lockstep explain digits
      lockstep explain gang/g1
      lockstep explain llm --layout
    """
    with usage("NAME"):
        wanted = kinds.reference(name)
        if wanted.kind not in ("job", "gang", "pod"):
            raise ValueError(f"{wanted} does not wait; explain takes a job, a gang or a pod")
    plain = "/" not in name
    target = Target(kubeconfig, context, namespace)
    if layout:
        # The scheduler's arrays take longer to load than all the rest that explain needs.
        from lockstep.cli.layout import layout_of

        print_lines(run(target, lambda session: layout_of(session, wanted.name)))
        return
    lines = run(target, lambda s: _explain(s, wanted, plain))
    print_lines(lines)


@app.command()
def top(
    subject: Annotated[Subject, typer.Argument(help="What to sum up by.")] = Subject.NODES,
    *,
    output: Output = Format.TABLE,
    namespace: Namespace = None,
    all_namespaces: AllNamespaces = True,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show how many GPUs nodes, queues or jobs use, and how many are free.

    \b
    Examples:
      lockstep top
      lockstep top jobs
    """
    with usage("--output"):
        if output not in (Format.TABLE, Format.WIDE):
            raise ValueError("top prints tables only: table or wide")
    everywhere = all_namespaces and namespace is None
    target = Target(kubeconfig, context, namespace, everywhere)
    run(target, lambda session: _top(session, subject, output))


async def _looked_at(session: Session, name: str) -> Gang | None:
    """Return the gang; one that is new only once the scheduler has said something about it."""
    deadline = time.monotonic() + PATIENCE
    while True:
        gang = await find_gang(session, name)
        new = gang is not None and gang.status.phase == "Pending"
        if gang is None or not new or gang.status.reason not in UNDECIDED:
            return gang
        if time.monotonic() > deadline:
            return gang
        await asyncio.sleep(0.1)


async def _explain(session: Session, wanted: kinds.Reference, plain: bool) -> list[str]:
    client, now = session.client, time.time()
    if wanted.kind == "pod":
        return explain_pod(await client.get(PODS, wanted.name, session.namespace), now)
    gang = await _looked_at(session, wanted.name)
    if wanted.kind == "job":
        try:
            job = await client.get(TRAINING_JOBS, wanted.name, session.namespace)
        except NotFound:
            if gang is None or not plain:
                raise
        else:
            return explain_job(job, gang, now)
    if gang is None:
        raise CommandFailed(
            f"there is no gang {wanted.name!r} in namespace {session.namespace}",
            "`lockstep list gangs` shows what there is; -n chooses the namespace",
        )
    return explain_gang(gang, now)


async def _top(session: Session, subject: Subject, output: Format) -> None:
    client = session.client
    pods = (await client.list(PODS, session.scope(PODS))).items
    if subject is Subject.JOBS:
        print_table(top_jobs(pods), output, empty="no pods")
        return
    if subject is Subject.QUEUES:
        queues, gangs = await asyncio.gather(
            client.list(QUEUES), client.list(GANGS, session.scope(GANGS))
        )
        print_table(top_queues(queues.items, gangs.items, pods), output, empty="no queues")
        return
    nodes = (await client.list(NODES)).items
    print_table(node_table(nodes, pods, time.time()), output, empty="no nodes")
    print(summary(nodes, pods))
