"""``lockstep logs``: what a job's pods, or one pod, wrote."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from lockstep.api import names
from lockstep.api.core import PODS, Pod
from lockstep.api.training import TRAINING_JOBS
from lockstep.cli import kinds
from lockstep.cli.connect import Session, Target, run
from lockstep.cli.failure import CommandFailed
from lockstep.cli.lines import Prefixed
from lockstep.cli.options import Context, Kubeconfig, Namespace
from lockstep.cli.output import note
from lockstep.cli.usage import usage
from lockstep.cli.views.jobs import ended
from lockstep.cli.views.nodes import natural
from lockstep.kube.errors import ApiError, NotFound

app = typer.Typer(rich_markup_mode=None)

LOOK_AGAIN = 0.3
"""Seconds between looks for new pods of a job that is followed."""
STARTED = ("Running", "Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Request:
    """Which logs, and how."""

    name: str
    pod: bool = False
    role: str = ""
    index: int | None = None
    container: str | None = None
    tail: int | None = None
    previous: bool = False
    timestamps: bool = False

    def selector(self) -> str:
        """Return the label selector of the job's pods."""
        parts = [f"{names.JOB_LABEL}={self.name}"]
        if self.role:
            parts.append(f"{names.ROLE_LABEL}={self.role}")
        if self.index is not None:
            parts.append(f"{names.INDEX_LABEL}={self.index}")
        return ",".join(parts)


@app.command()
def logs(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of a job, or pod/NAME.")],
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the end.")] = False,
    role: Annotated[str, typer.Option(help="Only pods of this role of the job.")] = "",
    index: Annotated[
        int | None, typer.Option(min=0, help="Only the pod with this index in its role.")
    ] = None,
    tail: Annotated[int | None, typer.Option(min=0, help="Only so many last lines each.")] = None,
    previous: Annotated[
        bool, typer.Option("--previous", "-p", help="Of the container that ran before.")
    ] = False,
    container: Annotated[
        str | None, typer.Option("--container", "-c", help="Of this container.")
    ] = None,
    timestamps: Annotated[bool, typer.Option(help="Put the time before each line.")] = False,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Print what a job's pods wrote, each line with its pod where there are several.

    With --follow it goes on through restarts, until the job ends.

    \b
    Examples:
      lockstep logs digits --tail 20
      lockstep logs digits -f --index 0
      lockstep logs pod/digits-worker-1 --previous
    """
    with usage("NAME"):
        ref = kinds.reference(name)
        if ref.kind not in ("job", "pod"):
            raise ValueError(f"{ref} writes no logs; name a job, or pod/NAME")
    request = Request(
        ref.name, ref.kind == "pod", role, index, container, tail, previous, timestamps
    )
    target = Target(kubeconfig, context, namespace)
    run(target, lambda session: print_logs(session, request, follow=follow))


async def print_logs(session: Session, request: Request, *, follow: bool) -> None:
    """Print the logs that *request* names.

    Raises:
        CommandFailed: when there are none to print.
    """
    if request.pod:
        await _stream(session, request, request.name, "", follow=follow)
    elif follow:
        await follow_job(session, request)
    else:
        await _print_job(session, request)


async def _print_job(session: Session, request: Request) -> None:
    pods = await _pods(session, request)
    started = [pod for pod in pods if pod.status.phase in STARTED]
    if not started:
        await session.client.get(TRAINING_JOBS, request.name, session.namespace)
        raise CommandFailed(
            f"no pod of job {request.name} has started yet",
            f"`lockstep explain {request.name}` says why; --follow waits for it",
        )
    for pod in started:
        prefix = _prefix(pod) if len(pods) > 1 else ""
        await _stream(session, request, pod.metadata.name, prefix, follow=False)


async def follow_job(session: Session, request: Request) -> None:
    """Print what the job's pods write, those of later attempts too, until the job ends."""
    streams: dict[str, asyncio.Task[None]] = {}
    said = ""
    async with asyncio.TaskGroup() as group:
        while True:
            job = await session.client.get(TRAINING_JOBS, request.name, session.namespace)
            pods = await _pods(session, request)
            for pod in pods:
                if pod.status.phase in STARTED and pod.metadata.uid not in streams:
                    streams[pod.metadata.uid] = group.create_task(
                        _follow_pod(session, request, pod, _prefix(pod) if len(pods) > 1 else "")
                    )
            if ended(job):
                return
            news = f"job {request.name} is {job.status.phase}: {job.status.message}".rstrip(": ")
            if job.status.phase != "Running" and news != said:
                note(news)
                said = news
            await asyncio.sleep(LOOK_AGAIN)


async def _follow_pod(session: Session, request: Request, pod: Pod, prefix: str) -> None:
    try:
        await _stream(session, request, pod.metadata.name, prefix, follow=True)
    except (NotFound, CommandFailed):
        return  # The pod went away with its attempt; the next one is followed in turn.


async def _stream(
    session: Session, request: Request, pod: str, prefix: str, *, follow: bool
) -> None:
    write = _writer()
    lines = Prefixed(prefix)
    try:
        async for chunk in session.client.logs(
            session.namespace,
            pod,
            container=request.container,
            follow=follow,
            tail=request.tail,
            previous=request.previous,
            timestamps=request.timestamps,
        ):
            write(lines.feed(chunk))
    except NotFound:
        raise
    except ApiError as error:
        raise CommandFailed(f"the logs of pod {pod} cannot be read: {error}") from error
    finally:
        write(lines.end())


def _writer() -> Callable[[bytes], None]:
    out = sys.stdout.buffer

    def write(data: bytes) -> None:
        if data:
            out.write(data)
            out.flush()

    return write


async def _pods(session: Session, request: Request) -> Sequence[Pod]:
    listing = await session.client.list(PODS, session.namespace, label_selector=request.selector())
    return sorted(listing.items, key=lambda pod: natural(pod.metadata.name))


def _prefix(pod: Pod) -> str:
    labels = pod.metadata.labels
    role, index = labels.get(names.ROLE_LABEL), labels.get(names.INDEX_LABEL)
    return f"[{role}-{index}] " if role and index else f"[{pod.metadata.name}] "
