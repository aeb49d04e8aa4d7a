"""Where a gang's ranks are, or would be, and what it costs them: for people to look at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lockstep.scheduler.core.model.workload import Member, Workload
from lockstep.scheduler.core.ranks.collectives import Collective, collectives, grids
from lockstep.scheduler.core.ranks.communication_cost import Links, Talk, cost, holders
from lockstep.scheduler.core.ranks.network import domain_ids, ends_in_nodes, links_of
from lockstep.scheduler.core.ranks.rank_bundles import Bundle, BundledRanks, bundle_ranks
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.util.array_types import IntArray

SHUFFLES = 32
"""Random layouts whose mean is what chance would cost."""


@dataclass(frozen=True, slots=True)
class RankSeat:
    """One pod: its node, the domains above that, widest first, and the ranks that it holds."""

    pod: str
    node: str
    domains: tuple[str, ...]
    ranks: range
    coordinates: Mapping[str, range]
    """By axis which places along it the ranks take, for axes longer than one."""


@dataclass(frozen=True, slots=True)
class CollectiveCost:
    """What the groups of one kind cost."""

    name: str
    groups: int
    size: int
    volume: float
    """Bytes a rank moves in a step."""
    under: Mapping[str, int]
    """How many of the groups fit under one domain of which tier, and no narrower one."""
    seconds: float


@dataclass(frozen=True, slots=True)
class RankLayout:
    """The layout of one gang."""

    seats: tuple[RankSeat, ...]
    shares: tuple[CollectiveCost, ...]
    seconds: float
    """Communication a step, averaged over the ranks, without overlap."""
    by_chance: float
    """The same with the pods on the same nodes in random order, on average."""


@dataclass(frozen=True, slots=True)
class _Standing:
    """The ranks of a gang where they are."""

    roll: BundledRanks
    known: list[Bundle]
    """What stands together, for each column of the domains."""
    talking: list[Collective]
    unit_of: IntArray
    ids: IntArray
    links: Links

    @property
    def talk(self) -> Talk:
        """Return which ranks talk to each other, all kinds of groups together."""
        return Talk(len(self.known), self.talking, self.unit_of)


def _standing(
    cluster: Cluster, workload: Workload, places: Mapping[tuple[str, str], str]
) -> _Standing | None:
    roll = bundle_ranks(workload)
    if roll is None:
        return None
    rows = cluster.table.rows
    known = [b for b in roll.bundles if all(places.get(m.key) in rows for m in b.members)]
    unit_of = holders([bundle.ranks for bundle in known])
    try:
        talking = collectives(roll.split, len(unit_of))
    except ValueError:
        return None
    standing = np.array([rows[places[b.members[0].key]] for b in known], dtype=np.int64)
    ids, links = domain_ids(cluster.table, standing), links_of(cluster.table.tiers)
    return _Standing(roll, known, talking, unit_of, ids, links)


def communication(
    cluster: Cluster, workload: Workload, places: Mapping[tuple[str, str], str]
) -> float | None:
    """Return the seconds of communication a step of a gang on the nodes of *places*, by pod.

    None where it states no parallelism, or some member of those it needs has no node.
    """
    found = _standing(cluster, workload, places)
    return None if found is None else cost(found.talk, found.ids, found.links)


def rank_layout(
    cluster: Cluster, workload: Workload, places: Mapping[tuple[str, str], str]
) -> RankLayout | None:
    """Return the layout of a gang whose members are on the nodes of *places*, by pod.

    None where it states no parallelism, or some member of those it needs has no node.
    """
    found = _standing(cluster, workload, places)
    if found is None:
        return None
    talk, ids, links = found.talk, found.ids, found.links
    names = [*cluster.table.tiers.names]
    if not ends_in_nodes(cluster.table.tiers):
        names.append("node")
    shares = [_share(one, found.unit_of, ids, links, names) for one in found.talking]
    chance, count = np.random.default_rng(0), len(found.known)
    shuffled = [cost(talk, ids[:, chance.permutation(count)], links) for _ in range(SHUFFLES)]
    return RankLayout(
        tuple(_seats(cluster, found.roll, found.known, places)),
        tuple(shares),
        cost(talk, ids, links),
        float(np.mean(shuffled)),
    )


def _share(
    one: Collective, unit_of: IntArray, ids: IntArray, links: Links, names: list[str]
) -> CollectiveCost:
    talk = Talk(ids.shape[1], [one], unit_of)
    under: Counter[str] = Counter()
    for group in one.groups:
        domains = ids[:, unit_of[group]]
        whole = (domains == domains[:, :1]).all(axis=1)
        under[names[int(np.flatnonzero(whole)[-1])] if whole.any() else "cluster"] += 1
    return CollectiveCost(
        one.name, len(one.groups), one.groups.shape[1], one.volume, under, cost(talk, ids, links)
    )


def _seats(
    cluster: Cluster, roll: BundledRanks, known: list[Bundle], places: Mapping[tuple[str, str], str]
) -> list[RankSeat]:
    first, found = 0, []
    holding = sorted(
        (pair for b in known for pair in zip(b.members, b.ranks, strict=True)),
        key=lambda pair: pair[1].start,
    )
    dense = grids(roll.split, sum(len(ranks) for _, ranks in holding))[0]
    tiers = cluster.table.tiers
    outer = tiers.indices[:-1] if ends_in_nodes(tiers) else tiers.indices
    for member, ranks in holding:
        node = places[member.key]
        row = cluster.table.rows[node]
        domains = tuple(
            index.paths[number][-1] if (number := int(index.ids[row])) >= 0 else "-"
            for index in outer
        )
        held = range(first, first + len(ranks))
        here = dense.coordinates(np.array(held))
        along = {
            axis: range(int(at.min()), int(at.max()) + 1)
            for axis, at in here.items()
            if dense.sizes[axis] > 1
        }
        found.append(RankSeat(member.name, node, domains, held, along))
        first = held.stop
    return found


def places_of(members: Mapping[str, Member]) -> dict[tuple[str, str], str]:
    """Return the nodes of the members that have one."""
    return {member.key: member.node for member in members.values() if member.node}
