"""``lockstep node``: list, get, cordon, uncordon and drain nodes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Annotated

from lockstep.api import duration
from lockstep.api.core import NODES, PODS, Pod
from lockstep.cli import kinds
from lockstep.cli.app import App
from lockstep.cli.choice import Choice
from lockstep.cli.completion import of
from lockstep.cli.connect import OfCluster, Session
from lockstep.cli.failure import CommandFailed, usage
from lockstep.cli.listing import get_all, list_all
from lockstep.cli.options import Output
from lockstep.cli.output import Format, note
from lockstep.cli.views.amounts import holds
from lockstep.kube.errors import NotFound, TooManyRequests

app = App("Nodes: see them, take them out.")

Names = Annotated[list[str], "NAME...", "Names of nodes.", of("node")]


@app.command("list")
async def list_(
    session: OfCluster,
    *,
    output: Output = Format.TABLE,
    selector: Annotated[str, "--selector", "-l", "Only nodes with these labels."] = "",
) -> None:
    """List the nodes with what is used on them.

    Example: lockstep node list -l spine=spine-0
    """
    await list_all(session, "node", NODES, Choice(selector=selector), output)


@app.command()
async def get(session: OfCluster, names: Names, *, output: Output = Format.TABLE) -> None:
    """Get nodes by name.

    Example: lockstep node get sim-0 -o yaml
    """
    wanted = [kinds.Reference("node", name, NODES) for name in names]
    await get_all(session, wanted, output)


@app.command()
async def cordon(session: OfCluster, names: Names) -> None:
    """Let no more pods onto nodes; what runs there goes on.

    Example: lockstep node cordon sim-0
    """
    await _cordon(session, names, closed=True)


@app.command()
async def uncordon(session: OfCluster, names: Names) -> None:
    """Let pods onto nodes again.

    Example: lockstep node uncordon sim-0
    """
    await _cordon(session, names, closed=False)


@app.command()
async def drain(
    session: OfCluster,
    names: Names,
    *,
    timeout: Annotated[str, "How long to wait for the pods' end."] = "5m",
) -> None:
    """Cordon nodes and evict their pods, as disruption budgets allow.

    Example: lockstep node drain sim-0 --timeout 10m
    """
    with usage("--timeout"):
        seconds = duration.parse(timeout)
    await _cordon(session, names, closed=True)
    end = time.monotonic() + seconds
    for name in names:
        await _empty(session, name, end)
        print(f"node/{name} drained")


async def _cordon(session: Session, names: Sequence[str], *, closed: bool) -> None:
    for name in names:
        await session.client.patch(NODES, name, {"spec": {"unschedulable": closed or None}})
        print(f"node/{name} {'cordoned' if closed else 'uncordoned'}")


async def _empty(session: Session, node: str, end: float) -> None:
    evicted: set[str] = set()
    said = -1
    while pods := await _held(session, node):
        if len(pods) != said:
            note(f"node {node}: {_pods(len(pods))} left")
            said = len(pods)
        if time.monotonic() > end:
            raise CommandFailed(
                f"{_pods(len(pods))} still there on {node}",
                f"`lockstep describe node/{node}` shows them; budgets may forbid their eviction",
            )
        for pod in pods:
            if pod.metadata.uid not in evicted and await _evict(session, pod):
                evicted.add(pod.metadata.uid)
        await asyncio.sleep(0.2)


def _pods(number: int) -> str:
    return "1 pod" if number == 1 else f"{number} pods"


async def _held(session: Session, node: str) -> list[Pod]:
    listing = await session.client.list(PODS, field_selector=f"spec.nodeName={node}")
    return [pod for pod in listing.items if holds(pod)]


async def _evict(session: Session, pod: Pod) -> bool:
    try:
        await session.client.evict(pod.metadata.namespace, pod.metadata.name)
    except TooManyRequests:
        return False  # A disruption budget holds it; the next round asks again.
    except NotFound:
        return True
    return True
