"""Logs of pods on standard output: which are wanted, and one after the other."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lockstep.api import names
from lockstep.api.core import PODS, Pod
from lockstep.api.training import TRAINING_JOBS, TrainingJob
from lockstep.cli.connect import Session
from lockstep.cli.failure import CommandFailed
from lockstep.cli.log_lines import Cursor, Prefixed
from lockstep.cli.views.table import natural
from lockstep.kube.errors import ApiError, NotFound
from lockstep.kube.kept_logs import KeptLog

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
    attempt: int | None = None
    since: int | None = None
    before: str = ""
    """What goes before each line: the job, where there are several."""

    def selector(self) -> str:
        """Return the label selector of the job's pods."""
        parts = [f"{names.JOB_LABEL}={self.name}"]
        if self.role:
            parts.append(f"{names.ROLE_LABEL}={self.role}")
        if self.index is not None:
            parts.append(f"{names.INDEX_LABEL}={self.index}")
        return ",".join(parts)

    def means(self, kept: KeptLog) -> bool:
        """Return whether the log of a pod that is gone is wanted."""
        index = "" if self.index is None else str(self.index)
        return self.role in ("", kept.role) and index in ("", kept.index)


def no_log(job: TrainingJob) -> str:
    """Return why there is no log of a simulated job."""
    name = job.metadata.name
    return f"job {name} is simulated: no command is executed, and so there is no log"


async def print_on(
    session: Session,
    request: Request,
    pod: str,
    prefix: str,
    cursor: Cursor,
    *,
    follow: bool,
    kept: KeptLog | None = None,
) -> bool:
    """Print a pod's log from the cursor on; return whether the stream came to an end of its own."""
    write, lines = _writer(), Prefixed(request.before + prefix)
    cursor.reconnect()
    chunks = _chunks(
        session,
        replace(request, tail=None, since=None) if cursor.time else request,
        pod,
        kept,
        follow=follow,
        since_time=cursor.time.decode(),
        timestamps=True,
    )
    try:
        async for chunk in chunks:
            write(lines.feed(cursor.feed(chunk)))
    except NotFound:
        raise
    except ApiError:
        return False
    return True


def _chunks(
    session: Session, request: Request, pod: str, kept: KeptLog | None, **how: Any
) -> AsyncIterator[bytes]:
    """Ask for the log of a pod that is there, or of one that is gone and whose node keeps it."""
    return session.client.logs(
        session.namespace,
        pod,
        container=_container(request, kept),
        tail=request.tail,
        since_seconds=request.since,
        node=kept.node if kept else "",
        uid=kept.uid if kept else "",
        **how,
    )


def _container(request: Request, kept: KeptLog | None) -> str | None:
    """Return the container whose log is asked for; none leaves it to the server.

    Raises:
        CommandFailed: when one of several has to be named.
    """
    if request.container or kept is None:
        return request.container
    if len(kept.containers) == 1:
        return kept.containers[0]
    raise CommandFailed(
        f"pod {kept.pod} had several containers", f"-c with one of: {', '.join(kept.containers)}"
    )


async def stream(
    session: Session,
    request: Request,
    pod: str,
    prefix: str,
    *,
    follow: bool,
    kept: KeptLog | None = None,
) -> None:
    """Print a log once.

    Raises:
        CommandFailed: when it cannot be read.
    """
    write = _writer()
    lines = Prefixed(request.before + prefix)
    try:
        previous = request.previous and request.pod
        how = {"follow": follow, "previous": previous, "timestamps": request.timestamps}
        async for chunk in _chunks(session, request, pod, kept, **how):
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


async def running_pod(session: Session, request: Request) -> str:
    """Return the name of the first pod of a job that runs.

    Raises:
        CommandFailed: when none does.
    """
    pods = await pods_of(session, request)
    for pod in pods:
        if pod.status.phase == "Running" and not pod.metadata.deletion_timestamp:
            return pod.metadata.name
    await session.client.get(TRAINING_JOBS, request.name, session.namespace)
    raise CommandFailed(
        f"no pod of job {request.name} runs now", f"`lockstep explain {request.name}` says why"
    )


async def pods_of(session: Session, request: Request) -> Sequence[Pod]:
    """Return the pods that are wanted, in the order of their names."""
    listing = await session.client.list(PODS, session.namespace, label_selector=request.selector())
    return sorted(listing.items, key=lambda pod: natural(pod.metadata.name))


def prefix_of(pod: Pod) -> str:
    """Return what goes before the lines of a pod where there are several."""
    labels = pod.metadata.labels
    role, index = labels.get(names.ROLE_LABEL), labels.get(names.INDEX_LABEL)
    return f"[{role}-{index}] " if role and index else f"[{pod.metadata.name}] "
