"""``suspend``, ``resume``, ``restart`` and ``delete``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

from lockstep.api import duration
from lockstep.api.names import RESTART_ANNOTATION
from lockstep.api.training import TRAINING_JOBS
from lockstep.cli.app import App
from lockstep.cli.completion import objects, of
from lockstep.cli.connect import InNamespace, Session
from lockstep.cli.deletion import delete_all
from lockstep.cli.failure import CommandFailed, usage
from lockstep.cli.naming import job_names
from lockstep.cli.options import Force
from lockstep.cli.output import note
from lockstep.cli.selecting import Selection
from lockstep.cli.views.jobs import ended

app = App()

Jobs = Annotated[list[str], "JOB...", "Names of jobs and arrays.", of("job")]


@app.command()
async def suspend(session: InNamespace, jobs: Jobs) -> None:
    """Take jobs off the cluster and keep them; `resume` goes on from their checkpoints.

    Example: lockstep suspend digits
    """
    await _set_suspend(session, jobs, suspended=True)


@app.command()
async def resume(session: InNamespace, jobs: Jobs) -> None:
    """Let suspended jobs wait for their place again.

    Example: lockstep resume digits
    """
    await _set_suspend(session, jobs, suspended=False)


@app.command()
async def restart(session: InNamespace, jobs: Jobs) -> None:
    """Start jobs anew, with what was changed of them; they keep their place where they can.

    It is not counted among the restarts of a job that failed.

    Example: lockstep restart digits
    """
    for name in await job_names(session, jobs):
        job = await session.client.get(TRAINING_JOBS, name, session.namespace)
        if ended(job):
            raise CommandFailed(
                f"job {name} has ended: it is {job.status.phase}",
                "`lockstep submit --replace` runs it anew",
            )
        asked = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        patch = {"metadata": {"annotations": {RESTART_ANNOTATION: asked}}}
        await session.client.patch(TRAINING_JOBS, name, patch, session.namespace)
        print(f"job/{name} restarts")


@app.command()
async def delete(
    session: InNamespace,
    names: Annotated[
        list[str] | None,
        "[NAME...]",
        "NAMEs of jobs, arrays and pods, KIND/NAME, or KIND NAME...",
        objects,
    ] = None,
    *,
    selection: Selection,
    wait: Annotated[bool, "--wait/--no-wait", "Wait until they are gone."] = True,
    timeout: Annotated[str, "How long to wait."] = "2m",
    missing_ok: Annotated[
        bool, "--ignore-not-found", "Do not mind objects that are not there."
    ] = False,
    force: Force = False,
) -> None:
    """Delete jobs with their pods, or other objects.

    \b
    Examples:
      lockstep delete digits
      lockstep delete sweep digits-worker-1
      lockstep delete --ended
      lockstep delete pods -l lockstep.dev/job=digits
      lockstep delete -f job.yaml
      lockstep delete gang/g1 queue/research --no-wait
    """
    wanted = selection.read(names or [])
    with usage("--timeout"):
        seconds = duration.parse(timeout) if wait else 0.0
    found = await wanted.found(session)
    if not found:
        note("nothing to delete")
    for home in dict.fromkeys(one for one, _ in found):
        here = [ref for one, ref in found if one == home]
        await delete_all(home, here, seconds, missing_ok=missing_ok, force=force)


async def _set_suspend(session: Session, jobs: Sequence[str], *, suspended: bool) -> None:
    jobs = await job_names(session, jobs)
    for name in jobs:
        job = await session.client.get(TRAINING_JOBS, name, session.namespace)
        if ended(job):
            raise CommandFailed(
                f"job {name} has ended ({job.status.phase}); nothing of it can be "
                f"{'suspended' if suspended else 'resumed'}",
                f"`lockstep delete {name}` removes it; submitted again, it runs again",
            )
    for name in jobs:
        patch: dict[str, Any] = {"spec": {"suspend": suspended}}
        await session.client.patch(TRAINING_JOBS, name, patch, session.namespace)
        print(f"job/{name} {'suspended' if suspended else 'resumed'}")
