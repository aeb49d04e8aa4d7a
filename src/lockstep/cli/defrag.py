"""``defrag``: which running jobs would have to move so that a waiting one fits, and moving them."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from lockstep.api import duration, timestamp
from lockstep.api.gang import GANGS
from lockstep.api.names import DEFRAGMENT_ANNOTATION
from lockstep.cli import kinds
from lockstep.cli.connect import Session, Target, run
from lockstep.cli.defrag_wait import follow
from lockstep.cli.failure import CommandFailed
from lockstep.cli.grouped import grouped
from lockstep.cli.options import Context, Kubeconfig, Named, Namespace, Output
from lockstep.cli.output import Format, encode, note, print_lines
from lockstep.cli.state import read_cluster
from lockstep.cli.usage import usage
from lockstep.cli.views.defrag import lines, tree
from lockstep.scheduler.core.defrag.planner import MovePlan
from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.core.runtime.offline import moves_for

app = typer.Typer(rich_markup_mode=None)

Json = dict[str, Any]
TOLERATED = 60.0
"""Seconds of work of those that move by which the price may have grown since it was shown."""


@dataclass(frozen=True, slots=True)
class Consent:
    """Whether what is shown shall be done, at which price, and how long to wait for it."""

    yes: Annotated[bool, typer.Option("--yes", "-y", help="Have it done, without asking.")] = False
    max_price: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="Most work thrown away, as time of one GPU (8h); the price shown by default.",
        ),
    ] = None
    wait: Annotated[bool, typer.Option(help="Wait until everybody stands, and tell each step.")] = (
        True
    )
    answer_within: Annotated[
        str,
        typer.Option(
            metavar="DURATION", help="Longest wait for a scheduler that says nothing at all."
        ),
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
@grouped
def defrag(
    name: Named,
    consent: Consent,
    *,
    output: Output = Format.TABLE,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
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
    target = Target(kubeconfig, context, namespace)
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
    """Ask whoever sits there; nobody does where the plan is read by a program."""
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
    """Ask for it on the gang, as anybody may who may change it; the scheduler does it."""
    request = f"{agreed:.0f}s asked at {timestamp.show(time.time())}"
    body = {"metadata": {"annotations": {DEFRAGMENT_ANNOTATION: request}}}
    await session.client.patch(GANGS, name, body, session.namespace)
    if not wait:
        note(f"asked for; `lockstep explain {name}` says how far it is")
        return
    await follow(session, name, request, within)
