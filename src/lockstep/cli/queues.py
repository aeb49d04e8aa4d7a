"""``lockstep queue``: list, get, create, explain and delete queues."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any

import typer

from lockstep.api import names
from lockstep.api.gang import GANGS
from lockstep.api.queue import QUEUES
from lockstep.cli import kinds, quantities
from lockstep.cli.connect import Session, Target, run
from lockstep.cli.failure import CommandFailed
from lockstep.cli.lifecycle import delete_all
from lockstep.cli.listing import get_all, list_all
from lockstep.cli.options import Context, DryRun, Kubeconfig, Output
from lockstep.cli.output import Format, encode, print_lines
from lockstep.cli.usage import usage
from lockstep.cli.views.queue_explain import explain_queue
from lockstep.kube.errors import AlreadyExists

app = typer.Typer(help="Queues: who may use what.", rich_markup_mode=None, no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Name of the queue.")]
Names = Annotated[list[str], typer.Argument(metavar="NAME...", help="Names of queues.")]
Amounts = Annotated[
    list[str] | None,
    typer.Option(metavar="RESOURCE=AMOUNT", help="May be repeated: nvidia.com/gpu=8, gpu=8, cpu=4"),
]


@app.command("list")
def list_(
    *, output: Output = Format.TABLE, kubeconfig: Kubeconfig = None, context: Context = None
) -> None:
    """List the queues.

    Example: lockstep queue list
    """
    run(Target(kubeconfig, context), lambda session: list_all(session, "queue", QUEUES, "", output))


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
def create(
    name: Name,
    *,
    parent: Annotated[str | None, typer.Option(help="Queue that it is part of.")] = None,
    weight: Annotated[int, typer.Option(min=0, help="Share of what is left over.")] = 1,
    guaranteed: Amounts = None,
    limit: Amounts = None,
    dry_run: DryRun = False,
    output: Output = Format.YAML,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Create a queue.

    Example: lockstep queue create research --guaranteed gpu=64 --limit gpu=128 --weight 2
    """
    spec: dict[str, Any] = {"weight": weight}
    if parent is not None:
        spec["parent"] = parent
    with usage("--guaranteed"):
        spec |= {"guaranteed": quantities.amounts(guaranteed)} if guaranteed else {}
    with usage("--limit"):
        spec |= {"limit": quantities.amounts(limit)} if limit else {}
    queue = {
        "apiVersion": names.API_VERSION,
        "kind": QUEUES.kind,
        "metadata": {"name": name},
        "spec": spec,
    }
    if dry_run:
        print(encode(queue, Format.JSON if output is Format.JSON else Format.YAML), end="")
        return
    run(Target(kubeconfig, context), lambda session: _create(session, queue))


@app.command()
def delete(names_: Names, *, kubeconfig: Kubeconfig = None, context: Context = None) -> None:
    """Delete queues; what waits in them stays and says that its queue is missing.

    Example: lockstep queue delete research
    """
    wanted = [kinds.Reference("queue", name, QUEUES) for name in names_]
    run(Target(kubeconfig, context), lambda session: delete_all(session, wanted, 60.0))


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
    try:
        await session.client.create(QUEUES, queue)
    except AlreadyExists:
        raise CommandFailed(
            f"queue {name} exists already", f"`lockstep queue get {name} -o yaml` shows it"
        ) from None
    print(f"queue/{name} created")
