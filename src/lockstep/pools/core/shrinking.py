"""Which nodes go back: those on which nothing has run for a while and that nothing needs. Pure.

A node goes in two steps, so that no pod is placed on it meanwhile: it is cordoned, and when it has
stood so for a moment and is still empty, it is given back. Otherwise it is uncordoned.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from lockstep.api import timestamp
from lockstep.api.core import Node
from lockstep.api.names import IDLE_ANNOTATION, LEAVING_ANNOTATION
from lockstep.pools.core.pool import Pool, held_for, slot_of
from lockstep.pools.core.reclaiming import announced

SETTLE_SECONDS = 2.0
"""Seconds that a node stands cordoned before it goes: what was being placed there shows by then."""


@dataclass(slots=True)
class Shrinkage:
    """What to do with a pool's nodes."""

    idle: list[Node] = field(default_factory=list)
    """Nodes that are idle from now on."""
    used: list[Node] = field(default_factory=list)
    """Nodes that are idle no more."""
    leave: list[Node] = field(default_factory=list)
    """Nodes to cordon."""
    stay: list[Node] = field(default_factory=list)
    """Nodes to uncordon."""
    give_back: list[Node] = field(default_factory=list)
    clear: list[Node] = field(default_factory=list)
    """Nodes that the cloud takes back, with pods that are to leave before."""
    look_at: float | None = None
    """When something falls due next."""

    def due(self, at: float) -> None:
        """Take note that something falls due then."""
        self.look_at = at if self.look_at is None else min(self.look_at, at)


def shrink(
    pool: Pool,
    nodes: Iterable[Node],
    now: float,
    *,
    busy: Callable[[str], bool],
    needed: Collection[str],
    tier: Callable[[str], int] = lambda _: 0,
) -> Shrinkage:
    """Return what to do with a pool's *nodes*.

    *busy* says whether anything runs on a node; *needed* are nodes on which what waits has a place,
    or that are reserved. Nodes of the last *tier* of a NodePolicy go first.
    """
    found = Shrinkage()
    asked = {slot for request in pool.requests for slot in request.slots}
    ids = {request.id for request in pool.requests}
    ordered = sorted(nodes, key=lambda n: (-tier(n.metadata.name), -(slot_of(n) or 0)))
    spare = pool.size - len(pool.leaving) - pool.object.spec.min
    for node in ordered:
        name, slot = node.metadata.name, slot_of(node)
        leaving = timestamp.read(node.metadata.annotations.get(LEAVING_ANNOTATION))
        idle_since = timestamp.read(node.metadata.annotations.get(IDLE_ANNOTATION))
        held = held_for(node.spec.taints) in ids or slot in asked
        if announced(node):
            (found.clear if busy(name) else found.give_back).append(node)
            continue
        if busy(name) or held or name in needed:
            if leaving is not None:
                found.stay.append(node)
            elif idle_since is not None and (busy(name) or held):
                found.used.append(node)
        elif leaving is not None:
            _end(node, leaving, now, found)
        elif idle_since is None:
            found.idle.append(node)
            found.due(now + pool.idle)
        elif now < idle_since + pool.idle:
            found.due(idle_since + pool.idle)
        elif spare > 0:
            spare -= 1
            found.leave.append(node)
            found.due(now + SETTLE_SECONDS)
    return found


def _end(node: Node, leaving: float, now: float, found: Shrinkage) -> None:
    # Times are written in whole seconds.
    if now >= leaving + SETTLE_SECONDS:
        found.give_back.append(node)
    else:
        found.due(leaving + SETTLE_SECONDS)
