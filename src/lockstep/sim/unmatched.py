"""What of a simulation's input means nodes that are not there, and so does nothing."""

from __future__ import annotations

from collections.abc import Iterator

from lockstep.scheduler.core.cluster import Cluster
from lockstep.sim.faults import Faults
from lockstep.sim.world import World


def unmatched(world: World, cluster: Cluster, faults: Faults) -> Iterator[str]:
    """Say which selectors of the input choose none of the nodes; *cluster* is that of the world."""
    spot = faults.spot
    if spot is not None and not any(spot.matches(n.metadata.labels) for n in world.nodes.values()):
        yield (
            f"--spot {spot}: none of the {len(world.nodes)} nodes has such labels, so none is "
            "reclaimed"
        )
    for name in cluster.policies.names():
        for tier, nodes in cluster.policies.filled(name, cluster.table):
            if not nodes:
                yield f"NodePolicy {name}: no node is in its tier {tier.name}"
