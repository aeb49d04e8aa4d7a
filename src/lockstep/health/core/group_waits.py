"""For whom each rank waits, from how far each has come in every group of ranks."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from msgspec.structs import replace

from lockstep.api.rank_evidence import RankSeen, Work, members
from lockstep.health.core.traces import UNNAMED

_P2P: Final = re.compile(r"(send|recv)\s+(\d+)\s*(->|<-)\s*(\d+)")

_OF_ALL: Final = ("", "0", f"{UNNAMED}0", "default_pg")
OWN: Final = "@"
"""Before the rank, at the end of the name of a group of which it alone is known."""

Where = tuple[str, int]
"""A group and a sequence number."""


@dataclass
class Groups:
    """Members of each group and how far each of them has come."""

    of: dict[str, frozenset[int]] = field(default_factory=dict)
    enqueued: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    waiting: dict[Where, dict[int, Work]] = field(default_factory=lambda: defaultdict(dict))
    p2p: dict[int, list[Work]] = field(default_factory=lambda: defaultdict(list))
    exchanged: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    """By group and rank: how many sends and receives were begun, where any was."""


@lru_cache(maxsize=4096)
def _members(text: str) -> frozenset[int]:
    try:
        return members(text)
    except ValueError:
        return frozenset()


def read(seen: Mapping[int, RankSeen]) -> Groups:
    """Return what the ranks that are *seen* say of their groups, together."""
    found = Groups()
    told: dict[str, set[str]] = defaultdict(set)
    for rank, seen_of in seen.items():
        one = _told_apart(seen_of)
        for group in one.groups:
            found.enqueued[group.group][rank] = group.enqueued
            if group.exchanged:
                found.exchanged[group.group][rank] = group.exchanged
            if group.ranks:
                told[group.group].add(group.ranks)
        for work in one.waiting:
            if work.p2p:
                found.p2p[rank].append(work)
            else:
                found.waiting[(work.group, work.seq)][rank] = work
                known = found.enqueued[work.group].get(rank, 0)
                found.enqueued[work.group][rank] = max(known, work.seq)
    for name, ranks in found.enqueued.items():
        named = frozenset().union(*(_members(text) for text in told.get(name, ())))
        found.of[name] = named or frozenset(ranks)
    return found


def _told_apart(one: RankSeen) -> RankSeen:
    """Return what is known of a rank, its groups without a name as groups of its own.

    The first is that of all ranks. Others of that number may be groups of other ranks.
    """
    if not any(_alone(group.group) for group in one.groups):
        return one
    own = f"{OWN}{one.rank}"
    return replace(
        one,
        groups=[replace(g, group=g.group + own * _alone(g.group)) for g in one.groups],
        waiting=[replace(w, group=w.group + own * _alone(w.group)) for w in one.waiting],
    )


def _alone(group: str) -> bool:
    return group.startswith(UNNAMED) and group != f"{UNNAMED}0"


@dataclass
class Blocked:
    """Where ranks wait, and who is awaited there."""

    at: dict[int, list[Where]] = field(default_factory=lambda: defaultdict(list))
    absent: dict[Where, frozenset[int]] = field(default_factory=dict)

    def by(self, rank: int) -> Iterable[tuple[Where, frozenset[int]]]:
        """Yield where *rank* waits for others, and for whom."""
        for where in self.at.get(rank, ()):
            if others := self.absent[where] - {rank}:
                yield where, others


def blocked_ranks(
    groups: Groups, seen: Mapping[int, RankSeen], everybody: frozenset[int]
) -> Blocked:
    """Return for which ranks each rank waits.

    Ranks without a dump are waited for only where no other explains why a collective stands.
    """
    found = Blocked()
    heard = heard_of(seen)
    waits = {rank for ranks in groups.waiting.values() for rank in ranks} | set(groups.p2p)
    idle = frozenset(rank for rank in heard - waits if not seen[rank].inside)
    for where, ranks in groups.waiting.items():
        group, seq = where
        if OWN in group:
            # Its other members are not known: it waits for ranks that wait for nothing.
            found.absent[where] = idle
            found.at[next(iter(ranks))].append(where)
            continue
        there = groups.enqueued[group]
        all_ = groups.of[group]
        if _is_world(group, groups, all_):
            all_ |= everybody
        absent = frozenset(r for r in all_ if r in heard and there.get(r, 0) < seq)
        absent = absent or all_ - heard
        found.absent[where] = absent
        for rank in ranks:
            found.at[rank].append(where)
    for rank, works in groups.p2p.items():
        for work in works:
            peer = _peer(rank, work, groups)
            if peer is None:
                where = (f"{work.group} {work.op}{OWN}{rank}", work.seq)
                found.absent[where] = idle
                found.at[rank].append(where)
            elif not _answers(peer, rank, work, groups):
                where = (f"{work.group} {work.op}", work.seq)
                found.absent[where] = frozenset({peer})
                found.at[rank].append(where)
    return found


def heard_of(seen: Mapping[int, RankSeen]) -> frozenset[int]:
    """Return the ranks of which more is known than that they do not answer."""
    return frozenset(r for r, one in seen.items() if one.groups or one.answers == "all")


def _is_world(group: str, groups: Groups, all_: frozenset[int]) -> bool:
    """Say whether a group that names no members is that of all ranks: the widest is."""
    return len(all_) == max(len(one) for one in groups.of.values()) and group in _OF_ALL


def _peer(rank: int, work: Work, groups: Groups) -> int | None:
    found = _P2P.search(work.op)
    if found is None:
        return None
    ends = int(found[2]), int(found[4])
    order = sorted(groups.of.get(work.group, frozenset()))
    if max(ends) >= len(order):
        return None
    here = [order[end] for end in ends]
    return next((one for one in here if one != rank), None)


def _answers(peer: int, rank: int, work: Work, groups: Groups) -> bool:
    """Say whether *peer* waits in the other half of the same exchange."""
    other = "recv" if work.op.find("send") >= 0 else "send"
    return any(
        w.group == work.group and other in w.op and _peer(peer, w, groups) == rank
        for w in groups.p2p.get(peer, ())
    )
