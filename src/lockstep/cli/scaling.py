"""``scale`` and ``wait``."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any

import msgspec
import typer

from lockstep.api import duration
from lockstep.api.training import TRAINING_JOBS, TrainingJob
from lockstep.cli.completion import of
from lockstep.cli.connect import Session, Target, run
from lockstep.cli.failure import BadInput, CommandFailed
from lockstep.cli.options import Context, Kubeconfig, Namespace
from lockstep.cli.output import note
from lockstep.cli.usage import usage
from lockstep.cli.views.jobs import ended
from lockstep.kube.errors import NotFound

app = typer.Typer(rich_markup_mode=None)

LOOK_AGAIN = 0.3


class Until(StrEnum):
    """What ``wait`` waits for."""

    ENDED = "ended"
    SUCCEEDED = "succeeded"
    RUNNING = "running"
    DELETED = "deleted"


@app.command()
def scale(
    job: Annotated[
        str, typer.Argument(metavar="JOB", help="Name of the job.", autocompletion=of("job"))
    ],
    size: Annotated[
        int | None,
        typer.Argument(
            metavar="N", min=1, help="Pods that the role is to have.", show_default=False
        ),
    ] = None,
    *,
    replicas: Annotated[
        int | None, typer.Option("--replicas", "--workers", min=1, help="The same as N.")
    ] = None,
    role: Annotated[str, typer.Option(help="Role whose pods are meant.")] = "worker",
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Change how many pods a job has.

    An elastic job (--min, --max) takes or gives them up while it runs; another one starts anew.

    \b
    Examples:
      lockstep scale digits 4
      lockstep scale digits --role evaluator --replicas 2
    """
    target = Target(kubeconfig, context, namespace)
    wanted = size if size is not None else replicas
    if wanted is None or (size is not None and replicas is not None and size != replicas):
        raise BadInput("say once how many pods it is to have: lockstep scale JOB N")
    run(target, lambda session: _scale(session, job, role, wanted))


@app.command()
def wait(
    jobs: Annotated[
        list[str],
        typer.Argument(metavar="JOB...", help="Names of jobs.", autocompletion=of("job")),
    ],
    *,
    until: Annotated[Until, typer.Option("--for", help="What to wait for.")] = Until.ENDED,
    timeout: Annotated[str, typer.Option(help="How long; for ever by default.")] = "",
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Wait for jobs; the exit code is 1 when one fails or the time is over.

    \b
    Examples:
      lockstep wait digits
      lockstep wait a b --for running --timeout 10m
    """
    with usage("--timeout"):
        seconds = duration.parse(timeout) if timeout else None
    run(Target(kubeconfig, context, namespace), lambda s: _wait(s, jobs, until, seconds))


async def _scale(session: Session, name: str, role: str, replicas: int) -> None:
    path = TRAINING_JOBS.path(session.namespace, name)
    raw: dict[str, Any] = msgspec.json.decode(await session.client.get_raw(path))
    job = msgspec.convert(raw, TrainingJob)
    if ended(job):
        raise CommandFailed(f"job {name} has ended ({job.status.phase})", "submit it again")
    roles: list[dict[str, Any]] = raw["spec"]["roles"]
    chosen = next((one for one in roles if one["name"] == role), None)
    if chosen is None:
        known = ", ".join(one["name"] for one in roles)
        raise BadInput(f"job {name} has no role {role!r}", f"--role: its roles are {known}")
    low, high = chosen.get("min"), chosen.get("max")
    if (low is not None and replicas < low) or (high is not None and replicas > high):
        raise BadInput(
            f"{replicas} pods of {role} are outside of {low or 1} to {high or 'any'} in job {name}",
            "choose a number within, or change min and max in its manifest",
        )
    before, chosen["replicas"] = chosen.get("replicas", 1), replicas
    version = raw["metadata"]["resourceVersion"]
    patch = {"metadata": {"resourceVersion": version}, "spec": {"roles": roles}}
    await session.client.patch(TRAINING_JOBS, name, patch, session.namespace)
    print(f"job/{name} scaled: {role} from {before} to {replicas}")
    if low is None and high is None and before != replicas:
        note("it is not elastic, so it starts anew with its new size")


async def _wait(
    session: Session, names: Sequence[str], until: Until, seconds: float | None
) -> None:
    end = None if seconds is None else time.monotonic() + seconds
    left, said = list(names), ""
    while True:
        for name in list(left):
            word = await _there(session, name, until)
            if word:
                print(f"job/{name} {word}", flush=True)
                left.remove(name)
        if not left:
            return
        if end is not None and time.monotonic() > end:
            raise CommandFailed(
                f"not {until} within the time: {', '.join(left)}", f"lockstep explain {left[0]}"
            )
        news = f"waiting for {', '.join(left)}"
        if news != said:
            note(news)
            said = news
        await asyncio.sleep(LOOK_AGAIN)


async def _there(session: Session, name: str, until: Until) -> str:
    """Return what the job has become, if that is what is waited for; else nothing.

    Raises:
        CommandFailed: when it can no more become that.
    """
    try:
        job = await session.client.get(TRAINING_JOBS, name, session.namespace)
    except NotFound:
        if until is Until.DELETED:
            return "is deleted"
        raise
    phase = job.status.phase
    if phase == "Failed" and until is not Until.DELETED:
        raise CommandFailed(f"job {name} failed: {job.status.message}", f"lockstep logs {name}")
    if until is Until.DELETED:
        return ""
    if until is Until.RUNNING:
        return phase.lower() if phase in ("Running", "Succeeded") else ""
    return "succeeded" if phase == "Succeeded" else ""
