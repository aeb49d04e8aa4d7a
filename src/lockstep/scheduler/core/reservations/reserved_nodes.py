"""The room that a reservation keeps free.

Of its place so much is kept free as those that end there in time will not free by themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import inf

import numpy as np

from lockstep.scheduler.core.model.reservation import Reservation, turn_of
from lockstep.scheduler.core.model.workload import Member, Workload
from lockstep.scheduler.core.quota.account import Amounts
from lockstep.scheduler.core.resources.columns import GPU_COLUMN
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.state.node_usage import held_by
from lockstep.scheduler.core.util.array_types import IntArray
from lockstep.scheduler.core.util.bitmask import indices_of

GRACE = 0.5
"""Seconds for which an end is awaited past its time: ends are seen a moment after they come."""


def reserved(
    cluster: Cluster, workload: Workload, at: float, place: dict[Member, str]
) -> Reservation:
    """Return what is to be kept for a workload whose pods are to get these nodes."""
    wanted: dict[str, IntArray] = {}
    for member, node in place.items():
        total = wanted.setdefault(node, _nothing(cluster))
        total[member.shape.columns] += member.shape.amounts
    names = {member.name: node for member, node in place.items()}
    priority, asked = cluster.priorities.of(workload), charged(cluster, place)
    turn, until = turn_of(workload), until_of(workload, at)
    return Reservation(
        workload.key, at, workload.queue, priority, turn, names, wanted, asked, until
    )


def until_of(workload: Workload, at: float) -> float:
    """Return when a workload will have ended that starts as promised, or a moment after;
    infinity where that is not known.
    """
    return inf if workload.runtime is None else at + workload.runtime + GRACE


def charged(cluster: Cluster, place: Mapping[Member, str]) -> Amounts:
    """Return what pods count for on their nodes."""
    total: Amounts = {}
    for member, node in place.items():
        for name, amount in cluster.ledger.charged(member.shape, cluster.card(node)).items():
            total[name] = total.get(name, 0) + amount
    return total


def end_of(cluster: Cluster, member: Member) -> float | None:
    """Return when a pod that has a node will have ended; None where that is not known."""
    since, runtime = member.since, runtime_of(cluster, member)
    return since + runtime if since is not None and runtime is not None else None


def runtime_of(cluster: Cluster, member: Member) -> float | None:
    """Return the seconds that a pod is expected to run: its gang's, else its own."""
    workload = cluster.workload_of(member)
    return workload.runtime if workload is not None and workload.is_gang else member.runtime


def hold(cluster: Cluster, held: Reservation, times: int) -> None:
    """Take what is kept from the nodes, or (with a negative *times*) give it back."""
    for node, (columns, amounts) in held.kept.items():
        row = cluster.table.rows.get(node)
        if row is not None:
            cluster.table.hold(row, columns, amounts, times)


@dataclass(frozen=True, slots=True)
class Ending:
    """The pods that end on a reserved place in time, by the run times that are stated."""

    now: float
    """Unix time at which that was asked."""
    members: list[Member]
    freed: dict[str, IntArray]
    """By node, what they free there."""
    cards: dict[str, int]
    """By node, the mask of the GPUs of which no pod has a share once they have left."""
    next: float | None
    """When the next of them is to end; None where none says when."""

    @classmethod
    def on(cls, cluster: Cluster, held: Reservation, now: float) -> Ending:
        """Return the pods that end on a place in time, as far as is known at a Unix time."""
        members, freed, cards, ends = [], {}, {}, []
        for node in held.wanted:
            there = cluster.on_node(node)
            going = [m for m in there if ends_in_time(cluster, m, held, now)]
            cards[node] = _whole_without(cluster, node, going)
            freed[node] = _freed(cluster, node, going, cards[node])
            members += going
            stated = (end_of(cluster, m) for m in going if not m.terminating)
            ends += [end for end in stated if end is not None]
        return cls(now, members, freed, cards, min(ends, default=None))


def _whole_without(cluster: Cluster, node: str, going: Collection[Member]) -> int:
    """Return the mask of a node's healthy GPUs that no pod holds once some have left."""
    left = {member.key for member in going}
    staying = held_by(m for m in cluster.on_node(node) if m.key not in left)
    return cluster.table.layout_of(node).healthy & ~(staying.gpus | staying.shared)


def _freed(cluster: Cluster, node: str, going: Collection[Member], cards: int) -> IntArray:
    """Return what some pods free of their node when they leave it, and all of these *cards*."""
    freed, table = _nothing(cluster), cluster.table
    for member in going:
        freed[member.shape.columns] += member.shape.amounts
    row = table.rows.get(node)
    if row is None or not table.layout(row).cards:
        return freed
    uncounted = int(table.allocatable[GPU_COLUMN, row] - table.used[GPU_COLUMN, row])
    now = min(uncounted, table.free_devices(row).bit_count())
    freed[GPU_COLUMN] = min(uncounted + freed[GPU_COLUMN], cards.bit_count()) - now
    return freed


def keep(cluster: Cluster, held: Reservation, ending: Ending) -> None:
    """Keep of the place what those that end in time do not free."""
    held.kept = {}
    for node, wanted in held.wanted.items():
        missing = np.maximum(_as_wide(cluster, wanted) - ending.freed[node], 0)
        for column, amount in _shares_of(cluster, held, ending, node).items():
            missing[column] = amount
        columns = np.flatnonzero(missing)
        if len(columns):
            held.kept[node] = columns, missing[columns]
    hold(cluster, held, 1)


def _shares_of(cluster: Cluster, held: Reservation, ending: Ending, node: str) -> dict[int, int]:
    """Return what is to be kept of single cards, so that as many as are wanted are whole in time.

    Those that are in use until then come first: only of the rest could another pod have shares.
    """
    table, ids = cluster.table, cluster.table.columns.card_ids
    row, wanted = table.rows.get(node), int(held.wanted[node][GPU_COLUMN])
    if row is None or not table.columns.cards or not wanted:
        return {}
    free = table.free[:, row]
    cards = [card for card in indices_of(ending.cards[node]) if card < table.columns.cards]
    cards.sort(key=lambda card: (free[ids["whole"][card]] > 0, free[ids["compute"][card]], -card))
    columns = (ids[kind][card] for card in cards[:wanted] for kind in ids)
    return {column: int(free[column]) for column in columns if free[column] > 0}


def comes_about(cluster: Cluster, held: Reservation, ending: Ending) -> bool:
    """Return whether there will be room in time, while nothing is kept for it yet."""
    for node, wanted in held.wanted.items():
        row = cluster.table.rows.get(node)
        if row is None:
            return False
        if (cluster.table.free[:, row] + ending.freed[node] < _as_wide(cluster, wanted)).any():
            return False
    return True


def ends_in_time(cluster: Cluster, member: Member, held: Reservation, now: float) -> bool:
    """Return whether a pod will have ended by the time of a reservation, as far as is known."""
    if member.terminating:
        return True
    if member.since is None:
        # An earlier leader has bound it and knew since when; until it says so, that is believed.
        return runtime_of(cluster, member) is not None
    end = end_of(cluster, member)
    return end is not None and now <= end + GRACE and end <= held.at


def _nothing(cluster: Cluster) -> IntArray:
    return np.zeros(len(cluster.table.free), dtype=np.int64)


def _as_wide(cluster: Cluster, amounts: IntArray) -> IntArray:
    """Return amounts with a zero for each column that has come since."""
    return np.pad(amounts, (0, len(cluster.table.free) - len(amounts)))
