"""What the commands about pipelines do with the server."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

from lockstep.api import timestamp
from lockstep.api.core import CONFIG_MAPS, PODS, Pod
from lockstep.api.names import JOB_LABEL
from lockstep.api.pipeline import KEPT_LABEL, PIPELINE_RUNS, RUN_LABEL, PipelineRun, StepStatus
from lockstep.api.pipeline_trigger import PIPELINE_TRIGGERS
from lockstep.api.price_list import PRICE_LISTS
from lockstep.cli.connect import Session
from lockstep.cli.failure import BadInput, CommandFailed
from lockstep.cli.output import print_lines
from lockstep.cli.up.parts import RECORDS
from lockstep.cli.usage_records import usage_of
from lockstep.cli.views import pipelines
from lockstep.cli.views.table import plain
from lockstep.insight.cost import billing, prices
from lockstep.kube.errors import NotFound
from lockstep.kube.locate import embedded_data
from lockstep.pipelines.core.record import steps_of

Json = dict[str, Any]

_OVER = frozenset({"Succeeded", "Failed", "Stopped"})
_POLL = 0.1


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
    while (found := await _get(session, name)).status.phase not in _OVER:
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


async def make_trigger(session: Session, body: Json) -> None:
    """Create what makes a run for each new version."""
    made = await session.client.create(PIPELINE_TRIGGERS, body, session.namespace)
    print(f"pipelinetrigger/{made.metadata.name} created", flush=True)


async def _get(session: Session, name: str) -> PipelineRun:
    try:
        return await session.client.get(PIPELINE_RUNS, name, session.namespace)
    except NotFound:
        raise CommandFailed(f"there is no run {name}", hint="lockstep pipeline list") from None


async def describe(session: Session, name: str, records: Path | None = None) -> None:
    """Print the graph of a run; *records* is the file of usage records, if not the usual one."""
    found = await _get(session, name)
    steps = _steps(found)
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
    path = records or embedded_data() / RECORDS
    began = run.status.started_at
    if began is None or (records is None and not path.is_file()):
        return {}
    known, wrong = prices.read((await session.client.list(PRICE_LISTS)).items)
    if wrong:
        raise CommandFailed("; ".join(str(one) for one in wrong))
    usage = usage_of(path, known, timestamp.parse(began), now)
    found: dict[str, str] = {}
    for by in ("pod", "job"):
        groups = ("namespace", by)
        bill = billing.bill(
            usage.nodes, usage.claims, known, by=groups, start=usage.start, end=usage.end
        )
        for (space, name), line in bill.lines.items():
            if space == run.metadata.namespace and name:
                money = f"{line.cost:.2f} {known.currency}".strip()
                hours = f"{line.gpu_hours:.3g} GPU h"
                found[name] = hours if line.unpriced_gpu_hours else f"{money} ({hours})"
    return found


def _steps(run: PipelineRun) -> dict[str, StepStatus]:
    try:
        return steps_of(run.status)
    except ValueError as error:
        raise CommandFailed(f"run {run.metadata.name}: {error}") from error


async def logs(session: Session, name: str, step: str | None) -> None:
    """Print the logs of a run's pods, each under its step's name.

    Raises:
        CommandFailed: when no step of that name has a pod.
    """
    found = _steps(await _get(session, name))
    chosen = {
        place: one
        for place, one in found.items()
        if one.kind == "Pod" and one.object and step in (None, place, one.name)
    }
    if not chosen:
        what = "no step has a pod" if step is None else f"no step {step} has a pod"
        raise CommandFailed(f"run {name}: {what}", hint=f"lockstep pipeline describe {name}")
    for place, one in chosen.items():
        if len(chosen) > 1:
            print(f"== {place} ({one.object})", flush=True)
        try:
            async for data in session.client.logs(session.namespace, one.object, container="main"):
                sys.stdout.buffer.write(data)
            sys.stdout.flush()
        except NotFound:
            print(f"the pod {one.object} is gone", file=sys.stderr)


async def change(session: Session, name: str, spec: Json, done: str) -> None:
    """Change the spec of a run that is not over."""
    found = await _get(session, name)
    if found.status.phase in _OVER:
        raise CommandFailed(f"run {name} is over: {found.status.phase}")
    await session.client.patch(PIPELINE_RUNS, name, {"spec": spec}, session.namespace)
    print(f"pipeline/{name} {done}")


async def resume(session: Session, name: str, step: str | None) -> None:
    """Let a run or its suspended steps go on."""
    found = await _get(session, name)
    if step is not None:
        suspended = [
            place
            for place, one in _steps(found).items()
            if one.kind == "Suspend" and one.phase == "Running" and step in (place, one.name)
        ]
        if not suspended:
            raise CommandFailed(f"run {name}: step {step} is not suspended")
        spec: Json = {"resumed": sorted({*found.spec.resumed, *suspended})}
    else:
        waiting = [
            place
            for place, one in _steps(found).items()
            if one.kind == "Suspend" and one.phase == "Running"
        ]
        spec = {"desired": "Running", "resumed": sorted({*found.spec.resumed, *waiting})}
    await change(session, name, spec, "resumed")


async def retry(session: Session, name: str) -> None:
    """Run again what has not succeeded."""
    found = await _get(session, name)
    if found.status.phase not in ("Failed", "Stopped"):
        raise CommandFailed(f"run {name} is {found.status.phase}: only what failed is run again")
    spec = {"retries": found.spec.retries + 1, "desired": "Running"}
    await session.client.patch(PIPELINE_RUNS, name, {"spec": spec}, session.namespace)
    print(f"pipeline/{name} is run again")


async def list_kept(session: Session) -> None:
    """Print the kept results of the namespace."""
    found = await session.client.list(
        CONFIG_MAPS, session.namespace, label_selector=f"{KEPT_LABEL}=true"
    )
    print(plain(pipelines.kept(found.items, time.time())))


async def forget(session: Session, names: list[str], *, every: bool) -> None:
    """Delete kept results.

    Raises:
        BadInput: when neither names nor all are given.
        CommandFailed: when a name is not that of a kept result.
    """
    if every == bool(names):
        raise BadInput("give names of kept results, or --all")
    found = await session.client.list(
        CONFIG_MAPS, session.namespace, label_selector=f"{KEPT_LABEL}=true"
    )
    there = {one.metadata.name for one in found.items}
    if missing := [one for one in names if one not in there]:
        raise CommandFailed(f"no kept result: {', '.join(missing)}")
    for name in names or sorted(there):
        await session.client.delete(CONFIG_MAPS, name, session.namespace)
        print(f"{name} forgotten")


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
