"""``lockstep logs``: what a job's pods, or one pod, wrote."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Final

from lockstep.api import duration, names
from lockstep.api.core import PODS
from lockstep.api.job_record import JobRecord
from lockstep.api.training import TRAINING_JOBS, TrainingJob
from lockstep.cli import kinds
from lockstep.cli.app import App, AtLeast
from lockstep.cli.completion import objects
from lockstep.cli.connect import InNamespace, Session
from lockstep.cli.failure import BadInput, CommandFailed, usage
from lockstep.cli.following import follow_job, follow_pod
from lockstep.cli.gone_jobs import job_or_record, was_deleted
from lockstep.cli.log_streams import (
    STARTED,
    Request,
    no_log,
    pods_of,
    prefix_of,
    stream,
)
from lockstep.cli.naming import resolve
from lockstep.cli.output import note
from lockstep.cli.views.table import natural
from lockstep.kube.kept_logs import attempts, kept_logs, of_one_job

app = App()
MOST_FOLLOWED: Final = 64
"""Jobs of an array that are followed at once."""


@app.command()
async def logs(
    session: InNamespace,
    name: Annotated[str, "NAME", "NAME of a job, an array or a pod.", objects],
    *,
    follow: Annotated[bool, "--follow", "-f", "Go on until the end."] = False,
    role: Annotated[str, "Only pods of this role of the job."] = "",
    index: Annotated[int | None, AtLeast(0), "Only the pod with this index in its role."] = None,
    tail: Annotated[int | None, AtLeast(0), "Only so many last lines each."] = None,
    attempt: Annotated[int | None, AtLeast(0), "Of this attempt of the job, from 0."] = None,
    previous: Annotated[
        bool, "--previous", "-p", "Of the attempt before the last; pod/: container."
    ] = False,
    since: Annotated[str, "TIME", "Only lines of this time until now, such as 10m."] = "",
    container: Annotated[str | None, "--container", "-c", "Of this container."] = None,
    timestamps: Annotated[bool, "Put the time before each line."] = False,
) -> None:
    """Print what a job's pods wrote, each line with its pod where there are several.

    With --follow it goes on through restarts, until the job ends. What pods wrote that are gone
    is kept by their node for a week; --attempt and --previous print it.

    \b
    Examples:
      lockstep logs digits --tail 20
      lockstep logs digits -f --index 0
      lockstep logs sweep --tail 5
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
    await print_logs(session, ref, request, follow=follow)


async def print_logs(
    session: Session, ref: kinds.Reference, request: Request, *, follow: bool
) -> None:
    """Print the logs that *request* names; of an array, those of its jobs.

    Raises:
        CommandFailed: when there are none to print.
    """
    found = [ref] if ref.kind == "pod" else await resolve(session, ref)
    if found[0].kind == "pod" and request.attempt is not None:
        raise BadInput("--attempt: it is for a job; a pod belongs to one attempt")
    if len(found) == 1:
        one = replace(request, name=found[0].name, pod=found[0].kind == "pod")
        await _print_one(session, one, follow=follow)
        return
    jobs = [replace(request, name=one.name, before=f"[{one.name}] ") for one in found]
    if follow and len(jobs) > MOST_FOLLOWED:
        raise BadInput(
            f"array {ref.name} has {len(jobs)} jobs; --follow follows at most {MOST_FOLLOWED}",
            f"`lockstep logs {found[0].name} --follow` follows one of them",
        )
    if follow:
        await asyncio.gather(*(_print_one(session, one, follow=True) for one in jobs))
        return
    failures = []
    for one in jobs:
        try:
            await _print_one(session, one, follow=False)
        except CommandFailed as failure:
            failures.append(failure)
    if len(failures) == len(jobs):
        raise failures[0]
    for left_out in failures:
        note(str(left_out))


async def _print_one(session: Session, request: Request, *, follow: bool) -> None:
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
    job = await session.find(TRAINING_JOBS, request.name)
    if job is not None and job.spec.simulated:
        raise CommandFailed(no_log(job))
    kept = of_one_job(
        await kept_logs(session.client, session.namespace, request.name),
        job.metadata.uid if job else None,
    )
    kept = [one for one in kept if request.means(one)]
    pods = [pod for pod in await pods_of(session, request) if pod.status.phase in STARTED]
    if job is None and not kept:
        raise _no_log_of(await job_or_record(session, request.name))
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
        prefix = one.prefix if several else ""
        await stream(session, request, one.pod, prefix, follow=False, kept=one)
    for pod in pods:
        prefix = prefix_of(pod) if several else ""
        await stream(session, request, pod.metadata.name, prefix, follow=False)


def _no_log_of(gone: TrainingJob | JobRecord) -> CommandFailed:
    """Return that nothing is left of what a job wrote but the last lines on record."""
    if isinstance(gone, TrainingJob):
        return CommandFailed(f"no pod of job {gone.metadata.name} has started yet")
    name = gone.job.metadata.name
    return CommandFailed(
        f"{was_deleted(gone)}, and no node keeps its log",
        f"`lockstep describe {name}` shows its record with the last line of each failed rank",
    )


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
