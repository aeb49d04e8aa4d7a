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
from lockstep.cli.app import App
from lockstep.cli.choice import Choice
from lockstep.cli.completion import of
from lockstep.cli.connect import OfCluster, Session, run
from lockstep.cli.deletion import delete_all
from lockstep.cli.failure import CommandFailed
from lockstep.cli.listing import get_all, list_all
from lockstep.cli.options import Cluster, DryRun, Force, Output
from lockstep.cli.output import Format, encode, print_lines
from lockstep.cli.queue_guard import by_name, check_place, check_spec, did_you_mean
from lockstep.cli.queue_options import Shares, in_place_of, merged, stated
from lockstep.cli.views.queue_explain import explain_queue
from lockstep.kube.named import in_all_or_own, readable

app = App("Queues: who may use what.")

Name = Annotated[str, "Name of the queue.", of("queue")]
Names = Annotated[list[str], "NAME...", "Names of queues.", of("queue")]


@app.command("list")
async def list_(session: OfCluster, *, output: Output = Format.TABLE) -> None:
    """List the queues.

    Example: lockstep queue list
    """
    await list_all(session, "queue", QUEUES, Choice(), output)


@app.command()
async def get(session: OfCluster, names_: Names, *, output: Output = Format.TABLE) -> None:
    """Get queues by name.

    Example: lockstep queue get research -o yaml
    """
    wanted = [kinds.Reference("queue", name, QUEUES) for name in names_]
    await get_all(session, wanted, output)


@app.command()
def create(
    name: Name,
    *,
    shares: Shares,
    dry_run: DryRun = False,
    output: Output = Format.YAML,
    target: Cluster,
) -> None:
    """Create a queue.

    \b
    Examples:
      lockstep queue create research --guaranteed gpu=64 --limit gpu=128 --weight 2
      lockstep queue create vision --parent research --borrowing-limit gpu=16
      lockstep queue create scavengers --weight 0
      lockstep queue create night --allow group:night-shift --allow namespace:guest
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
    run(target, lambda session: _create(session, queue))


@app.command()
async def update(session: OfCluster, name: Name, *, shares: Shares) -> None:
    """Change a queue; what is not named stays, RESOURCE=none takes an amount out.

    What runs goes on also where a new limit is lower; nothing more starts until it is kept.

    \b
    Examples:
      lockstep queue update research --limit gpu=256
      lockstep queue update research --limit gpu=none --lending Never
      lockstep queue update vision --parent ''
      lockstep queue update night --allow labels:kind=research
    """
    change = stated(shares)
    if not change:
        raise typer.BadParameter("names nothing to change", param_hint="OPTIONS")
    queues = await by_name(session)
    if name not in queues:
        raise CommandFailed(
            f"there is no queue {name!r}{did_you_mean(name, queues)}",
            "`lockstep queue list` shows what there is",
        )
    before = to_builtins(queues[name].spec)
    check_place(name, merged(before, change), queues)
    await session.client.patch(QUEUES, name, {"spec": in_place_of(change, before)})
    print(f"queue/{name} updated")


@app.command()
async def delete(session: OfCluster, names_: Names, *, force: Force = False) -> None:
    """Delete queues; what waits in them stays and says that its queue is missing.

    A queue with children or running jobs is deleted with --force only.

    Example: lockstep queue delete research
    """
    wanted = [kinds.Reference("queue", name, QUEUES) for name in names_]
    await delete_all(session, wanted, 60.0, force=force)


@app.command()
async def explain(session: OfCluster, name: Name) -> None:
    """Say what a queue holds and may have, and why what waits in it waits.

    Example: lockstep queue explain research
    """
    client = session.client
    queues, gangs = await asyncio.gather(
        readable(client, QUEUES), in_all_or_own(client, GANGS, session.namespace)
    )
    queue = next((q for q in queues if q.metadata.name == name), None)
    if queue is None:
        raise CommandFailed(
            f"there is no queue {name!r} that you may read",
            "`lockstep queue list` shows what there is",
        )
    print_lines(explain_queue(queue, queues, gangs, time.time()))


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
