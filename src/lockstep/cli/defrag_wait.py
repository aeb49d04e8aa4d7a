"""Waiting until jobs have moved, and no longer than agreed for a scheduler that is not there."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from lockstep.api import duration
from lockstep.api.gang import GANGS, Defragmentation, Gang
from lockstep.api.names import DEFRAGMENT_ANNOTATION
from lockstep.cli.connect import Session
from lockstep.cli.failure import CommandFailed
from lockstep.cli.output import note, print_lines
from lockstep.kube.errors import Conflict

LOOK_EVERY = 0.2
UNANSWERED = 5.0
"""Seconds after which it is told that no scheduler has answered yet."""
NO_NEWS = 60.0
"""Seconds without news after which that is told while jobs move: pods may take that long to end."""


@dataclass(slots=True)
class Silence:
    """How long nothing has been heard of a request, in seconds of any clock."""

    since: float
    told: bool = False

    def heard(self, now: float) -> None:
        """Take note that there was news."""
        self.since, self.told = now, False

    def words(self, now: float, within: float, *, answered: bool) -> str:
        """Return what is to be told of the silence now; each is told once."""
        passed = now - self.since
        if self.told or passed < (NO_NEWS if answered else min(UNANSWERED, within)):
            return ""
        self.told = True
        if answered:
            return (
                f"no news for {duration.show(passed)}: pods may take their time to end and to come "
                "back, or no scheduler runs; what was written goes on when one does"
            )
        return (
            f"no scheduler has answered for {duration.show(passed)}; "
            f"waiting {duration.show(within)} at most"
        )


async def follow(session: Session, name: str, request: str, within: float) -> None:
    """Tell each step of what was asked for on a gang, until it is over.

    Raises:
        CommandFailed: when it was refused or came to nothing, or when no scheduler answered within
            so many seconds; the request is taken back then.
    """
    silence, said = Silence(time.monotonic()), ""
    while True:
        gang = await session.client.get(GANGS, name, session.namespace)
        answer, now = _answer(gang, request), time.monotonic()
        if answer is not None and answer.message != said:
            said = answer.message
            silence.heard(now)
            print_lines([said] if answer.phase != "Refused" else [])
        if answer is not None and answer.phase != "Moving":
            _conclude(name, answer)
            return
        if words := silence.words(now, within, answered=answer is not None):
            note(words)
        if answer is None and now - silence.since >= within:
            await _take_back(session, gang, request, within)
        await asyncio.sleep(LOOK_EVERY)


def _answer(gang: Gang, request: str) -> Defragmentation | None:
    shown = gang.status.defragmentation
    return shown if shown is not None and shown.request == request else None


async def _take_back(session: Session, gang: Gang, request: str, within: float) -> None:
    """Take a request back that nobody answered; return where somebody did at the last moment.

    Raises:
        CommandFailed: when it was taken back, or when another has taken its place.
    """
    meta = gang.metadata
    if meta.annotations.get(DEFRAGMENT_ANNOTATION) == request:
        version = {"resourceVersion": meta.resource_version}
        body = {"metadata": {**version, "annotations": {DEFRAGMENT_ANNOTATION: None}}}
        try:
            await session.client.patch(GANGS, meta.name, body, session.namespace)
        except Conflict:
            return
    raise CommandFailed(
        f"no scheduler has answered for {duration.show(within)}; "
        "the request was taken back and nothing was moved",
        f"see that the scheduler runs (`lockstep explain {meta.name}` then says why it waits)",
    )


def _conclude(name: str, answer: Defragmentation) -> None:
    if answer.phase == "Refused":
        raise CommandFailed(f"nothing was moved: {answer.message}", "look at the plan again")
    if answer.phase == "Failed":
        raise CommandFailed(f"{name} did not start: {answer.message}", f"lockstep explain {name}")
