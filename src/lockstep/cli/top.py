"""``top``: what nodes, GPUs, pods, queues and jobs use, now or from now on."""

from __future__ import annotations

import asyncio
import csv
import io
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from enum import StrEnum
from typing import Annotated, Literal, TypeVar

from lockstep.api.core import LEASES, NODES, PODS
from lockstep.api.device_usage import DEVICE_USAGES, DeviceUsage
from lockstep.api.gang import GANGS
from lockstep.api.names import JOB_LABEL
from lockstep.api.queue import QUEUES
from lockstep.api.resource import Resource
from lockstep.api.training import TRAINING_JOBS
from lockstep.api.wire import Wire
from lockstep.cli import connect
from lockstep.cli.app import App
from lockstep.cli.connect import Session, run
from lockstep.cli.failure import BadInput
from lockstep.cli.naming import job_of
from lockstep.cli.options import Cluster, Watch
from lockstep.cli.output import Format, encode, note, print_table
from lockstep.cli.views import devices, ranks
from lockstep.cli.views.devices import share_table
from lockstep.cli.views.nodes import node_table
from lockstep.cli.views.records import records
from lockstep.cli.views.table import NONE, Table
from lockstep.cli.views.top import summary, top_jobs, top_queues
from lockstep.kube.errors import NotFound
from lockstep.kube.named import in_all_or_own, readable

app = App()

T = TypeVar("T", bound=Wire)
EVERY = 2.0
"""Seconds between two pictures with ``--watch``."""
CLEAR = "\x1b[H\x1b[2J"

Printed = Literal["table", "wide", "json", "yaml", "csv"]
Picture = tuple[Table, str, str]
"""A table, the line below it, and what to say when there is nothing."""


class Subject(StrEnum):
    """What ``top`` shows."""

    NODES = "nodes"
    GPUS = "gpus"
    PODS = "pods"
    SHARES = "shares"
    QUEUES = "queues"
    JOBS = "jobs"
    PROCESSES = "processes"


FILTERED = (Subject.GPUS, Subject.PODS, Subject.SHARES)


@app.command()
def top(
    what: Annotated[
        str,
        "[nodes|gpus|pods|shares|queues|jobs|processes|JOB]",
        "What to sum up by; or a job, whose ranks are shown.",
    ] = Subject.NODES,
    *,
    output: Annotated[Printed, "--output", "-o", "How to print it."] = "table",
    queue: Annotated[str, "GPUs and pods of this queue alone."] = "",
    job: Annotated[str, "GPUs and pods of this job alone."] = "",
    local: Annotated[
        bool, "--local", "This machine's GPUs or processes, without any cluster."
    ] = False,
    watch: Watch = False,
    namespace: Annotated[
        str | None, "--namespace", "-n", "Namespace; that of the context by default."
    ] = None,
    all_namespaces: Annotated[bool, "--all-namespaces", "-A", "In every namespace."] = True,
    target: Cluster,
) -> None:
    """Show how many GPUs nodes, queues or jobs use, what each GPU does, how a job's ranks step.

    \b
    Examples:
      lockstep top
      lockstep top gpus --watch
      lockstep top digits --watch
      lockstep top shares
      lockstep top pods --queue research -o csv
      lockstep top --local
      lockstep top processes --local
    """
    subject = Subject(what) if what in list(Subject) else None
    only = devices.Filter(queue, job)
    if only != devices.Filter() and subject not in FILTERED:
        raise BadInput(
            "--queue and --job choose among gpus, pods and shares: lockstep top gpus --queue Q"
        )
    if local:
        if subject not in (Subject.NODES, Subject.GPUS, Subject.PROCESSES):
            raise BadInput(
                f"--local shows this machine's GPUs and processes, not {subject or what}"
            )
        _local(output, processes=subject is Subject.PROCESSES, watch=watch)
        return
    if subject is Subject.PROCESSES:
        raise BadInput("processes are seen on their machine: lockstep top processes --local")
    named = namespace or connect.before_command.namespace
    everywhere = subject is not None and all_namespaces and named is None
    where = replace(target, namespace=named, all_namespaces=everywhere)

    def look(session: Session) -> Awaitable[Picture]:
        return _ranks(session, what) if subject is None else _picture(session, subject, only)

    run(where, lambda session: _follow(lambda: look(session), output, watch=watch))


async def _follow(look: Callable[[], Awaitable[Picture]], output: Printed, *, watch: bool) -> None:
    while True:
        shown, line, empty = await look()
        _show(shown, line, empty, output, clear=watch)
        if not watch:
            return
        await asyncio.sleep(EVERY)


async def _ranks(session: Session, name: str) -> Picture:
    """Return the ranks of a job, as their launchers report them."""
    client, namespace = session.client, session.namespace
    try:
        name = await job_of(session, name)
        job = await client.get(TRAINING_JOBS, name, namespace)
    except NotFound:
        kinds = ", ".join(Subject)
        raise BadInput(
            f"there is no job {name} in the namespace {namespace}",
            f"name a job (lockstep list), or one of {kinds}",
        ) from None
    selector = f"{JOB_LABEL}={name}"
    leases, pods = await asyncio.gather(
        client.list(LEASES, namespace, label_selector=selector),
        client.list(PODS, namespace, label_selector=selector),
    )
    shown = ranks.rank_table(job, leases.items, pods.items, time.time())
    return shown, ranks.summary(job, time.time()), "no rank of it runs"


async def _everywhere(session: Session, res: Resource[T]) -> list[T]:
    if not session.all_namespaces:
        return list((await session.client.list(res, session.scope(res))).items)
    return await in_all_or_own(session.client, res, session.namespace)


async def _picture(session: Session, subject: Subject, only: devices.Filter) -> Picture:
    """Return the table, the line below it, and what to say when there is nothing."""
    client = session.client
    if subject is Subject.QUEUES:
        queues, gangs, pods = await asyncio.gather(
            readable(client, QUEUES),
            _everywhere(session, GANGS),
            _everywhere(session, PODS),
        )
        return top_queues(queues, gangs, pods), "", "no queues"
    found, usages = await asyncio.gather(client.list(PODS, session.scope(PODS)), _usages(session))
    if subject is Subject.JOBS:
        return top_jobs(found.items), "", "no pods"
    if subject is Subject.NODES:
        nodes = (await client.list(NODES)).items
        lines = [summary(nodes, found.items), devices.summary(usages)]
        return node_table(nodes, found.items, time.time()), "\n".join(filter(None, lines)), ""
    holders = devices.by_name(found.items)
    if subject is Subject.SHARES:
        return share_table(usages, holders, only), "", "no pod has a share of a GPU"
    build = devices.gpu_table if subject is Subject.GPUS else devices.pod_table
    return build(usages, holders, only), "", "no GPU that a node agent watches"


async def _usages(session: Session) -> list[DeviceUsage]:
    try:
        return (await session.client.list(DEVICE_USAGES)).items
    except NotFound:  # a cluster whose kinds are older than this program
        return []


def _show(shown: Table, line: str, empty: str, output: Printed, *, clear: bool) -> None:
    if output in ("json", "yaml", "csv"):
        print(_encoded(shown, output), end="", flush=True)
        return
    if clear and sys.stdout.isatty():
        print(CLEAR, end="")
    if empty and not shown.rows:
        note(empty)
    else:
        print_table(shown, Format(output), empty="no nodes")
    if line:
        print(line)


def _encoded(shown: Table, output: Printed) -> str:
    if output != "csv":
        return encode(records(shown), Format(output))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([column.name for column in shown.columns])
    writer.writerows([None if cell == NONE else cell for cell in row] for row in shown.rows)
    return text.getvalue()


def _local(output: Printed, *, processes: bool, watch: bool) -> None:
    """Show the GPUs that NVML reports on this machine, or the processes on them."""
    from lockstep.cli.top_local import pictures

    for shown, line, empty in pictures(processes=processes):
        _show(shown, line, empty, output, clear=watch)
        if not watch:
            return
        time.sleep(EVERY)
