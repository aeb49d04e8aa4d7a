"""Who holds what others wait for."""

from __future__ import annotations

from collections import Counter

from lockstep.scheduler.core import words
from lockstep.scheduler.core.cluster import Cluster
from lockstep.scheduler.core.nodes import IntArray

NODES_LOOKED_AT = 512
"""Over more nodes nobody in particular is in the way, and the answer would cost too much."""
NAMED = 3
"""Holders named; the rest is summed up."""


def holders(cluster: Cluster, rows: IntArray, resource: str, namespace: str) -> str:
    """Return in words who holds a resource on some nodes, the largest first.

    Only what lives in *namespace* is named: who else uses the cluster is nobody's business.
    """
    if len(rows) > NODES_LOOKED_AT:
        return ""
    held: Counter[str] = Counter()
    elsewhere = 0
    for row in rows:
        for member in cluster.on_node(cluster.table.name(int(row))):
            amount = member.shape.request.get(resource, 0)
            unit = member.unit
            if member.namespace != namespace:
                elsewhere += amount
            elif amount:
                name = f"gang {unit.name}" if unit and unit.kind == "Gang" else f"pod {member.name}"
                held[name] += amount
    ranked = sorted(held.items(), key=lambda item: (-item[1], item[0]))
    parts = [f"{name} ({words.quantity(resource, n)})" for name, n in ranked[:NAMED]]
    rest = sum(amount for _, amount in ranked[NAMED:])
    if rest:
        parts.append(f"others ({words.quantity(resource, rest)})")
    if elsewhere:
        parts.append(f"other namespaces ({words.quantity(resource, elsewhere)})")
    return f"held by {words.listing(parts)}" if parts else ""
