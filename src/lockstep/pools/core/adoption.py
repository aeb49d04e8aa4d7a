"""Nodes that others have made for a pool's requests and that do not say whose they are. Pure.

cluster-autoscaler adds nodes of a node group of its own. They are told by the labels of the pool's
template, and become the pool's as soon as they are seen: they get its labels and are held.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from lockstep.api import names, timestamp
from lockstep.api.core import Node
from lockstep.api.node_pool import PoolRequest
from lockstep.api.wire import to_builtins
from lockstep.pools.core.pool import Pool

KEEP_ANNOTATION: Final = "cluster-autoscaler.kubernetes.io/scale-down-disabled"


@dataclass(frozen=True, slots=True)
class Adoption:
    """A node, and the place in its pool that it gets."""

    node: Node
    request: PoolRequest
    slot: int

    def patch(self, pool: Pool) -> dict[str, Any]:
        """Return the merge patch that makes the node the pool's."""
        taints = to_builtins(self.node.spec.taints)
        if self.request.holders:
            held = {"key": names.HELD_TAINT, "value": self.request.id, "effect": "NoSchedule"}
            taints.append(held)
        labels = {names.POOL_LABEL: pool.name, names.POOL_SLOT_LABEL: str(self.slot)}
        return {
            "metadata": {
                "resourceVersion": self.node.metadata.resource_version,
                "labels": labels,
                "annotations": {KEEP_ANNOTATION: "true"},
            },
            "spec": {"taints": taints},
        }


def adoptions(pool: Pool, nodes: Iterable[Node]) -> list[Adoption]:
    """Return which of all *nodes* become the pool's, the oldest request's slots first."""
    wanted = pool.object.spec.template.labels
    places = [
        (request, slot)
        for request in sorted(pool.requests, key=lambda one: one.at)
        for slot in request.slots
        if slot not in pool.names
    ]
    if pool.object.spec.provider.provisioning_request is None or not wanted or not places:
        return []
    new = [node for node in nodes if _new(node, wanted)]
    found = []
    for node in sorted(new, key=lambda one: one.metadata.creation_timestamp or ""):
        made = timestamp.read(node.metadata.creation_timestamp) or 0.0
        place = next((one for one in places if made >= timestamp.parse(one[0].at)), None)
        if place is not None:
            places.remove(place)
            found.append(Adoption(node, *place))
    return found


def _new(node: Node, wanted: dict[str, str]) -> bool:
    labels = node.metadata.labels
    mine = wanted.items() <= labels.items() and names.POOL_LABEL not in labels
    return mine and not node.spec.unschedulable
