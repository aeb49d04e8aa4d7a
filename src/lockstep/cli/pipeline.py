"""``lockstep pipeline``: run graphs of steps, see how they do, stop and repeat them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from lockstep.api.core import CONFIG_MAPS, ConfigMap
from lockstep.api.pipeline import KEPT_LABEL, PIPELINE_RUNS
from lockstep.api.pipeline_trigger import PIPELINE_TRIGGERS
from lockstep.cli import pipeline_file, pipeline_work
from lockstep.cli.app import App, AtLeast
from lockstep.cli.choice import Choice
from lockstep.cli.connect import InNamespace, Session
from lockstep.cli.failure import BadInput, CommandFailed
from lockstep.cli.listing import list_all
from lockstep.cli.options import Output
from lockstep.cli.output import Format
from lockstep.cli.usage_records import RecordsFile
from lockstep.cli.views import pipelines
from lockstep.cli.views.table import plain

app = App("Pipelines: graphs of steps, each a pod or a job in a queue.")

Name = Annotated[str, "Name of the run."]
File = Annotated[
    Path,
    typer.Argument(
        help="What kfp's compiler wrote, an Argo Workflow, or a PipelineRun.", exists=True
    ),
]
Parameters = Annotated[list[str] | None, "-p", "--parameter", "NAME=VALUE", "May be repeated."]
Root = Annotated[str | None, "Where artefacts go, as s3://BUCKET/PATH."]
StorageSecret = Annotated[str | None, "Secret with the variables of that store."]
Queue = Annotated[str | None, "Queue of the steps."]


@app.command("run")
async def run_(
    session: InNamespace,
    file: File,
    *,
    parameters: Parameters = None,
    name: Annotated[str | None, "Name of the run; made up by default."] = None,
    root: Root = None,
    storage_secret: StorageSecret = None,
    queue: Queue = None,
    no_cache: Annotated[bool, "--no-cache", "Run every step, also with a kept result."] = False,
    keep: Annotated[
        str | None, "AGE", "Age at which kept results end where a step states none, as 7d."
    ] = None,
    wait: Annotated[bool, "--wait", "Return when the run is over."] = False,
    timeout: Annotated[float, AtLeast(0.1), "Seconds that --wait waits at most."] = 86400.0,
) -> None:
    """Run a pipeline from a file.

    Example: lockstep pipeline run squares.yaml -p rows=7 --root s3://models/runs --wait
    """
    wanted = _given(root=root, storageSecret=storage_secret, queue=queue, keepLongest=keep)
    if no_cache:
        wanted["keepResults"] = False
    body = pipeline_file.read(file, parameters or [], name, wanted)
    await pipeline_work.start(session, body, timeout if wait else None)


def _given(**options: str | None) -> dict[str, Any]:
    return {key: one for key, one in options.items() if one is not None}


@app.command()
async def trigger(
    session: InNamespace,
    file: File,
    *,
    model: Annotated[str | None, "NAME", "Run for each new ModelVersion of it."] = None,
    stage: Annotated[str, "Only once that version is at this stage, as Production."] = "",
    dataset: Annotated[str | None, "NAME", "Run for each new version of this Dataset."] = None,
    name: Annotated[str, "Name of the trigger."],
    parameters: Parameters = None,
    root: Root = None,
    storage_secret: StorageSecret = None,
    queue: Queue = None,
) -> None:
    """Run a pipeline whenever a model or a dataset has a new version.

    Parameters may refer to what is new: event.uri, name, version, stage, metrics.

    Example: lockstep pipeline trigger check.yaml --name check --model digits --stage Production
    """
    wanted = _given(root=root, storageSecret=storage_secret, queue=queue)
    body = pipeline_file.trigger(
        pipeline_file.read(file, parameters or [], None, wanted), name, model, stage, dataset
    )
    made = await session.client.create(PIPELINE_TRIGGERS, body, session.namespace)
    print(f"pipelinetrigger/{made.metadata.name} created", flush=True)


@app.command("list")
async def list_(session: InNamespace, *, output: Output = Format.TABLE) -> None:
    """List the runs.

    Example: lockstep pipeline list
    """
    await list_all(session, "pipeline", PIPELINE_RUNS, Choice(), output)


@app.command()
async def describe(session: InNamespace, name: Name, *, records: RecordsFile = None) -> None:
    """Draw the graph of a run: states, times, waiting, cost, what the steps gave.

    What a step cost is known where there are usage records and its pods held GPUs.

    Example: lockstep pipeline describe squares-7f3a
    """
    await pipeline_work.describe(session, name, records)


@app.command()
async def logs(
    session: InNamespace,
    name: Name,
    step: Annotated[str | None, "A step, as main.train or train; all by default."] = None,
) -> None:
    """Print what the steps of a run wrote.

    Example: lockstep pipeline logs squares-7f3a total
    """
    await pipeline_work.logs(session, name, step)


@app.command()
async def stop(session: InNamespace, name: Name) -> None:
    """Stop a run: its steps end, exit handlers run.

    Example: lockstep pipeline stop squares-7f3a
    """
    await _change(session, name, {"desired": "Stopped"}, "stopped")


@app.command()
async def suspend(session: InNamespace, name: Name) -> None:
    """Start no further step of a run; those that run go on.

    Example: lockstep pipeline suspend squares-7f3a
    """
    await _change(session, name, {"desired": "Suspended"}, "suspended")


@app.command()
async def resume(
    session: InNamespace,
    name: Name,
    step: Annotated[str | None, "One suspended step; all of them by default."] = None,
) -> None:
    """Let a suspended run, or its suspended steps, go on.

    Example: lockstep pipeline resume release-7f3a approve
    """
    found = await pipeline_work.run_of(session, name)
    waiting = [
        place
        for place, one in pipeline_work.steps_in(found).items()
        if one.kind == "Suspend" and one.phase == "Running" and step in (None, place, one.name)
    ]
    if step is not None and not waiting:
        raise CommandFailed(f"run {name}: step {step} is not suspended")
    spec: dict[str, Any] = {"resumed": sorted({*found.spec.resumed, *waiting})}
    await _change(session, name, spec if step else {**spec, "desired": "Running"}, "resumed")


@app.command()
async def retry(session: InNamespace, name: Name) -> None:
    """Run again what has not succeeded of a run that is over.

    Example: lockstep pipeline retry squares-7f3a
    """
    found = await pipeline_work.run_of(session, name)
    if found.status.phase not in ("Failed", "Stopped"):
        raise CommandFailed(f"run {name} is {found.status.phase}: only what failed is run again")
    spec = {"retries": found.spec.retries + 1, "desired": "Running"}
    await session.client.patch(PIPELINE_RUNS, name, {"spec": spec}, session.namespace)
    print(f"pipeline/{name} is run again")


async def _change(session: Session, name: str, spec: dict[str, Any], done: str) -> None:
    """Change the spec of a run that is not over."""
    found = await pipeline_work.run_of(session, name)
    if found.status.phase in pipeline_work.OVER:
        raise CommandFailed(f"run {name} is over: {found.status.phase}")
    await session.client.patch(PIPELINE_RUNS, name, {"spec": spec}, session.namespace)
    print(f"pipeline/{name} {done}")


@app.command()
async def serve(
    session: InNamespace,
    *,
    port: Annotated[int, range(65536), "Port on loopback; 0 chooses a free one."] = 8888,
    root: Annotated[str | None, "Where artefacts go where a run does not say."] = None,
    storage_secret: Annotated[str | None, "Secret with the variables of that store."] = None,
    queue: Annotated[str | None, "Queue of the runs."] = None,
) -> None:
    """Answer kfp.Client on this machine's loopback, with your rights, until interrupted.

    Example: lockstep pipeline serve --port 8888 --root s3://models/runs --storage-secret store
    """
    defaults = _given(root=root, storageSecret=storage_secret, queue=queue)
    await pipeline_work.serve(session, port, defaults)


cache = App("Kept results of steps.")
app.add_typer(cache, name="cache")


@cache.command("list")
async def cache_list(session: InNamespace) -> None:
    """List the kept results: whose they are, how old, and when they end.

    Example: lockstep pipeline cache list
    """
    print(plain(pipelines.kept(await _kept(session), time.time())))


@cache.command("rm")
async def cache_rm(
    session: InNamespace,
    names: Annotated[list[str] | None, "NAME...", "As `cache list` shows them."] = None,
    *,
    every: Annotated[bool, "--all", "Remove all of the namespace."] = False,
) -> None:
    """Forget kept results, so that the steps run again.

    Example: lockstep pipeline cache rm --all
    """
    if every == bool(names):
        raise BadInput("give names of kept results, or --all")
    there = {one.metadata.name for one in await _kept(session)}
    if missing := [one for one in names or () if one not in there]:
        raise CommandFailed(f"no kept result: {', '.join(missing)}")
    for name in names or sorted(there):
        await session.client.delete(CONFIG_MAPS, name, session.namespace)
        print(f"{name} forgotten")


async def _kept(session: Session) -> list[ConfigMap]:
    label = f"{KEPT_LABEL}=true"
    return (await session.client.list(CONFIG_MAPS, session.namespace, label_selector=label)).items
