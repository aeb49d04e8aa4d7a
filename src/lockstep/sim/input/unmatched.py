"""What of a simulation's input means nodes that are not there, and so does nothing."""

from __future__ import annotations

from collections.abc import Iterator

from lockstep.pools.core.pool import Pool
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.sim.input.faults import Faults
from lockstep.sim.input.initial_cluster import InitialCluster


def unmatched(world: InitialCluster, cluster: Cluster, faults: Faults) -> Iterator[str]:
    """Say which selectors of the input choose none of the nodes; *cluster* is that of the world."""
    spot = faults.spot
    labels = [node.metadata.labels for node in world.nodes.values()]
    labels += [Pool(pool).labels(0) for pool in world.pools]
    if spot is not None and not any(spot.matches(one) for one in labels):
        yield (
            f"--spot {spot}: none of the {len(world.nodes)} nodes has such labels, so none is "
            "reclaimed"
        )
    for name in cluster.policies.names():
        for tier, nodes in cluster.policies.filled(name, cluster.table):
            if not nodes:
                yield f"NodePolicy {name}: no node is in its tier {tier.name}"
