"""The controller of addresses, ended at each of its calls: every pod has its own, once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.crashing import Arena, Scenario, Stage
from tests.support.lives import in_process
from tests.support.scheduler import add_nodes

from lockstep.api.core import NODES, PODS
from lockstep.api.names import GANG_LABEL, NICS
from lockstep.api.topology import TOPOLOGIES
from lockstep.devices.network.planner import add_addresses
from lockstep.devices.network.planning import node_plan
from lockstep.kube.client import Client
from lockstep.runtime.manager import Manager

Json = dict[str, Any]
WIRED = ("wired-1", "wired-2")


async def addresses(client: Client, ready: Callable[[str], None]) -> None:
    """Plan addresses, without an election."""
    manager = Manager(client, name="controllers", leader_elect=False)
    add_addresses(manager)
    await manager.run(ready)


def pod(name: str, node: str) -> Json:
    main = {"name": "main", "image": "none", "resources": {"limits": {NICS: "1"}}}
    meta = {"name": name, "namespace": "default", "labels": {GANG_LABEL: "rails"}}
    return {"metadata": meta, "spec": {"nodeName": node, "containers": [main]}}


async def told(stage: Stage) -> None:
    """A gang is placed on two nodes; then one of its pods is gone."""
    await add_nodes(stage.client, WIRED, gpus=0)
    rails = [
        {"name": f"rail{n}", "subnet": f"10.{60 + n}.0.0/16", "pool": f"10.{60 + n}.128.0/17"}
        for n in (0, 1)
    ]
    tiers = [{"name": "node", "label": "kubernetes.io/hostname"}]
    spec = {"tiers": tiers, "rails": rails}
    await stage.client.create(TOPOLOGIES, {"metadata": {"name": "default"}, "spec": spec})
    for number, node in enumerate(WIRED):
        await stage.client.create(PODS, pod(f"rank-{number}", node))
    stage.start()
    await planned(stage, 1, 1)
    await stage.client.delete(PODS, "rank-0", "default", grace_seconds=0)
    await planned(stage, 0, 1)


async def planned(stage: Stage, *counts: int) -> None:
    async def look() -> bool:
        nodes = [await stage.client.get(NODES, name) for name in WIRED]
        return [len(node_plan(one).pods) for one in nodes] == list(counts)

    await stage.until(look, f"{counts} pods have addresses")


async def outcome(stage: Stage) -> object:
    """Return the rails of each planned pod; which address it is may differ after a crash."""
    ends = []
    for name in WIRED:
        those = node_plan(await stage.client.get(NODES, name)).pods.values()
        ends.append([[one.rail for one in addresses] for addresses in those])
        inside = [one.address.split(".")[2] for addresses in those for one in addresses]
        assert all(int(part) >= 128 for part in inside), "addresses are of the pools"
    return ends


def story() -> Scenario:
    return Scenario(in_process(addresses), told, outcome)


async def test_addresses_are_whole_wherever_the_controller_ends(arena: Arena) -> None:
    await arena.endures(story())
