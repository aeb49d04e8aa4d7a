"""Nodes that could exist or are on their way, put into the scheduler's table for a while. Pure.

The table, the vectors and the search are the scheduler's own: whether a gang fits nodes that do not
exist is answered by the code that places it once they do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lockstep.pools.core.pool import Pool
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.util.array_types import BoolArray

SUFFIX = "~"
"""Ends the names of nodes that do not exist; no real node's name ends like that."""
GROUPS = 8
"""Domains of one tier whose free slots are looked at, those that fit best."""

Slot = tuple[str, int]
"""A pool's name and the number of one of its nodes."""


class Offers:
    """The hypothetical nodes of one look; leaving the context takes them out again."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._names: dict[Slot, str] = {}
        self._slots: dict[str, Slot] = {}

    def __enter__(self) -> Offers:
        return self

    def __exit__(self, *error: object) -> None:
        for name in self._names.values():
            self._cluster.remove_node(name)
        self._cluster.settle()

    def add(self, pool: Pool, slots: Iterable[int]) -> None:
        """Suppose that the nodes of some slots are there."""
        for slot in slots:
            if (pool.name, slot) in self._names:
                continue
            name = pool.node_name(slot) + SUFFIX
            self._cluster.set_node(pool.node(slot, name))
            self._names[pool.name, slot] = name
            self._slots[name] = (pool.name, slot)
        self._cluster.settle()

    def names(self) -> Iterator[tuple[Slot, str]]:
        """Yield the slots that were added, each with the name of its node."""
        yield from self._names.items()

    def slot(self, node: str) -> Slot | None:
        """Return the slot of a hypothetical node; None for the name of a real one."""
        return self._slots.get(node)

    def row(self, slot: Slot) -> int:
        """Return the row of a slot that was added."""
        return self._cluster.table.rows[self._names[slot]]

    def mask(self, slots: Iterable[Slot]) -> BoolArray:
        """Return the rows of the real nodes and of some slots."""
        table = self._cluster.table
        rows = table.live.copy()
        rows[[table.rows[name] for name in self._names.values()]] = False
        rows[[self.row(slot) for slot in slots]] = True
        return rows


def ways(pool: Pool, free: Sequence[int], most: int, *, grouped: bool) -> Iterator[list[int]]:
    """Yield choices of at most *most* free slots, in the order in which they would be taken.

    The first takes slots domain by domain, those first that hold it best. Where members must stand
    together (*grouped*), each of the best domains of each tier follows by itself.
    """
    if not most or not free:
        return
    domains = pool.object.spec.domains
    if not domains:
        yield list(free[:most])
        return
    narrow = _groups(pool, free, len(domains), most)
    yield [slot for group in narrow for slot in group][:most]
    for depth in range(len(domains), 0, -1) if grouped else ():
        for group in _groups(pool, free, depth, most)[:GROUPS]:
            yield group[:most]


def _groups(pool: Pool, free: Sequence[int], depth: int, most: int) -> list[list[int]]:
    """Return free slots by domain: the tightest that takes all first, then the roomiest."""
    found: dict[tuple[int, ...], list[int]] = {}
    for slot in free:
        found.setdefault(pool.domain(slot)[:depth], []).append(slot)
    enough = sorted((g for g in found.values() if len(g) >= most), key=len)
    return enough + sorted((g for g in found.values() if len(g) < most), key=len, reverse=True)
