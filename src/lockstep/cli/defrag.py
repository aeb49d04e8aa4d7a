"""``defrag``: which running jobs would have to move so that a waiting one fits, and moving them."""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import dataclass
from typing import Annotated

import typer

from lockstep.api import duration, timestamp
from lockstep.api.gang import GANGS, Defragmentation, Gang
from lockstep.api.names import DEFRAGMENT_ANNOTATION
from lockstep.cli import kinds
from lockstep.cli.app import App
from lockstep.cli.completion import Named
from lockstep.cli.connect import Session, run
from lockstep.cli.failure import CommandFailed, usage
from lockstep.cli.options import Namespaced, Output
from lockstep.cli.output import Format, encode, note, print_lines
from lockstep.cli.state import read_cluster
from lockstep.cli.views.defrag import lines, tree
from lockstep.kube.errors import Conflict
from lockstep.scheduler.core.defrag.planner import MovePlan
from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.core.runtime.offline import moves_for

app = App()

TOLERATED = 60.0
"""Seconds of work of those that move by which the price may have grown since it was shown."""


@dataclass(frozen=True, slots=True)
class Consent:
    """Whether what is shown shall be done, at which price, and how long to wait for it."""

    yes: Annotated[bool, "--yes", "-y", "Have it done, without asking."] = False
    max_price: Annotated[
        str | None,
        "DURATION",
        "Most work thrown away, as time of one GPU (8h); the price shown by default.",
    ] = None
    wait: Annotated[bool, "Wait until everybody stands, and tell each step."] = True
    answer_within: Annotated[
        str, "DURATION", "Longest wait for a scheduler that says nothing at all."
    ] = "1m"

    @property
    def most(self) -> float | None:
        """Return the most seconds of one GPU's work to throw away; None where none is stated."""
        with usage("--max-price"):
            return None if self.max_price is None else duration.parse(self.max_price)

    @property
    def within(self) -> float:
        """Return the seconds within which a scheduler must answer."""
        with usage("--answer-within"):
            return duration.parse(self.answer_within)


@app.command()
def defrag(
    name: Named, consent: Consent, *, output: Output = Format.TABLE, target: Namespaced
) -> None:
    """Show which running jobs would have to move so that a waiting one could start; have it done.

    Only elastic jobs and jobs that say when they saved their state last (annotation
    lockstep.dev/checkpoint) are thought of, and none that is more important. The
    price is the work that they do again. With --yes, or when you agree, the scheduler plans anew
    and moves them if that costs no more than agreed; it keeps all new places until all stand.

    \b
    Examples:
      lockstep defrag pretrain
      lockstep defrag pretrain --yes --max-price 8h
      lockstep defrag gang/g1 -o json
    """
    with usage("NAME"):
        wanted = kinds.reference(name)
        if wanted.kind not in ("job", "gang"):
            raise ValueError(f"{wanted} does not wait for others; name a job or a gang")
    most, within = consent.most, consent.within
    found = run(target, lambda session: _plan(session, wanted.name))
    if output is Format.JSON:
        shown = None if isinstance(found, str) else tree(found)
        print(encode(shown, output), end="")
    else:
        print_lines(lines(wanted.name, found))
    if isinstance(found, str) or not (consent.yes or _agreed(output)):
        return
    agreed, wait = _price(found) if most is None else most, consent.wait
    run(target, lambda one: _have_done(one, wanted.name, agreed, within=within, wait=wait))


def _agreed(output: Format) -> bool:
    """Ask the user for consent; a program that reads the plan is not asked."""
    if output is Format.JSON or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    return typer.confirm("Move them now?")


def _price(plan: MovePlan) -> float:
    """Return what is agreed to by agreeing to a plan: it grows by the second."""
    return plan.price + TOLERATED * sum(move.mover.gpus for move in plan.moves)


async def _plan(session: Session, name: str) -> MovePlan | str:
    cluster = await read_cluster(session.client)
    workload = cluster.workloads.get(WorkloadKey("Gang", session.namespace, name))
    if workload is None:
        raise CommandFailed(
            f"there is no job or gang {name!r} that runs or waits in {session.namespace}",
            "`lockstep list` shows what there is; -n chooses the namespace",
        )
    if workload.bound:
        raise CommandFailed(f"{name} has nodes already", "name a job that waits")
    return moves_for(cluster, workload, time.time())


async def _have_done(
    session: Session, name: str, agreed: float, *, within: float, wait: bool
) -> None:
    """Ask for it by an annotation of the gang; the scheduler does it."""
    request = f"{agreed:.0f}s asked at {timestamp.show(time.time())}"
    body = {"metadata": {"annotations": {DEFRAGMENT_ANNOTATION: request}}}
    await session.client.patch(GANGS, name, body, session.namespace)
    if not wait:
        note(f"asked for; `lockstep explain {name}` says how far it is")
        return
    await follow(session, name, request, within)


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
    """Withdraw a request that was not answered; return the answer where it came at the last moment.

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
