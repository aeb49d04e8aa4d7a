"""``lockstep pipeline``: run graphs of steps, see how they do, stop and repeat them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from lockstep.api.pipeline import PIPELINE_RUNS
from lockstep.cli import pipeline_file, pipeline_work
from lockstep.cli.choice import Choice
from lockstep.cli.connect import Target, run
from lockstep.cli.listing import list_all
from lockstep.cli.options import Context, Kubeconfig, Namespace, Output
from lockstep.cli.output import Format
from lockstep.cli.usage_records import RecordsFile

app = typer.Typer(
    help="Pipelines: graphs of steps, each a pod or a job in a queue.",
    rich_markup_mode=None,
    no_args_is_help=True,
)

Name = Annotated[str, typer.Argument(help="Name of the run.")]
File = Annotated[
    Path,
    typer.Argument(
        help="What kfp's compiler wrote, an Argo Workflow, or a PipelineRun.", exists=True
    ),
]
Parameters = Annotated[
    list[str] | None,
    typer.Option("-p", "--parameter", metavar="NAME=VALUE", help="May be repeated."),
]
Root = Annotated[str | None, typer.Option(help="Where artefacts go, as s3://BUCKET/PATH.")]
StorageSecret = Annotated[str | None, typer.Option(help="Secret with the variables of that store.")]
Queue = Annotated[str | None, typer.Option(help="Queue of the steps.")]


@app.command("run")
def run_(
    file: File,
    *,
    parameters: Parameters = None,
    name: Annotated[str | None, typer.Option(help="Name of the run; made up by default.")] = None,
    root: Root = None,
    storage_secret: StorageSecret = None,
    queue: Queue = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Run every step, also with a kept result.")
    ] = False,
    keep: Annotated[
        str | None,
        typer.Option(
            metavar="AGE", help="Age at which kept results end where a step states none, as 7d."
        ),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Return when the run is over.")] = False,
    timeout: Annotated[
        float, typer.Option(help="Seconds that --wait waits at most.", min=0.1)
    ] = 86400.0,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Run a pipeline from a file.

    Example: lockstep pipeline run squares.yaml -p rows=7 --root s3://models/runs --wait
    """
    wanted = _given(root=root, storageSecret=storage_secret, queue=queue, keepLongest=keep)
    if no_cache:
        wanted["keepResults"] = False
    body = pipeline_file.read(file, parameters or [], name, wanted)
    run(
        Target(kubeconfig, context, namespace),
        lambda session: pipeline_work.start(session, body, timeout if wait else None),
    )


def _given(**options: str | None) -> dict[str, Any]:
    return {key: one for key, one in options.items() if one is not None}


@app.command()
def trigger(
    file: File,
    *,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="Run for each new ModelVersion of it.")
    ] = None,
    stage: Annotated[
        str, typer.Option(help="Only once that version is at this stage, as Production.")
    ] = "",
    dataset: Annotated[
        str | None, typer.Option(metavar="NAME", help="Run for each new version of this Dataset.")
    ] = None,
    name: Annotated[str, typer.Option(help="Name of the trigger.")],
    parameters: Parameters = None,
    root: Root = None,
    storage_secret: StorageSecret = None,
    queue: Queue = None,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Run a pipeline whenever a model or a dataset has a new version.

    Parameters may refer to what is new: event.uri, name, version, stage, metrics.

    Example: lockstep pipeline trigger check.yaml --name check --model digits --stage Production
    """
    wanted = _given(root=root, storageSecret=storage_secret, queue=queue)
    body = pipeline_file.trigger(
        pipeline_file.read(file, parameters or [], None, wanted), name, model, stage, dataset
    )
    run(
        Target(kubeconfig, context, namespace),
        lambda session: pipeline_work.make_trigger(session, body),
    )


@app.command("list")
def list_(
    *,
    output: Output = Format.TABLE,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """List the runs.

    Example: lockstep pipeline list
    """
    run(
        Target(kubeconfig, context, namespace),
        lambda session: list_all(session, "pipeline", PIPELINE_RUNS, Choice(), output),
    )


@app.command()
def describe(
    name: Name,
    *,
    records: RecordsFile = None,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Draw the graph of a run: states, times, waiting, cost, what the steps gave.

    What a step cost is known where there are usage records and its pods held GPUs.

    Example: lockstep pipeline describe squares-7f3a
    """
    run(
        Target(kubeconfig, context, namespace),
        lambda session: pipeline_work.describe(session, name, records),
    )


@app.command()
def logs(
    name: Name,
    step: Annotated[
        str | None, typer.Argument(help="A step, as main.train or train; all by default.")
    ] = None,
    *,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Print what the steps of a run wrote.

    Example: lockstep pipeline logs squares-7f3a total
    """
    run(
        Target(kubeconfig, context, namespace),
        lambda session: pipeline_work.logs(session, name, step),
    )


@app.command()
def stop(
    name: Name,
    *,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Stop a run: its steps end, exit handlers run.

    Example: lockstep pipeline stop squares-7f3a
    """
    run(
        Target(kubeconfig, context, namespace),
        lambda session: pipeline_work.change(session, name, {"desired": "Stopped"}, "stopped"),
    )


@app.command()
def suspend(
    name: Name,
    *,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Start no further step of a run; those that run go on.

    Example: lockstep pipeline suspend squares-7f3a
    """
    run(
        Target(kubeconfig, context, namespace),
        lambda session: pipeline_work.change(session, name, {"desired": "Suspended"}, "suspended"),
    )


@app.command()
def resume(
    name: Name,
    step: Annotated[
        str | None, typer.Argument(help="One suspended step; all of them by default.")
    ] = None,
    *,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Let a suspended run, or its suspended steps, go on.

    Example: lockstep pipeline resume release-7f3a approve
    """
    run(
        Target(kubeconfig, context, namespace),
        lambda session: pipeline_work.resume(session, name, step),
    )


@app.command()
def retry(
    name: Name,
    *,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Run again what has not succeeded of a run that is over.

    Example: lockstep pipeline retry squares-7f3a
    """
    run(Target(kubeconfig, context, namespace), lambda session: pipeline_work.retry(session, name))


@app.command()
def serve(
    *,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port on loopback; 0 chooses a free one.")
    ] = 8888,
    root: Annotated[
        str | None, typer.Option(help="Where artefacts go where a run does not say.")
    ] = None,
    storage_secret: Annotated[
        str | None, typer.Option(help="Secret with the variables of that store.")
    ] = None,
    queue: Annotated[str | None, typer.Option(help="Queue of the runs.")] = None,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Answer kfp.Client on this machine's loopback, with your rights, until interrupted.

    Example: lockstep pipeline serve --port 8888 --root s3://models/runs --storage-secret store
    """
    defaults = _given(root=root, storageSecret=storage_secret, queue=queue)
    run(
        Target(kubeconfig, context, namespace),
        lambda session: pipeline_work.serve(session, port, defaults),
    )


cache = typer.Typer(help="Kept results of steps.", rich_markup_mode=None, no_args_is_help=True)
app.add_typer(cache, name="cache")


@cache.command("list")
def cache_list(
    *, namespace: Namespace = None, kubeconfig: Kubeconfig = None, context: Context = None
) -> None:
    """List the kept results: whose they are, how old, and when they end.

    Example: lockstep pipeline cache list
    """
    run(Target(kubeconfig, context, namespace), pipeline_work.list_kept)


@cache.command("rm")
def cache_rm(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME...", help="As `cache list` shows them.")
    ] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="Remove all of the namespace.")] = False,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Forget kept results, so that the steps run again.

    Example: lockstep pipeline cache rm --all
    """
    run(
        Target(kubeconfig, context, namespace),
        lambda session: pipeline_work.forget(session, names or [], every=every),
    )
