"""The cluster as it would be were some pods gone and others placed: room and quota together.

Room is that of copies of the tables and vectors. What queues hold is supposed only while a
question is asked, and the accounts are as before once it is answered. ``mark`` and ``rollback`` go
by the pods that went and came back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from lockstep.scheduler.core.model.decisions import Placement
from lockstep.scheduler.core.model.workload import Member, PodKey, Workload, WorkloadKey
from lockstep.scheduler.core.placement import admission
from lockstep.scheduler.core.placement.problem import Problem
from lockstep.scheduler.core.quota.account import Amounts
from lockstep.scheduler.core.quota.supposed import Supposed
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.state.node_usage import held_by
from lockstep.scheduler.core.util.array_types import BoolArray


class WhatIf(Supposed):
    """One supposed world; what places workloads in it is the search that places everything."""

    def __init__(self, cluster: Cluster, gone: Iterable[Member] = ()) -> None:
        super().__init__(cluster.ledger)
        self.table = cluster.table.fork()
        self.fits = cluster.fits.fork(self.table)
        self.policies = cluster.policies
        self._cluster = cluster
        self.gone: dict[PodKey, Member] = {}
        """The pods that are supposed to be gone."""
        self._come: dict[str, list[Member]] = {}
        """By node, the pods that are supposed to stand there with devices."""
        self._promised: dict[WorkloadKey, tuple[str, Amounts]] = {}
        """By workload that is supposed to stand: its queue, and what it counts for there."""
        self.vacate(gone)

    def vacate(self, members: Iterable[Member]) -> None:
        """Suppose that pods are gone."""
        self.apply(partial(self._charge, tuple(members)), -1)

    def restore(self, members: Iterable[Member]) -> None:
        """Suppose no longer that pods are gone."""
        self.apply(partial(self._charge, tuple(members)), 1)

    def place(
        self, workload: Workload, problem: Problem, rows: BoolArray | None = None
    ) -> Placement | None:
        """Return where a workload goes within all limits, on some *rows* alone where given."""
        with self.counted():
            return admission.place(self._cluster, workload, problem, rows, state=self)

    def counted(self, *, gone: Iterable[Member] | None = None) -> Supposed:
        """Count in all queues what would count there; with *gone* as if just those pods were."""
        quota = Supposed(self._ledger)
        if self._promised:
            quota.promise(self._promised)
        quota.uncount(self.gone.values() if gone is None else gone)
        return quota

    def settle(self, placement: Placement, queue: str) -> None:
        """Suppose that a workload of a queue stands where it was placed, and is spoken for there.

        No rollback takes it back.
        """
        counted = admission.counted(self._cluster, placement)
        self._promised[placement.workload] = queue, counted
        self._fill(_standing(placement), 1)

    def stand(self, workload: Workload, placement: Placement) -> None:
        """Suppose that a workload stands where it was placed like those that really stand."""
        members = _standing(placement)
        for one in members:
            one.charged = self._ledger.charged(one.shape, self._cluster.card(one.node))
        self.apply(partial(self._fill, members), 1)
        self.enter(members, workload.queue, self._cluster.priorities.of(workload))

    def _fill(self, members: Iterable[Member], times: int) -> None:
        """Let pods that came stand on their nodes, or (with a negative *times*) no more."""
        for one in members:
            shape = one.shape
            self.table.charge(self.table.rows[one.node], shape.columns, shape.amounts, times)
            if one.grant:
                there = self._come.setdefault(one.node, [])
                if times > 0:
                    there.append(one)
                else:
                    there.remove(one)
                self._hold_devices(one.node)

    def _charge(self, members: Iterable[Member], times: int) -> None:
        table, rows, with_devices = self.table, set[int](), set[str]()
        for member in members:
            if times < 0:
                self.gone[member.key] = member
            else:
                self.gone.pop(member.key, None)
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


def _standing(placement: Placement) -> tuple[Member, ...]:
    return tuple(
        replace(one.member, node=one.spot.node, grant=one.spot.grant, account=None)
        for one in placement.assignments
    )
