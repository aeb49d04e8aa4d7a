"""Simulated nodes, ended at each call: every pod starts and ends once, no address twice."""

from __future__ import annotations

import asyncio

from tests.support import parts
from tests.support.crashing import Arena, Scenario, Stage
from tests.support.lives import in_process
from tests.support.scheduler import add_gang, pod_body

from lockstep.api.core import LEASES, NODES, PODS
from lockstep.api.names import FAIL_NODE_ANNOTATION, RUNTIME_ANNOTATION


async def a_day(stage: Stage) -> None:
    """Pods run, end and are deleted; a node dies and comes back."""
    client = stage.client
    stage.start()
    short = pod_body("short", gpus=1)
    short["metadata"]["annotations"] = {RUNTIME_ANNOTATION: "0"}
    await asyncio.gather(
        client.create(PODS, short),
        client.create(PODS, pod_body("deleted", gpus=1)),
        add_gang(client, "gang", 3, gpus=4),
    )

    async def phases() -> dict[str, str]:
        return {p.metadata.name: p.status.phase for p in (await client.list(PODS, "default")).items}

    async def all_started() -> bool:
        found = await phases()
        return found.pop("short") == "Succeeded" and set(found.values()) == {"Running"}

    await stage.until(all_started, "all pods run")
    await client.delete(PODS, "deleted", "default")
    node = (await client.get(PODS, "gang-0", "default")).spec.node_name
    for wish, ready in (("power", "Unknown"), (None, "True")):
        change = {"metadata": {"annotations": {FAIL_NODE_ANNOTATION: wish}}}
        await client.patch(NODES, node, change)

        async def told(ready: str = ready) -> bool:
            return (await readiness(stage))[node] == ready

        await stage.until(told, f"the node says {ready}")

    async def deleted() -> bool:
        return "deleted" not in await phases()

    await stage.until(deleted, "the pod is gone")


async def readiness(stage: Stage) -> dict[str, str]:
    """Return by node what its Ready condition says."""
    return {
        node.metadata.name: next(
            (c.status for c in node.status.conditions if c.type == "Ready"), ""
        )
        for node in (await stage.client.list(NODES)).items
    }


async def outcome(stage: Stage) -> object:
    pods = (await stage.client.list(PODS, "default")).items
    addresses = [p.status.pod_ip for p in pods if p.status.phase == "Running"]
    leases = (await stage.client.list(LEASES, "kube-node-lease")).items
    return {
        "nodes": await readiness(stage),
        "pods": {
            p.metadata.name: (
                p.status.phase,
                sorted((c.type, c.status) for c in p.status.conditions),
            )
            for p in pods
        },
        "addresses": (len(addresses), len(set(addresses)), all(addresses)),
        "leases": sorted(lease.metadata.name for lease in leases),
        "made": dict(stage.audit.made),
    }


async def test_it_ends_the_same_wherever_the_nodes_end(arena: Arena) -> None:
    scenario = Scenario(in_process(parts.nodes), a_day, outcome, beside=(parts.scheduler,))
    await arena.endures(scenario)
