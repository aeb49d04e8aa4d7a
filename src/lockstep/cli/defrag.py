"""``defrag``: which running jobs would have to move so that a waiting one fits."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import typer

from lockstep.api import duration, timestamp
from lockstep.api.names import CHECKPOINT_ANNOTATION, ELAPSED_ANNOTATION
from lockstep.cli import kinds
from lockstep.cli.connect import Session, Target, run
from lockstep.cli.failure import CommandFailed
from lockstep.cli.options import Context, Kubeconfig, Named, Namespace, Output
from lockstep.cli.output import Format, encode, print_lines
from lockstep.cli.snapshot import take
from lockstep.cli.usage import usage
from lockstep.sim.defrag import Mover, Plan, defragment
from lockstep.sim.workload import Workload, read_workloads
from lockstep.sim.world import InputError, World, read_world

app = typer.Typer(rich_markup_mode=None)

Json = dict[str, Any]
HOUR = 3600.0


@app.command()
def defrag(
    name: Named,
    *,
    output: Output = Format.TABLE,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Say which running jobs would have to move so that a waiting one could start, and the price.

    Only elastic jobs and jobs that say when they saved their state last (annotation
    lockstep.dev/checkpoint of their gang) are thought of. Nothing is moved: the plan is shown.

    \b
    Examples:
      lockstep defrag pretrain
      lockstep defrag gang/g1 -o json
    """
    with usage("NAME"):
        wanted = kinds.reference(name)
        if wanted.kind not in ("job", "gang"):
            raise ValueError(f"{wanted} does not wait for others; name a job or a gang")
    target = Target(kubeconfig, context, namespace)
    plan = run(target, lambda session: _plan(session, wanted.name))
    if output is Format.JSON:
        print(encode(None if plan is None else asdict(plan), output), end="")
    else:
        print_lines(lines(wanted.name, plan))


def lines(name: str, plan: Plan | None) -> list[str]:
    """Return a plan as lines of text."""
    if plan is None:
        return [
            f"no moves of elastic or checkpointed jobs would let {name} start; "
            f"`lockstep explain {name}` says what it lacks"
        ]
    count = len(plan.moves)
    shown = [
        f"{name} would start if {count} {'job' if count == 1 else 'jobs'} moved; "
        f"{plan.price / HOUR:.1f} GPU hours of work would be done again"
    ]
    for move in plan.moves:
        price = f"{duration.show(move.price)} of one GPU"
        shown.append(f"  {move.job}: {_nodes(move.before)} -> {_nodes(move.after)}  ({price})")
    return [*shown, f"  then {name} on {_nodes(plan.nodes.values())}"]


def _nodes(nodes: Iterable[str]) -> str:
    return ", ".join(
        f"{node} ({pods})" if pods > 1 else node for node, pods in sorted(Counter(nodes).items())
    )


async def _plan(session: Session, name: str) -> Plan | None:
    there = await take(session)
    try:
        world = read_world(there)
        works = read_workloads(there, world)
    except InputError as error:
        raise CommandFailed(str(error)) from None
    wanted = next((w for w in works if w.key[1:] == (session.namespace, name)), None)
    if wanted is None:
        raise CommandFailed(
            f"there is no job or gang {name!r} that runs or waits in {session.namespace}",
            "`lockstep list` shows what there is; -n chooses the namespace",
        )
    if world.standing(wanted.key):
        raise CommandFailed(f"{name} has nodes already", "name a job that waits")
    return defragment(world, works, wanted, list(_movers(there, world, works, time.time())))


def _movers(
    there: Sequence[Json], world: World, works: Sequence[Workload], now: float
) -> Iterator[Mover]:
    """Yield the running jobs that may move; the price is the work since the last checkpoint."""
    gangs = {
        (obj["metadata"].get("namespace"), obj["metadata"]["name"]): obj["metadata"]
        for obj in there
        if obj["kind"] == "Gang"
    }
    for work in works:
        if not world.standing(work.key):
            continue
        annotations = gangs.get(work.key[1:], {}).get("annotations", {})
        saved = annotations.get(CHECKPOINT_ANNOTATION)
        elastic = any((g.desired or g.min) > g.min for g in work.gang.spec.groups)
        if saved is None and not elastic:
            continue
        ran = float(annotations.get(ELAPSED_ANNOTATION, 0.0))
        since = min(ran, now - timestamp.parse(saved)) if saved is not None else ran
        yield Mover(work, max(0.0, since) * work.gpus)
