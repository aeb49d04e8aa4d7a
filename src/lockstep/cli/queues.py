"""``lockstep queue``: list, get, create, update, explain and delete queues."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any

import typer

from lockstep.api import names
from lockstep.api.gang import GANGS
from lockstep.api.queue import QUEUES
from lockstep.api.wire import to_builtins
from lockstep.cli import kinds
from lockstep.cli.choice import Choice
from lockstep.cli.completion import of
from lockstep.cli.connect import Session, Target, run
from lockstep.cli.failure import CommandFailed
from lockstep.cli.grouped import grouped
from lockstep.cli.lifecycle import delete_all
from lockstep.cli.listing import get_all, list_all
from lockstep.cli.options import Context, DryRun, Force, Kubeconfig, Output
from lockstep.cli.output import Format, encode, print_lines
from lockstep.cli.queue_guard import by_name, check_place, check_spec, did_you_mean
from lockstep.cli.queue_options import Shares, merged, stated
from lockstep.cli.views.queue_explain import explain_queue

app = typer.Typer(help="Queues: who may use what.", rich_markup_mode=None, no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Name of the queue.", autocompletion=of("queue"))]
Names = Annotated[
    list[str],
    typer.Argument(metavar="NAME...", help="Names of queues.", autocompletion=of("queue")),
]


@app.command("list")
def list_(
    *, output: Output = Format.TABLE, kubeconfig: Kubeconfig = None, context: Context = None
) -> None:
    """List the queues.

    Example: lockstep queue list
    """
    run(
        Target(kubeconfig, context),
        lambda session: list_all(session, "queue", QUEUES, Choice(), output),
    )


@app.command()
def get(
    names_: Names,
    *,
    output: Output = Format.TABLE,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Get queues by name.

    Example: lockstep queue get research -o yaml
    """
    wanted = [kinds.Reference("queue", name, QUEUES) for name in names_]
    run(Target(kubeconfig, context), lambda session: get_all(session, wanted, output))


@app.command()
@grouped
def create(
    name: Name,
    *,
    shares: Shares,
    dry_run: DryRun = False,
    output: Output = Format.YAML,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Create a queue.

    \b
    Examples:
      lockstep queue create research --guaranteed gpu=64 --limit gpu=128 --weight 2
      lockstep queue create vision --parent research --borrowing-limit gpu=16
      lockstep queue create scavengers --weight 0
    """
    given = {field: value for field, value in stated(shares).items() if value is not None}
    spec = {"weight": 1, **given}
    queue = {
        "apiVersion": names.API_VERSION,
        "kind": QUEUES.kind,
        "metadata": {"name": name},
        "spec": spec,
    }
    check_spec(name, spec)
    if dry_run:
        print(encode(queue, Format.JSON if output is Format.JSON else Format.YAML), end="")
        return
    run(Target(kubeconfig, context), lambda session: _create(session, queue))


@app.command()
@grouped
def update(
    name: Name,
    *,
    shares: Shares,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Change a queue; what is not named stays, RESOURCE=none takes an amount out.

    What runs goes on also where a new limit is lower; nothing more starts until it is kept.

    \b
    Examples:
      lockstep queue update research --limit gpu=256
      lockstep queue update research --limit gpu=none --lending Never
      lockstep queue update vision --parent ''
    """
    change = stated(shares)
    if not change:
        raise typer.BadParameter("names nothing to change", param_hint="OPTIONS")
    run(Target(kubeconfig, context), lambda session: _update(session, name, change))


@app.command()
def delete(
    names_: Names,
    *,
    force: Force = False,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Delete queues; what waits in them stays and says that its queue is missing.

    A queue with children or running jobs is deleted with --force only.

    Example: lockstep queue delete research
    """
    wanted = [kinds.Reference("queue", name, QUEUES) for name in names_]
    target = Target(kubeconfig, context)
    run(target, lambda session: delete_all(session, wanted, 60.0, force=force))


@app.command()
def explain(name: Name, *, kubeconfig: Kubeconfig = None, context: Context = None) -> None:
    """Say what a queue holds and may have, and why what waits in it waits.

    Example: lockstep queue explain research
    """
    print_lines(run(Target(kubeconfig, context), lambda session: _explain(session, name)))


async def _explain(session: Session, name: str) -> list[str]:
    queues, gangs = await asyncio.gather(session.client.list(QUEUES), session.client.list(GANGS))
    queue = next((q for q in queues.items if q.metadata.name == name), None)
    if queue is None:
        raise CommandFailed(
            f"there is no queue {name!r}", "`lockstep queue list` shows what there is"
        )
    return explain_queue(queue, queues.items, gangs.items, time.time())


async def _create(session: Session, queue: dict[str, Any]) -> None:
    name = queue["metadata"]["name"]
    queues = await by_name(session)
    if name in queues:
        raise CommandFailed(
            f"queue {name} exists already",
            f"`lockstep queue get {name} -o yaml` shows it, `lockstep queue update {name}` "
            "changes it",
        )
    check_place(name, queue["spec"], queues)
    await session.client.create(QUEUES, queue)
    print(f"queue/{name} created")


async def _update(session: Session, name: str, change: dict[str, Any]) -> None:
    queues = await by_name(session)
    if name not in queues:
        raise CommandFailed(
            f"there is no queue {name!r}{did_you_mean(name, queues)}",
            "`lockstep queue list` shows what there is",
        )
    check_place(name, merged(to_builtins(queues[name].spec), change), queues)
    await session.client.patch(QUEUES, name, {"spec": change})
    print(f"queue/{name} updated")
