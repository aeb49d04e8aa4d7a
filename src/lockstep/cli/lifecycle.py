"""``suspend``, ``resume``, ``restart`` and ``delete``."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from lockstep.api import duration, timestamp
from lockstep.api.core import PODS
from lockstep.api.names import JOB_LABEL, RESTART_ANNOTATION
from lockstep.api.queue import QUEUES
from lockstep.api.training import TRAINING_JOBS
from lockstep.cli import kinds
from lockstep.cli.completion import objects, of
from lockstep.cli.connect import Session, Target, run
from lockstep.cli.failure import CommandFailed
from lockstep.cli.grouped import grouped
from lockstep.cli.options import Context, Force, Kubeconfig, Namespace
from lockstep.cli.output import note
from lockstep.cli.queue_guard import check_unused
from lockstep.cli.selecting import Selection
from lockstep.cli.usage import usage
from lockstep.cli.views.jobs import ended
from lockstep.kube.errors import NotFound

app = typer.Typer(rich_markup_mode=None)

Jobs = Annotated[
    list[str], typer.Argument(metavar="JOB...", help="Names of jobs.", autocompletion=of("job"))
]


@app.command()
def suspend(
    jobs: Jobs,
    *,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Take jobs off the cluster and keep them; `resume` goes on from their checkpoints.

    Example: lockstep suspend digits
    """
    target = Target(kubeconfig, context, namespace)
    run(target, lambda session: _set_suspend(session, jobs, suspended=True))


@app.command()
def resume(
    jobs: Jobs,
    *,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Let suspended jobs wait for their place again.

    Example: lockstep resume digits
    """
    target = Target(kubeconfig, context, namespace)
    run(target, lambda session: _set_suspend(session, jobs, suspended=False))


@app.command()
def restart(
    jobs: Jobs,
    *,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Start jobs anew, with what was changed of them; they keep their place where they can.

    It is not counted among the restarts of a job that failed.

    Example: lockstep restart digits
    """
    target = Target(kubeconfig, context, namespace)
    run(target, lambda session: _restart(session, jobs))


@app.command()
@grouped
def delete(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME...]",
            help="NAMEs of jobs, KIND/NAME, or KIND NAME...",
            autocompletion=objects,
        ),
    ] = None,
    *,
    selection: Selection,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Wait until they are gone.")
    ] = True,
    timeout: Annotated[str, typer.Option(help="How long to wait.")] = "2m",
    missing_ok: Annotated[
        bool, typer.Option("--ignore-not-found", help="Do not mind objects that are not there.")
    ] = False,
    force: Force = False,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Delete jobs with their pods, or other objects.

    \b
    Examples:
      lockstep delete digits
      lockstep delete --ended
      lockstep delete pods -l lockstep.dev/job=digits
      lockstep delete -f job.yaml
      lockstep delete gang/g1 queue/research --no-wait
    """
    wanted = selection.read(names or [])
    with usage("--timeout"):
        seconds = duration.parse(timeout) if wait else 0.0

    async def work(session: Session) -> None:
        found = await wanted.found(session)
        if not found:
            note("nothing to delete")
        for home in dict.fromkeys(one for one, _ in found):
            here = [ref for one, ref in found if one == home]
            await delete_all(home, here, seconds, missing_ok=missing_ok, force=force)

    run(Target(kubeconfig, context, namespace), work)


async def _restart(session: Session, jobs: Sequence[str]) -> None:
    for name in jobs:
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


async def _set_suspend(session: Session, jobs: Sequence[str], *, suspended: bool) -> None:
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


async def delete_all(
    session: Session,
    wanted: Sequence[kinds.Reference],
    seconds: float,
    *,
    missing_ok: bool = False,
    force: bool = False,
) -> None:
    """Delete objects, and wait up to *seconds* until they are gone; 0 does not wait.

    Queues that are in use are deleted with *force* only. What is not there does not keep the rest.

    Raises:
        CommandFailed: when one is still there or was not there, or a queue is in use.
    """
    queues = [ref.name for ref in wanted if ref.resource is QUEUES]
    if queues and not force:
        await check_unused(session, queues)
    going, missing = [], []
    for ref in wanted:
        namespace = session.home(ref.resource)
        try:
            # Dependents first, so that "gone" means that the pods are gone too.
            await session.client.delete(ref.resource, ref.name, namespace, propagation="Foreground")
        except NotFound:
            missing.append(str(ref))
            continue
        going.append(ref)
    if not seconds:
        for ref in going:
            print(f"{ref} is being deleted")
    else:
        end = time.monotonic() + seconds
        for ref in going:
            await _gone(session, ref, end)
            print(f"{ref} deleted")
    if missing and not missing_ok:
        raise CommandFailed(
            f"not found: {', '.join(missing)}",
            "`lockstep list` shows what there is; -n chooses the namespace",
        )


async def _what_holds(session: Session, ref: kinds.Reference) -> str:
    """Return what an object waits for that is being deleted: of a job, its pods' grace."""
    hint = f"`lockstep describe {ref}` shows what holds it"
    if ref.resource is not TRAINING_JOBS:
        return hint
    label = f"{JOB_LABEL}={ref.name}"
    listed = await session.client.list(PODS, session.namespace, label_selector=label)
    ends = [pod.metadata.deletion_timestamp for pod in listed.items]
    last = max((timestamp.parse(end) for end in ends if end), default=0.0)
    left = last - time.time()
    return f"what still runs is killed in {duration.show(left)}; {hint}" if left > 0 else hint


async def _gone(session: Session, ref: kinds.Reference, end: float) -> None:
    said = time.monotonic() + 1
    while True:
        try:
            await session.client.get(ref.resource, ref.name, session.home(ref.resource))
        except NotFound:
            return
        now = time.monotonic()
        if now > end:
            raise CommandFailed(
                f"{ref} is still there; its deletion goes on", await _what_holds(session, ref)
            )
        if now > said:
            note(f"waiting for the end of {ref}")
            said = now + 5
        await asyncio.sleep(0.1)
