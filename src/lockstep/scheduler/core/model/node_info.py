"""What of a Node object the scheduler goes by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lockstep.api.core import Node
from lockstep.api.names import (
    DEVICES_ANNOTATION,
    FENCED_ANNOTATION,
    GPU,
    NICS,
    NUMA_NODES_ANNOTATION,
)
from lockstep.scheduler.core.resources.columns import amounts
from lockstep.scheduler.core.resources.device_inventory import Layout, layout_of
from lockstep.scheduler.core.resources.selectors import TaintSet, taint_set


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """What of a Node object the scheduler goes by."""

    name: str
    labels: Mapping[str, str]
    taints: TaintSet
    schedulable: bool
    ready: bool
    allocatable: Mapping[str, int]
    layout: Layout

    @classmethod
    def of(cls, node: Node) -> NodeInfo:
        """Read them from the object."""
        allocatable = amounts(node.status.allocatable or node.status.capacity)
        stated = node.metadata.annotations
        layout = layout_of(
            stated.get(DEVICES_ANNOTATION, ""),
            allocatable.get(GPU, 0),
            stated.get(NUMA_NODES_ANNOTATION, ""),
            allocatable.get(NICS, 0),
            stated.get(FENCED_ANNOTATION, ""),
        )
        if layout.nics:  # few kubelets count NICs, and those that do count ill ones too
            healthy = layout.healthy_nics.bit_count()
            allocatable[NICS] = min(healthy, allocatable.get(NICS, healthy))
        return cls(
            name=node.metadata.name,
            labels=node.metadata.labels,
            taints=taint_set(node.spec.taints),
            schedulable=not node.spec.unschedulable,
            # A node that states nothing is taken as ready: not every kubelet's stand-in reports.
            ready=all(c.status == "True" for c in node.status.conditions if c.type == "Ready"),
            allocatable=allocatable,
            layout=layout,
        )
