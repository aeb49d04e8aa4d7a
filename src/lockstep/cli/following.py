"""Following the logs of a job through its attempts, and over breaks of the connection."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from lockstep.api import names
from lockstep.api.core import PODS, Pod
from lockstep.api.simulated import pod_pretends
from lockstep.api.training import TRAINING_JOBS, TrainingJob
from lockstep.cli.connect import Session
from lockstep.cli.failure import CommandFailed
from lockstep.cli.log_lines import Cursor
from lockstep.cli.log_streams import (
    STARTED,
    Request,
    no_log,
    pods_of,
    prefix_of,
    print_on,
)
from lockstep.cli.output import note
from lockstep.cli.views.jobs import ended
from lockstep.kube.errors import NotFound, Unreachable
from lockstep.kube.kept_logs import KeptLog, kept_logs, of_one_job

LOOK_AGAIN = 0.3
"""Seconds between looks for new pods of a job that is followed."""
PATIENCE = 60.0
"""Seconds for which a follower tries to reach what it follows."""
OVER = ("Succeeded", "Failed")


async def follow_job(session: Session, request: Request, *, from_start: bool = False) -> None:
    """Print what the job's pods write, those of later attempts too, until the job ends.

    With *from_start* attempts that ended before the first look are printed too.

    Raises:
        CommandFailed: when a log cannot be read to its end.
    """
    try:
        await _follow_job(session, request, from_start=from_start)
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None


async def _follow_job(session: Session, request: Request, *, from_start: bool) -> None:
    following = Following(session, request, from_start=from_start)
    said, silent = "", False
    give_up = time.monotonic() + PATIENCE
    async with asyncio.TaskGroup() as group:
        while True:
            try:
                job = await session.client.get(TRAINING_JOBS, request.name, session.namespace)
                await following.look(job)
                # Read last: a pod whose log is listed is among them, unless it is gone.
                pods = await pods_of(session, request)
            except Unreachable:
                await _patiently(give_up)
                continue
            give_up = time.monotonic() + PATIENCE
            following.take_up(group, pods, following.missed(pods))
            if ended(job):
                return
            news = f"job {request.name} is {job.status.phase}: {job.status.message}".rstrip(": ")
            if job.spec.simulated and not silent:
                note(no_log(job))
                silent = True
            if job.status.phase != "Running" and news != said:
                note(news)
                said = news
            await asyncio.sleep(LOOK_AGAIN)


@dataclass
class Following:
    """The pods of a job whose logs are followed, or are not to be."""

    session: Session
    request: Request
    from_start: bool
    seen: set[str] = field(default_factory=set)
    """Uids of pods that need not be taken up again."""
    former: set[str] = field(default_factory=set)
    """Uids of pods that had gone before the first look."""
    listed: list[KeptLog] = field(default_factory=list)
    """What nodes had at the last look and was not compared with the pods yet."""
    stage: tuple[object, ...] | None = None

    async def look(self, job: TrainingJob) -> None:
        """List the logs that nodes have of the job's pods, where that may have changed."""
        stage = job.status.attempt, job.status.restarts, ended(job)
        if job.spec.simulated or stage == self.stage:
            return
        found = of_one_job(
            await kept_logs(self.session.client, self.session.namespace, self.request.name),
            job.metadata.uid,
        )
        if self.stage is None and not self.from_start:
            # What ended before the first look is `lockstep logs --attempt`'s to print.
            self.former = {one.uid for one in found if one.ended}
        self.stage, self.listed = stage, found

    def missed(self, pods: Sequence[Pod]) -> list[KeptLog]:
        """Return the logs of pods that came and went between two looks."""
        present = {pod.metadata.uid for pod in pods} | self.seen | self.former
        gone = [one for one in self.listed if one.uid not in present and self.request.means(one)]
        self.seen |= {one.uid for one in gone}
        self.listed = []
        return gone

    def take_up(
        self, group: asyncio.TaskGroup, pods: Sequence[Pod], missed: Sequence[KeptLog]
    ) -> None:
        """Follow the pods that have started since the last look, and print what was missed."""
        several = len(pods) > 1
        if missed:
            group.create_task(self._print_missed(missed, several=several))
        for pod in pods:
            uid = pod.metadata.uid
            if pod.status.phase in STARTED and uid not in self.seen and not pod_pretends(pod):
                self.seen.add(uid)
                prefix = prefix_of(pod) if several else ""
                group.create_task(follow_pod(self.session, self.request, pod, prefix))

    async def _print_missed(self, missed: Sequence[KeptLog], *, several: bool) -> None:
        """Print attempt after attempt."""
        several = several or len({one.pod for one in missed}) > 1
        for one in missed:
            cursor = Cursor(timestamps=self.request.timestamps)
            await _print_kept(
                self.session, self.request, one, one.prefix if several else "", cursor
            )


async def _patiently(give_up: float) -> None:
    """Wait for the next look at a server that does not answer.

    Raises:
        CommandFailed: when it has not answered for too long.
    """
    if time.monotonic() > give_up:
        raise CommandFailed(f"the API server has not answered for {PATIENCE:.0f} s")
    await asyncio.sleep(LOOK_AGAIN)


async def follow_pod(session: Session, request: Request, pod: Pod, prefix: str) -> None:
    """Print what a pod writes to its end, through breaks of the connection.

    Raises:
        CommandFailed: when the log cannot be read on for a while, or went away unread.
    """
    cursor, name = Cursor(timestamps=request.timestamps), pod.metadata.name
    give_up = time.monotonic() + PATIENCE
    over = pod.status.phase in OVER
    while True:
        try:
            whole = await print_on(session, request, name, prefix, cursor, follow=not over)
        except NotFound:
            await _print_rest(session, request, pod, prefix, cursor)
            return  # The pod went away with its attempt; the next one is followed in turn.
        if whole:
            give_up = time.monotonic() + PATIENCE
            if over:
                return
        elif time.monotonic() > give_up:
            raise CommandFailed(
                f"the log of pod {name} could not be read on for {PATIENCE:.0f} s",
                f"`lockstep logs {request.name}` prints what there is",
            )
        await asyncio.sleep(LOOK_AGAIN)
        try:
            there = await session.client.get(PODS, name, session.namespace)
        except NotFound:
            if await _print_rest(session, request, pod, prefix, cursor) or whole:
                return
            raise CommandFailed(
                f"pod {name} is gone, and the end of its log was not read"
            ) from None
        except Unreachable:
            continue
        over = there.status.phase in OVER
        if there.metadata.uid != pod.metadata.uid:
            await _print_rest(session, request, pod, prefix, cursor)
            return


async def _print_rest(
    session: Session, request: Request, pod: Pod, prefix: str, cursor: Cursor
) -> bool:
    """Print what is left of the log of a pod that is gone; return whether its node has kept it."""
    job = pod.metadata.labels.get(names.JOB_LABEL, "")
    kept = [
        one
        for one in await kept_logs(session.client, session.namespace, job)
        if one.uid == pod.metadata.uid
    ]
    return bool(kept) and await _print_kept(session, request, kept[0], prefix, cursor)


async def _print_kept(
    session: Session, request: Request, kept: KeptLog, prefix: str, cursor: Cursor
) -> bool:
    """Print on the log of a pod that is gone to its end, through breaks of the connection.

    Raises:
        CommandFailed: when it cannot be read for a while.
    """
    give_up = time.monotonic() + PATIENCE
    while True:
        # A node lists a log a moment before it has moved it to those that it keeps.
        with suppress(NotFound):
            if await print_on(session, request, kept.pod, prefix, cursor, follow=False, kept=kept):
                return True
        if time.monotonic() > give_up:
            raise CommandFailed(
                f"the log of pod {kept.pod}, which is gone, could not be read for {PATIENCE:.0f} s",
                f"`lockstep logs {request.name}` prints what there is",
            )
        await asyncio.sleep(LOOK_AGAIN)
