"""Nodes that the cloud is about to take back: a taint says so. Pure."""

from __future__ import annotations

from typing import Final

from lockstep.api.core import Node
from lockstep.api.names import RECLAIM_TAINT

NOTICES: Final = frozenset(
    {
        RECLAIM_TAINT,
        "ToBeDeletedByClusterAutoscaler",
        "aws-node-termination-handler/spot-itn",
        "cloud.google.com/impending-node-termination",
        "karpenter.sh/disrupted",
        "remediator.kubernetes.azure.com/unschedulable",
    }
)
"""Keys of the taints by which clouds and their helpers announce that a node goes."""


def announced(node: Node) -> bool:
    """Return whether a node is about to be taken back."""
    return any(
        taint.key in NOTICES and taint.effect in ("NoSchedule", "NoExecute")
        for taint in node.spec.taints
    )
