"""The cluster as it would be were some pods gone: the same tables and vectors, on copies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lockstep.scheduler.core.cluster import Cluster
from lockstep.scheduler.core.occupancy import held_by
from lockstep.scheduler.core.placement import Placement
from lockstep.scheduler.core.units import Member, PodKey


class Supposition:
    """What would be free if some pods had gone; whoever places on it uses the usual search."""

    def __init__(self, cluster: Cluster, gone: Iterable[Member] = ()) -> None:
        self.table = cluster.table.fork()
        self.fits = cluster.fits.fork(self.table)
        self.policies = cluster.policies
        self._cluster = cluster
        self.gone: set[PodKey] = set()
        """Whoever is supposed to be gone."""
        self._come: dict[str, list[Member]] = {}
        """By node, whoever is supposed to stand there with devices."""
        self.vacate(gone)

    def vacate(self, members: Iterable[Member]) -> None:
        """Suppose that pods are gone."""
        self._charge(members, -1)

    def restore(self, members: Iterable[Member]) -> None:
        """Suppose no longer that pods are gone."""
        self._charge(members, 1)

    def settle(self, placement: Placement) -> None:
        """Suppose that a unit stands where it was placed."""
        for one in placement.assignments:
            spot, shape = one.spot, one.member.shape
            row = self.table.rows[spot.node]
            self.table.charge(row, shape.columns, shape.amounts)
            if spot.grant:
                there = replace(one.member, node=spot.node, grant=spot.grant)
                self._come.setdefault(spot.node, []).append(there)
                self._hold_devices(spot.node)

    def _charge(self, members: Iterable[Member], times: int) -> None:
        table, rows, with_devices = self.table, set[int](), set[str]()
        change = self.gone.add if times < 0 else self.gone.discard
        for member in members:
            change(member.key)
            row = table.rows.get(member.node)
            if row is not None:
                shape = member.shape
                table.charge(row, shape.columns, shape.amounts, times, last=False)
                rows.add(row)
                if member.grant:
                    with_devices.add(member.node)
        for node in with_devices:
            self._hold_devices(node)
        for row in rows.difference(map(table.rows.__getitem__, with_devices)):
            table.refresh(row)

    def _hold_devices(self, node: str) -> None:
        there = (m for m in self._cluster.on_node(node) if m.key not in self.gone)
        come = self._come.get(node, ())
        self.table.hold_devices(self.table.rows[node], held_by((*there, *come)))
