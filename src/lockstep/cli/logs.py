"""``lockstep logs``: what a job's pods, or one pod, wrote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from lockstep.api import duration, names
from lockstep.api.core import PODS
from lockstep.api.training import TRAINING_JOBS, TrainingJob
from lockstep.cli import kinds
from lockstep.cli.completion import objects
from lockstep.cli.connect import Session, Target, run
from lockstep.cli.failure import CommandFailed
from lockstep.cli.following import follow_job, follow_pod
from lockstep.cli.kept_logs import attempts, kept_logs, of_one_job
from lockstep.cli.log_streams import (
    STARTED,
    Request,
    no_log,
    pods_of,
    prefix_of,
    stream,
    stream_kept,
)
from lockstep.cli.options import Context, Kubeconfig, Namespace
from lockstep.cli.output import note
from lockstep.cli.usage import usage
from lockstep.cli.views.nodes import natural
from lockstep.kube.errors import NotFound

app = typer.Typer(rich_markup_mode=None)


@app.command()
def logs(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="Name of a job, or pod/NAME.", autocompletion=objects),
    ],
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the end.")] = False,
    role: Annotated[str, typer.Option(help="Only pods of this role of the job.")] = "",
    index: Annotated[
        int | None, typer.Option(min=0, help="Only the pod with this index in its role.")
    ] = None,
    tail: Annotated[int | None, typer.Option(min=0, help="Only so many last lines each.")] = None,
    attempt: Annotated[
        int | None, typer.Option(min=0, help="Of this attempt of the job, from 0.")
    ] = None,
    previous: Annotated[
        bool,
        typer.Option("--previous", "-p", help="Of the attempt before the last; pod/: container."),
    ] = False,
    since: Annotated[
        str, typer.Option(metavar="TIME", help="Only lines of this time until now, such as 10m.")
    ] = "",
    container: Annotated[
        str | None, typer.Option("--container", "-c", help="Of this container.")
    ] = None,
    timestamps: Annotated[bool, typer.Option(help="Put the time before each line.")] = False,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Print what a job's pods wrote, each line with its pod where there are several.

    With --follow it goes on through restarts, until the job ends. What pods wrote that are gone
    is kept by their node for a week; --attempt and --previous print it.

    \b
    Examples:
      lockstep logs digits --tail 20
      lockstep logs digits -f --index 0
      lockstep logs digits --attempt 0 --since 2h
      lockstep logs pod/digits-worker-1 --previous
    """
    with usage("NAME"):
        ref = kinds.reference(name)
        if ref.kind not in ("job", "pod"):
            raise ValueError(f"{ref} writes no logs; name a job, or pod/NAME")
    earlier = attempt is not None or previous
    with usage("--attempt"):
        if attempt is not None and (previous or ref.kind == "pod"):
            raise ValueError("--attempt is for a job, and without --previous")
        if follow and earlier and ref.kind == "job":
            raise ValueError("an earlier attempt writes no more; leave out --follow")
    with usage("--since"):
        seconds = max(1, round(duration.parse(since))) if since else None
    request = Request(
        ref.name,
        ref.kind == "pod",
        role,
        index,
        container,
        tail,
        previous,
        timestamps,
        attempt,
        seconds,
    )
    target = Target(kubeconfig, context, namespace)
    run(target, lambda session: print_logs(session, request, follow=follow))


async def print_logs(session: Session, request: Request, *, follow: bool) -> None:
    """Print the logs that *request* names.

    Raises:
        CommandFailed: when there are none to print.
    """
    if request.pod and follow and not request.previous:
        pod = await session.client.get(PODS, request.name, session.namespace)
        await follow_pod(session, request, pod, "")
    elif request.pod:
        await stream(session, request, request.name, "", follow=follow)
    elif follow:
        await follow_job(session, request)
    else:
        await _print_job(session, request)


async def _print_job(session: Session, request: Request) -> None:
    job = await _job(session, request.name)
    if job is not None and job.spec.simulated:
        raise CommandFailed(no_log(job))
    kept = of_one_job(await kept_logs(session, request.name), job.metadata.uid if job else None)
    kept = [one for one in kept if request.means(one)]
    pods = [pod for pod in await pods_of(session, request) if pod.status.phase in STARTED]
    if job is None and not kept:
        await session.client.get(TRAINING_JOBS, request.name, session.namespace)
    known = attempts(kept, pods)
    wanted = _attempt(request, known)
    if wanted is None and pods and request.previous:
        raise CommandFailed(f"job {request.name} has made no attempt before this one")
    if wanted is None and not pods:
        raise CommandFailed(
            f"no pod of job {request.name} has started yet",
            f"`lockstep explain {request.name}` says why; --follow waits for it",
        )
    if wanted is not None:
        pods = [pod for pod in pods if pod.metadata.labels.get(names.ATTEMPT_LABEL) == str(wanted)]
        kept = [one for one in kept if one.attempt == str(wanted)]
    present = {pod.metadata.uid for pod in pods}
    gone = [one for one in kept if one.uid not in present]
    if gone and not pods and request.attempt is None and not request.previous:
        note(f"no pod of job {request.name} runs; this is what attempt {wanted} wrote")
    several = len(pods) + len(gone) > 1
    for one in sorted(gone, key=lambda one: natural(one.pod)):
        await stream_kept(session, request, one, one.prefix if several else "")
    for pod in pods:
        prefix = prefix_of(pod) if several else ""
        await stream(session, request, pod.metadata.name, prefix, follow=False)


async def _job(session: Session, name: str) -> TrainingJob | None:
    try:
        return await session.client.get(TRAINING_JOBS, name, session.namespace)
    except NotFound:
        return None


def _attempt(request: Request, known: Sequence[int]) -> int | None:
    """Return the attempt that is wanted, of those *known*; none where pods carry no number.

    Raises:
        CommandFailed: when nothing is known of it.
    """
    if request.attempt is not None:
        if request.attempt not in known:
            told = ", ".join(map(str, known)) or "none"
            raise CommandFailed(
                f"no log of attempt {request.attempt} of job {request.name} is kept",
                f"there are logs of attempts: {told}",
            )
        return request.attempt
    back = 2 if request.previous else 1
    return known[-back] if len(known) >= back else None
