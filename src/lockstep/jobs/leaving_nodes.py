"""Nodes that go away soon: spot instances that are taken back, machines that are drained.

Clouds and autoscalers say so by a taint; a launcher that asks its machine's metadata says so in its
report. The job goes on elsewhere while the node is still there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from lockstep.api.core import Node
from lockstep.api.names import RECLAIM_TAINT
from lockstep.api.rendezvous import Report
from lockstep.jobs.failures import Failure
from lockstep.jobs.roster import Roster, leaving

TAINTS: Final = frozenset(
    {
        # AWS Node Termination Handler
        "aws-node-termination-handler/spot-itn",
        "aws-node-termination-handler/asg-lifecycle-termination",
        "aws-node-termination-handler/rebalance-recommendation",
        # GKE
        "cloud.google.com/impending-node-termination",
        # AKS
        "remediator.kubernetes.azure.com/unschedulable",
        # Karpenter, cluster-autoscaler
        "karpenter.sh/disrupted",
        "karpenter.sh/disruption",
        "ToBeDeletedByClusterAutoscaler",
        "lockstep.dev/leaving",
        RECLAIM_TAINT,
    }
)


def notice_of(node: Node) -> str:
    """Return the taint by which *node* is known to go away soon; nothing where it is not."""
    return next((one.key for one in node.spec.taints if one.key in TAINTS), "")


def failures(
    roster: Roster,
    replacing: Mapping[str, str],
    going: Mapping[str, str],
    told: Mapping[str, Report],
    spares: Sequence[str],
) -> Iterator[Failure]:
    """Yield the pods with ranks that should go on elsewhere now.

    A node that is tainted gets no pod again. A node of which a launcher alone knows may well, so
    that such a pod moves only where spares stand by on other nodes.
    """
    noticed = [name for name in roster.wanted if name in told and told[name].notice]
    spare_nodes = {roster.standing[name].spec.node_name for name in spares}
    for name, pod in roster.current.items():
        uid, node = pod.metadata.uid, pod.spec.node_name
        if replacing.get(name) == uid or leaving(pod) or pod.status.phase != "Running":
            continue
        if name in going:
            why = f"{name} leaves {node}, which goes away: {going[name]}"
            yield Failure(name, uid, why, disrupted=True)
        elif name in noticed and len(spare_nodes - {node}) >= len(noticed):
            why = f"{name} leaves {node}, which goes away: {told[name].notice}"
            yield Failure(name, uid, why, disrupted=True)
