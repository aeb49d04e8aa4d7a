"""``lockstep status``: is it up, where, which version, and what goes on there."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Annotated, Any

import msgspec
import typer

from lockstep import __version__
from lockstep.api.core import NODES
from lockstep.api.queue import QUEUES
from lockstep.api.training import TRAINING_JOBS
from lockstep.cli.connect import Session, Target, run
from lockstep.cli.options import Context, Kubeconfig
from lockstep.cli.output import Format, encode, print_lines, structured
from lockstep.cli.views.nodes import status as node_status

app = typer.Typer(rich_markup_mode=None)


@app.command()
def status(
    *,
    output: Annotated[Format, typer.Option("--output", "-o", help="table, json or yaml.")] = (
        Format.TABLE
    ),
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show which server this is, its version, and how many nodes, jobs and queues there are.

    The exit code is 1 when no server answers.

    \b
    Examples:
      lockstep status
      lockstep status -o json
    """
    target = Target(kubeconfig, context, all_namespaces=True)
    found = run(target, _status)
    if structured(output):
        print(encode(found, output), end="")
        return
    print_lines(_lines(found))


async def _status(session: Session) -> dict[str, Any]:
    client = session.client
    version, nodes, jobs, queues = await asyncio.gather(
        client.get_raw("/version"),
        client.list(NODES),
        client.list(TRAINING_JOBS),
        client.list(QUEUES),
    )
    ready = [q for q in queues.items if all(c.status != "False" for c in q.status.conditions)]
    return {
        "server": client.config.server,
        "serverVersion": msgspec.json.decode(version).get("gitVersion", "unknown"),
        "clientVersion": __version__,
        "nodes": dict(sorted(Counter(node_status(one) for one in nodes.items).items())),
        "jobs": dict(sorted(Counter(job.status.phase for job in jobs.items).items())),
        "queues": {"Ready": len(ready), "NotReady": len(queues.items) - len(ready)},
    }


def _lines(found: dict[str, Any]) -> list[str]:
    return [
        f"server  {found['server']}, version {found['serverVersion']}",
        f"client  version {found['clientVersion']}",
        *(f"{what:7} {_counts(found[what])}" for what in ("nodes", "jobs", "queues")),
    ]


def _counts(counts: dict[str, int]) -> str:
    shown = [f"{number} {name}" for name, number in counts.items() if number]
    return ", ".join(shown) or "none"
