"""``suspend``, ``resume`` and ``delete``."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from lockstep.api import duration
from lockstep.api.training import TRAINING_JOBS
from lockstep.cli import kinds
from lockstep.cli.connect import Session, Target, run
from lockstep.cli.failure import CommandFailed
from lockstep.cli.options import Context, Kubeconfig, Namespace, SeveralNamed
from lockstep.cli.output import note
from lockstep.cli.usage import usage
from lockstep.kube.errors import NotFound

app = typer.Typer(rich_markup_mode=None)

Jobs = Annotated[list[str], typer.Argument(metavar="JOB...", help="Names of jobs.")]


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
def delete(
    names: SeveralNamed,
    *,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Wait until they are gone.")
    ] = True,
    timeout: Annotated[str, typer.Option(help="How long to wait.")] = "2m",
    missing_ok: Annotated[
        bool, typer.Option("--ignore-not-found", help="Do not mind objects that are not there.")
    ] = False,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Delete jobs with their pods, or other objects.

    \b
    Examples:
      lockstep delete digits
      lockstep delete gang/g1 queue/research --no-wait
    """
    with usage("NAME"):
        wanted = [kinds.reference(name) for name in names]
    with usage("--timeout"):
        seconds = duration.parse(timeout) if wait else 0.0
    target = Target(kubeconfig, context, namespace)
    run(target, lambda session: delete_all(session, wanted, seconds, missing_ok=missing_ok))


async def _set_suspend(session: Session, jobs: Sequence[str], *, suspended: bool) -> None:
    for name in jobs:
        patch: dict[str, Any] = {"spec": {"suspend": suspended}}
        await session.client.patch(TRAINING_JOBS, name, patch, session.namespace)
        print(f"job/{name} {'suspended' if suspended else 'resumed'}")


async def delete_all(
    session: Session, wanted: Sequence[kinds.Reference], seconds: float, *, missing_ok: bool = False
) -> None:
    """Delete objects, and wait up to *seconds* until they are gone; 0 does not wait.

    Raises:
        CommandFailed: when one is still there.
    """
    going = []
    for ref in wanted:
        namespace = session.home(ref.resource)
        try:
            # Dependents first, so that "gone" means that the pods are gone too.
            await session.client.delete(ref.resource, ref.name, namespace, propagation="Foreground")
        except NotFound:
            if not missing_ok:
                raise
            continue
        going.append(ref)
    if not seconds:
        for ref in going:
            print(f"{ref} is being deleted")
        return
    end = time.monotonic() + seconds
    for ref in going:
        await _gone(session, ref, end)
        print(f"{ref} deleted")


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
                f"{ref} is still there", f"`lockstep describe {ref}` shows what holds it"
            )
        if now > said:
            note(f"waiting for the end of {ref}")
            said = now + 5
        await asyncio.sleep(0.1)
