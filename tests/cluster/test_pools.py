"""A pool gets nodes for a gang, and gives them back; its nodes are simulated."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.on_cluster import OnCluster
from tools.cluster import install

from lockstep.api.names import LEAF_LABEL, POOL_LABEL
from lockstep.api.node_pool import NODE_POOLS
from lockstep.api.wire import to_builtins
from lockstep.nodes.simulated.pools import parse_pool

POOL = "story"
SIMULATED = ("--reuse-values", "--wait", "--set", "simulatedNodes.spec=")


def simulate(cluster: OnCluster, enabled: bool) -> None:
    words = ("upgrade", install.RELEASE, str(install.CHART), "--namespace", install.NAMESPACE)
    value = f"simulatedNodes.enabled={str(enabled).lower()}"
    install.run(cluster.cluster, *words, *SIMULATED, "--set", value)


def nodes(cluster: OnCluster) -> list[dict[str, Any]]:
    words = ("get", "nodes", "-l", f"{POOL_LABEL}={POOL}", "-o", "json")
    return list(json.loads(cluster.kubectl(*words))["items"])


@pytest.fixture
def pool(cluster: OnCluster) -> Iterator[OnCluster]:
    """The cluster with a pool of up to eight nodes under leaves of four."""
    simulate(cluster, True)
    made = to_builtins(parse_pool(f"{POOL}=0..8x8,nodes-per-leaf=4,idle=1s"))
    kind = {"apiVersion": NODE_POOLS.api_version, "kind": NODE_POOLS.kind}
    cluster.apply({**kind, "metadata": {"name": POOL}, "spec": made["spec"]})
    yield cluster
    cluster.kubectl("delete", "trainingjobs.lockstep.dev", "--all")
    cluster.wait(lambda: not nodes(cluster), 120, "the pool's nodes are gone")
    cluster.kubectl("delete", "nodepool", POOL)
    simulate(cluster, False)


@pytest.mark.timeout(600)
def test_pool_grows_by_a_gangs_nodes_and_shrinks(pool: OnCluster) -> None:
    words = ("submit", "plain", "--name", "big", "--simulated", "--workers", "4", "--gpus", "8")
    done = pool.lockstep(*words, "--topology", "leaf", "--", "train")
    assert done.returncode == 0, done.stderr

    def running() -> bool:
        return bool(pool.get("gang", "big").get("status", {}).get("phase") == "Running")

    pool.wait(running, 120, "the gang runs")
    made = nodes(pool)
    assert len(made) == 4
    assert len({node["metadata"]["labels"][LEAF_LABEL] for node in made}) == 1
    assert "gang" in pool.lockstep("pool", "explain", POOL).stdout
    pool.kubectl("delete", "trainingjobs.lockstep.dev", "big")
    pool.wait(lambda: not nodes(pool), 120, "the pool gives its nodes back")
