"""``scale`` and ``wait``."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any, Literal

import msgspec
import typer

from lockstep.api import duration
from lockstep.api.core import PODS
from lockstep.api.names import JOB_LABEL
from lockstep.api.training import TRAINING_JOBS, TrainingJob
from lockstep.cli import kinds
from lockstep.cli.app import App, AtLeast
from lockstep.cli.completion import objects, of
from lockstep.cli.connect import InNamespace, Session
from lockstep.cli.failure import BadInput, CommandFailed, usage
from lockstep.cli.naming import resolve_all, resolve_one
from lockstep.cli.output import note
from lockstep.cli.views.jobs import ended
from lockstep.kube.errors import NotFound

app = App()

LOOK_AGAIN = 0.3


Until = Literal["ended", "succeeded", "running", "deleted"]


@app.command()
async def scale(
    session: InNamespace,
    job: Annotated[str, "JOB", "Name of the job, or of a pod of it.", of("job")],
    size: Annotated[
        int | None,
        typer.Argument(
            metavar="N", min=1, help="Pods that the role is to have.", show_default=False
        ),
    ] = None,
    *,
    replicas: Annotated[int | None, "--replicas", "--workers", AtLeast(1), "The same as N."] = None,
    role: Annotated[str, "Role whose pods are meant."] = "worker",
) -> None:
    """Change how many pods a job has.

    An elastic job (--min, --max) takes or gives them up while it runs; another one starts anew.

    \b
    Examples:
      lockstep scale digits 4
      lockstep scale digits --role evaluator --replicas 2
    """
    wanted = size if size is not None else replicas
    if wanted is None or (size is not None and replicas is not None and size != replicas):
        raise BadInput("say once how many pods it is to have: lockstep scale JOB N")
    with usage("JOB"):
        ref = kinds.reference(job)
    await _scale(session, await _job_of(session, ref), role, wanted)


@app.command()
async def wait(
    session: InNamespace,
    jobs: Annotated[list[str], "NAME...", "NAMEs of jobs, arrays and pods.", objects],
    *,
    until: Annotated[Until, "--for", "What to wait for."] = "ended",
    timeout: Annotated[str, "How long; for ever by default."] = "",
) -> None:
    """Wait for jobs, those of an array, or pods; the exit code is 1 when one fails or time is over.

    \b
    Examples:
      lockstep wait digits
      lockstep wait a b --for running --timeout 10m
      lockstep wait sweep digits-worker-0
    """
    with usage("NAME"):
        wanted = [kinds.reference(one) for one in jobs]
        if other := next((one for one in wanted if one.kind not in ("job", "pod")), None):
            raise ValueError(f"{other} does not end; name jobs, arrays or pods")
    with usage("--timeout"):
        seconds = duration.parse(timeout) if timeout else None
    end = None if seconds is None else time.monotonic() + seconds
    left, said = await resolve_all(session, wanted), ""
    while True:
        for ref in list(left):
            word = await _there(session, ref, until)
            if word:
                print(f"{ref} {word}", flush=True)
                left.remove(ref)
        if not left:
            return
        if end is not None and time.monotonic() > end:
            raise CommandFailed(
                f"not {until} within the time: {', '.join(map(str, left))}",
                f"lockstep explain {left[0]}",
            )
        news = f"waiting for {', '.join(map(str, left))}"
        if news != said:
            note(news)
            said = news
        await asyncio.sleep(LOOK_AGAIN)


async def _job_of(session: Session, ref: kinds.Reference) -> str:
    """Return the job that *ref* names; of a pod, the job that it belongs to."""
    found = await resolve_one(session, ref)
    if found.kind == "pod":
        pod = await session.client.get(PODS, found.name, session.namespace)
        job = pod.metadata.labels.get(JOB_LABEL, "")
        if job:
            note(f"pod {found.name} is of job {job}")
            return job
    if found.kind != "job":
        raise CommandFailed(f"{found} is of no job, so it has no size", "name a job")
    return found.name


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


async def _there(session: Session, ref: kinds.Reference, until: Until) -> str:
    """Return what the job or pod has become, if that is what is waited for; else nothing.

    Raises:
        CommandFailed: when it can no more become that.
    """
    try:
        found = await session.client.get(ref.resource, ref.name, session.namespace)
    except NotFound:
        if until == "deleted":
            return "is deleted"
        raise
    phase = found.status.phase
    if phase == "Failed" and until != "deleted":
        raise CommandFailed(
            f"{ref.kind} {ref.name} failed: {found.status.message}", f"lockstep logs {ref}"
        )
    if until == "deleted":
        return ""
    if until == "running":
        return phase.lower() if phase in ("Running", "Succeeded") else ""
    return "succeeded" if phase == "Succeeded" else ""
