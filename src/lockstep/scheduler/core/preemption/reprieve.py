"""What the pods that have gone leave beyond what a workload takes at its place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from lockstep.scheduler.core.model.decisions import Placement
from lockstep.scheduler.core.model.node_table import NodeTable
from lockstep.scheduler.core.model.pod_shape import PodShape
from lockstep.scheduler.core.model.workload import Member
from lockstep.scheduler.core.preemption.budgeted_victims import Victim
from lockstep.scheduler.core.quota.account import Account
from lockstep.scheduler.core.resources.device_allocation import Grant
from lockstep.scheduler.core.resources.device_columns import held
from lockstep.scheduler.core.util.array_types import IntArray

Lacking = Iterable[tuple[Account, str, int]]
"""By queue and resource, what must be given back before a workload is within all ceilings."""


class Reprieve:
    """Room on the nodes of a placement and quota, used up by the pods that may stay after all."""

    def __init__(
        self, table: NodeTable, gone: Sequence[Victim], placement: Placement, lacking: Lacking
    ) -> None:
        """*gone* are all that have gone from *table*, on which the workload does not stand yet."""
        self._table = table
        self._spare = _spare(table, placement)
        self._left = {
            (account, name): _given(gone, account, name) - short for account, name, short in lacking
        }

    def spare(self, chunk: Victim) -> bool:
        """Return whether a chunk may stay, with the workload where it is; count it as there if
        so.
        """
        back = _taken(self._table, chunk.members, self._spare)
        owed = {key: _given([chunk], *key) for key in self._left}
        room = all((self._spare[row] >= amounts).all() for row, amounts in back.items())
        if not room or any(self._left[key] < amount for key, amount in owed.items()):
            return False
        for row, amounts in back.items():
            self._spare[row] -= amounts
        for key, amount in owed.items():
            self._left[key] -= amount
        return True


def _given(chunks: Sequence[Victim], account: Account, name: str) -> int:
    whole_cluster = account.parent is None
    members = [
        member
        for chunk in chunks
        if whole_cluster or account in chunk.account.chain
        for member in chunk.members
    ]
    return sum(m.charged.get(name, 0) for m in members)


def _spare(table: NodeTable, placement: Placement) -> dict[int, IntArray]:
    """Return by row what is left over where the workload would stand."""
    spare: dict[int, IntArray] = {}
    for one in placement.assignments:
        row, shape = table.rows[one.spot.node], one.member.shape
        left = spare.setdefault(row, table.free[:, row].copy())
        left[shape.columns] -= shape.amounts
        left -= _devices(table, row, one.spot.grant, shape)
    return spare


def _taken(
    table: NodeTable, members: Iterable[Member], rows: dict[int, IntArray]
) -> dict[int, IntArray]:
    """Return by row what pods would take back where the workload would stand."""
    found: dict[int, IntArray] = {}
    for member in members:
        row = table.rows.get(member.node, -1)
        if row in rows:
            amounts = found.setdefault(row, np.zeros(len(table.free), dtype=np.int64))
            amounts[member.shape.columns] += member.shape.amounts
            amounts += _devices(table, row, member.grant, member.shape)
    return found


def _devices(table: NodeTable, row: int, grant: Grant, shape: PodShape) -> IntArray:
    """Return by column what a pod holds of single devices."""
    amounts = np.zeros(len(table.free), dtype=np.int64)
    for column, amount in held(table.columns, table.layout(row), grant, shape).items():
        amounts[column] = amount
    return amounts
