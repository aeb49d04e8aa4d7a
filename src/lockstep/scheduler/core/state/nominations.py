"""Places that are being made free for a workload: no other may take them meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from lockstep.scheduler.core.model.node_table import NodeTable
from lockstep.scheduler.core.model.pod_shape import PodShape
from lockstep.scheduler.core.model.workload import Member, PodKey, WorkloadKey
from lockstep.scheduler.core.quota.account import Amounts
from lockstep.scheduler.core.quota.ledger import Ledger
from lockstep.scheduler.core.resources.device_allocation import NOTHING, Grant
from lockstep.scheduler.core.state.disruption_budgets import Budget
from lockstep.scheduler.core.util.array_types import BoolArray

Purpose = Literal["Preempting", "Defragmenting", "Moving"]
"""Why a place is kept: others give way, others move away, or the workload itself moves there."""


@dataclass(slots=True)
class Nomination:
    """The place of one workload, and the pods that have been told to leave it."""

    workload: WorkloadKey
    nodes: dict[str, str]
    """By pod, the node that it is to get."""
    shapes: dict[str, PodShape]
    queue: str
    asked: Amounts
    grants: dict[str, Grant] = field(default_factory=dict)
    """By pod, the devices of that node that it is to get; where they are known."""
    victims: dict[PodKey, str] = field(default_factory=dict)
    """Pods that go, with their uids."""
    purpose: Purpose = "Preempting"
    violates: tuple[Budget, ...] = ()
    """The PodDisruptionBudgets that do not allow them to go."""
    instead_of: tuple[WorkloadKey, ...] = ()
    """Workloads whose place it was, until it is written down whose it is now."""
    looked: tuple[object, ...] = ()
    """The moment at which it was last tried."""
    since: float = 0.0
    """When it was planned, in Unix time; 0 where an earlier leader did."""
    signature: tuple[object, ...] = ()
    """What the workload asked for then."""
    version: int | None = None
    """The table's version then: what nodes are has not changed as long as it is that."""


class Nominations:
    """All such places, kept in the table of nodes and in the ledger."""

    def __init__(self, table: NodeTable, ledger: Ledger) -> None:
        self._table = table
        self._ledger = ledger
        self._all: dict[WorkloadKey, Nomination] = {}
        self._version = table.version

    def __contains__(self, key: WorkloadKey) -> bool:
        return key in self._all

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Nomination]:
        return iter(self._all.values())

    def get(self, key: WorkloadKey) -> Nomination | None:
        """Return the nomination of a workload."""
        return self._all.get(key)

    def passes_on(self, key: WorkloadKey) -> bool:
        """Return whether a workload's place is another's, and the workload is still to show it.

        A leader that found it shown by no workload would give it to the first that asks.
        """
        return any(key in one.instead_of for one in self._all.values())

    def add(self, nomination: Nomination) -> None:
        """Keep a place free from now on."""
        self.drop(nomination.workload)
        self._all[nomination.workload] = nomination
        self.hold(nomination, 1)

    def drop(self, key: WorkloadKey) -> bool:
        """Keep a workload's place free no more; return whether there was one."""
        self.refresh()
        found = self._all.pop(key, None)
        if found is not None:
            self.hold(found, -1)
        return found is not None

    def refresh(self) -> bool:
        """Keep the places free in rows that were given to other nodes, or are new.

        Return whether everything that was kept had to be given up for that.
        """
        if self._version == self._table.version:
            return False
        self._version = self._table.version
        if not self._all and not self._table.held.any():
            return False
        self._table.release()
        for one in self._all.values():
            self.hold(one, 1)
        return True

    def rows(self, nomination: Nomination) -> BoolArray:
        """Return the rows of the nodes that a workload is to get."""
        mask = np.zeros(self._table.capacity, dtype=bool)
        nodes = set(nomination.nodes.values())
        mask[[self._table.rows[name] for name in nodes if name in self._table.rows]] = True
        return mask

    def condemned(self, pods: Mapping[PodKey, Member]) -> list[Member]:
        """Return the pods that have been told to leave and are still there."""
        return [
            pods[key]
            for one in self._all.values()
            for key, uid in one.victims.items()
            if key in pods and pods[key].uid == uid and pods[key].holds
        ]

    def condemns(self, member: Member) -> bool:
        """Return whether a pod has been told to leave."""
        return any(one.victims.get(member.key) == member.uid for one in self._all.values())

    def hold(self, nomination: Nomination, times: int) -> None:
        """Hold a place, or (with a negative *times*) suppose for a while that it is not held."""
        self._table.widen()
        for pod, node in nomination.nodes.items():
            row = self._table.rows.get(node)
            if row is not None:
                shape = nomination.shapes[pod]
                self._table.hold(row, shape.columns, shape.amounts, times)
                self._table.hold_grant(row, nomination.grants.get(pod, NOTHING), shape, times)
        if times > 0:
            self._ledger.promises[nomination.workload] = nomination.queue, nomination.asked
        else:
            self._ledger.promises.pop(nomination.workload, None)
