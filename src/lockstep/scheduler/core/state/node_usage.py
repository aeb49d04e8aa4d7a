"""Which pods stand on which node, and the account of what they take there.

What pods use is charged to the node table as they come and go. Single devices are counted from the
pods that hold them, never by differences, so that no order of events leaves a device behind.
"""

from __future__ import annotations

from collections.abc import Iterable

from lockstep.scheduler.core.model.node_table import NodeTable
from lockstep.scheduler.core.model.pod_shape import PodShape
from lockstep.scheduler.core.model.workload import Member, PodKey
from lockstep.scheduler.core.resources.device_columns import Taken


class NodeUsage:
    """The pods on every node. A node need not be known yet: its pods count once it appears."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._there: dict[str, dict[PodKey, Member]] = {}

    def on(self, node: str) -> Iterable[Member]:
        """Return the pods that take room on a node."""
        return self._there.get(node, {}).values()

    def enter(self, member: Member) -> None:
        """Count a pod on its node."""
        self._there.setdefault(member.node, {})[member.key] = member
        if member.node in self._table.rows:
            self._charge(member, 1, last=not member.grant)
            if member.grant:
                self.hold(member.node)

    def leave(self, member: Member) -> None:
        """Count a pod on its node no more."""
        self._drop(member)
        if member.node in self._table.rows:
            with_devices = bool(member.grant)
            self._charge(member, -1, last=not with_devices)
            if with_devices:
                self.hold(member.node)

    def renew(self, member: Member) -> None:
        """Put another view of a pod that takes the same in the place of the one before."""
        self._there[member.node][member.key] = member

    def enter_all(self, members: Iterable[Member]) -> None:
        """Count many pods at once."""
        charges: dict[tuple[str, PodShape], int] = {}
        held: set[str] = set()
        for member in members:
            self._there.setdefault(member.node, {})[member.key] = member
            place = member.node, member.shape
            charges[place] = charges.get(place, 0) + 1
            if member.grant:
                held.add(member.node)
        table = self._table
        table.widen()
        for (node, shape), times in charges.items():
            if node in table.rows:
                row, last = table.rows[node], node not in held
                table.charge(row, shape.columns, shape.amounts, times, last=last)
        for node in held & table.rows.keys():
            self.hold(node)

    def withdraw(self, member: Member) -> None:
        """Take out a pod whose counting broke off somewhere; its node is to be recounted then."""
        if member.key in self._there.get(member.node, {}):
            self._drop(member)

    def recount(self, node: str) -> None:
        """Count afresh what a node's pods take."""
        self._table.vacate(self._table.rows[node])
        self.settle(node)

    def settle(self, node: str) -> None:
        """Charge all pods of a node that nothing has been charged for yet."""
        for member in self.on(node):
            self._charge(member, 1, last=False)
        self.hold(node)

    def hold(self, node: str) -> None:
        """Count afresh which devices of a node are held."""
        self._table.hold_devices(self._table.rows[node], held_by(self.on(node)))

    def _drop(self, member: Member) -> None:
        there = self._there[member.node]
        del there[member.key]
        if not there:
            del self._there[member.node]

    def _charge(self, member: Member, times: int, *, last: bool) -> None:
        table, shape = self._table, member.shape
        table.widen()
        table.charge(table.rows[member.node], shape.columns, shape.amounts, times, last=last)


def held_by(members: Iterable[Member]) -> Taken:
    """Return which devices of a node its pods hold."""
    taken = Taken()
    for member in members:
        taken.add(member.grant, member.shape)
    return taken
