"""What the commands about pipelines do with the server."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

from lockstep.api import timestamp
from lockstep.api.core import PODS, Pod
from lockstep.api.names import JOB_LABEL
from lockstep.api.pipeline import KEPT_LOGS, PIPELINE_RUNS, RUN_LABEL, PipelineRun, StepStatus
from lockstep.api.price_list import PRICE_LISTS
from lockstep.api.usage_query import Group, UsageQuerySpec
from lockstep.api.wire import Json
from lockstep.cli.connect import Session
from lockstep.cli.failure import CommandFailed
from lockstep.cli.output import print_lines
from lockstep.cli.usage_records import usage_of
from lockstep.cli.views import pipelines
from lockstep.insight.cost import billing, prices
from lockstep.insight.cost.billing import Line
from lockstep.kube.errors import Forbidden, NotFound
from lockstep.kube.kept_logs import KeptLog, kept_logs
from lockstep.kube.usage import NoAnswer, ask
from lockstep.pipelines.core.pods import object_name
from lockstep.pipelines.core.record import steps_of

OVER = frozenset({"Succeeded", "Failed", "Stopped"})
_POLL = 0.1
COST_PATIENCE = 2.0
"""Seconds for which costs are waited for, which are left out where no recorder runs."""


async def start(session: Session, body: Json, wait: float | None) -> None:
    """Create a run; with *wait* return when it is over.

    Raises:
        CommandFailed: when it does not succeed, or lasts longer than *wait* seconds.
    """
    made = await session.client.create(PIPELINE_RUNS, body, session.namespace)
    name = made.metadata.name
    print(f"pipeline/{name} created", flush=True)
    if wait is None:
        return
    until = time.monotonic() + wait
    while (found := await run_of(session, name)).status.phase not in OVER:
        if time.monotonic() > until:
            raise CommandFailed(f"pipeline/{name} is not over after {wait:g} s")
        await asyncio.sleep(_POLL)
    status = found.status
    if status.phase != "Succeeded":
        raise CommandFailed(
            f"pipeline/{name} {status.phase.lower()}: {status.message}",
            hint=f"lockstep pipeline describe {name}",
        )
    print(f"pipeline/{name} succeeded")
    for key, value in sorted(status.outputs.items()):
        print(f"{key} = {json.dumps(value, ensure_ascii=False)}")


async def run_of(session: Session, name: str) -> PipelineRun:
    """Return a run; a CommandFailed where there is none of this name."""
    return await session.get(PIPELINE_RUNS, name, "run", "lockstep pipeline list")


async def describe(session: Session, name: str, records: Path | None = None) -> None:
    """Print the graph of a run; *records* is the file of usage records, if not the usual one."""
    found = await run_of(session, name)
    steps = steps_in(found)
    jobs = {one.object.partition("/")[2] for one in steps.values() if "/" in one.object}
    pods = await _labelled(session, f"{RUN_LABEL}={found.metadata.name}")
    if jobs:
        pods += await _labelled(session, f"{JOB_LABEL} in ({', '.join(sorted(jobs))})")
    now = time.time()
    costs = await _costs(session, found, records, now)
    shown = pipelines.describe(found, steps, now, pipelines.waited(pods, now), costs)
    print_lines(shown)


async def _labelled(session: Session, label: str) -> list[Pod]:
    return list((await session.client.list(PODS, session.namespace, label_selector=label)).items)


async def _costs(
    session: Session, run: PipelineRun, records: Path | None, now: float
) -> dict[str, str]:
    """Return by pod and by job what it cost since *run* began; nothing without records."""
    began = run.status.started_at
    if began is None:
        return {}
    if records is not None:
        return await _costs_of_file(session, run, records, (timestamp.parse(began), now))
    found: dict[str, str] = {}
    by: Group
    for by in ("pod", "job"):
        spec = UsageQuerySpec(by=["namespace", by], start=began)
        try:
            told = await ask(session.client, run.metadata.namespace, spec, COST_PATIENCE)
        except (NoAnswer, Forbidden):
            return {}
        for line in told.lines:
            amounts = Line(line.gpu_hours, line.cost, line.unpriced_gpu_hours)
            found[line.key[1]] = _money(amounts, told.currency)
    return found


async def _costs_of_file(
    session: Session, run: PipelineRun, records: Path, period: tuple[float, float]
) -> dict[str, str]:
    known, wrong = prices.read((await session.client.list(PRICE_LISTS)).items)
    if wrong:
        raise CommandFailed("; ".join(str(one) for one in wrong))
    usage = usage_of(records, known, *period)
    found: dict[str, str] = {}
    for by in ("pod", "job"):
        groups = ("namespace", by)
        bill = billing.bill(
            usage.nodes, usage.claims, known, by=groups, start=usage.start, end=usage.end
        )
        for (space, name), line in bill.lines.items():
            if space == run.metadata.namespace and name:
                found[name] = _money(line, known.currency)
    return found


def _money(line: Line, currency: str) -> str:
    hours = f"{line.gpu_hours:.3g} GPU h"
    return (
        hours if line.unpriced_gpu_hours else f"{line.cost:.2f} {currency}".strip() + f" ({hours})"
    )


def steps_in(run: PipelineRun) -> dict[str, StepStatus]:
    """Return the steps of a run by their places; a CommandFailed where they cannot be read."""
    try:
        return steps_of(run.status)
    except ValueError as error:
        raise CommandFailed(f"run {run.metadata.name}: {error}") from error


async def logs(session: Session, name: str, step: str | None) -> None:
    """Print the logs of a run's pods, each try under its step's name, also of pods that are gone.

    Raises:
        CommandFailed: when no step of that name has a pod.
    """
    found = await run_of(session, name)
    chosen = {
        place: one
        for place, one in steps_in(found).items()
        if one.kind == "Pod" and one.object and step in (None, place, one.name)
    }
    if not chosen:
        what = "no step has a pod" if step is None else f"no step {step} has a pod"
        raise CommandFailed(f"run {name}: {what}", hint=f"lockstep pipeline describe {name}")
    group = KEPT_LOGS.format(name)
    held = {one.pod: one for one in await kept_logs(session.client, session.namespace, group)}
    tries = [
        (place, one, attempt) for place, one in chosen.items() for attempt in range(one.attempt + 1)
    ]
    for place, one, attempt in tries:
        meta = found.metadata
        pod = object_name(meta.name, meta.uid, place, attempt) if one.attempt else one.object
        if len(tries) > 1:
            which = f", try {attempt + 1} of {one.attempt + 1}" if one.attempt else ""
            print(f"== {place} ({pod}{which})", flush=True)
        await _log(session, pod, held.get(pod))


async def _log(session: Session, pod: str, kept: KeptLog | None) -> None:
    """Print the log of a pod; where it is gone, the one that its node keeps."""
    node, uid = (kept.node, kept.uid) if kept is not None and kept.ended else ("", "")
    read = session.client.logs(session.namespace, pod, container="main", node=node, uid=uid)
    try:
        async for data in read:
            sys.stdout.buffer.write(data)
        sys.stdout.flush()
    except NotFound:
        print(f"the pod {pod} is gone and its node keeps no log of it", file=sys.stderr)


async def serve(session: Session, port: int, defaults: Json) -> None:
    """Serve the REST face of Kubeflow Pipelines on loopback until interrupted.

    Raises:
        CommandFailed: when the port is taken.
    """
    from aiohttp import web

    from lockstep.pipelines.rest import Face

    runner = web.AppRunner(Face(session.client, session.namespace, defaults).app())
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", port)
        try:
            await site.start()
        except OSError as error:
            raise CommandFailed(f"port {port}: {error.strerror}", hint="--port chooses") from error
        print(f"ready http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()
