"""Ranks that wait for each other in a circle, and which of them alone explains it."""

from __future__ import annotations

from collections import Counter, defaultdict

from lockstep.health.core.group_waits import Blocked, Groups, Where


def odd_exchanges(groups: Groups) -> tuple[int, ...]:
    """Return the one rank that has sent and received another number of times than its like.

    Its like wait beside it, at its place of other groups of that size: as ranks of one stage do
    that wait for all others. Who waits in an exchange is behind for want of another.
    """
    at: dict[int, set[Where]] = defaultdict(set)
    for where, waiting in groups.waiting.items():
        for rank in waiting:
            at[rank].add(where)
    stages: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
    for group, counts in groups.exchanged.items():
        order = sorted(groups.of.get(group, ()))
        for place, rank in enumerate(order):
            if rank in counts and rank not in groups.p2p:
                stages[len(order), place][rank] = counts[rank]
    odd = []
    for counts in stages.values():
        told = Counter(counts.values())
        for rank in (r for r, count in counts.items() if told[count] * 2 < len(counts)):
            beside = [n for other, n in counts.items() if other != rank and at[other] & at[rank]]
            ((usual, many),) = Counter(beside).most_common(1) or ((0, 0),)
            if many >= 2 and many * 2 > len(beside) and counts[rank] != usual:
                odd.append(rank)
    return tuple(odd) if len(odd) == 1 else ()


def odd_among_its_like(circle: set[int], groups: Groups) -> tuple[int, ...]:
    """Return who of *circle* has begun another number of collectives than all who wait beside it.

    Ranks 0, 1 and 3 wait in collective 4 of all. 0 and 1 have begun four in their pairs, 3 has
    begun three in its: it has left one out.
    """
    odd: set[int] = set()
    for (group, _), waiting in groups.waiting.items():
        far = {
            rank: tuple(
                sorted(
                    (len(groups.of[other]), counts[rank])
                    for other, counts in groups.enqueued.items()
                    if other != group and rank in counts
                )
            )
            for rank in waiting
        }
        ((usual, many),) = Counter(far.values()).most_common(1)
        if many >= 2 and many == len(far) - 1:
            odd |= {rank for rank, one in far.items() if one != usual}
    return tuple(odd) if len(odd) == 1 and odd <= circle else ()


def explains(one: int, blocked: Blocked) -> bool:
    """Say whether every wait ends at *one*, were it the only rank that does not do as it should."""
    left = {
        rank: {where for where, others in blocked.by(rank)} for rank in blocked.at if rank != one
    }
    left = {rank: wheres for rank, wheres in left.items() if wheres}
    holds: dict[Where, set[int]] = {
        where: {other for other in others if other in left}
        for where, others in blocked.absent.items()
    }
    by_rank: dict[int, list[Where]] = defaultdict(list)
    for where, others in holds.items():
        for other in others:
            by_rank[other].append(where)
    count = {rank: len(wheres) for rank, wheres in left.items()}
    at: dict[Where, list[int]] = defaultdict(list)
    for rank, wheres in left.items():
        for where in wheres:
            at[where].append(rank)
    free = [where for where, others in holds.items() if not others]
    gone: set[Where] = set(free)
    while free:
        for rank in at[free.pop()]:
            count[rank] -= 1
            if count[rank]:
                continue
            for where in by_rank[rank]:
                holds[where].discard(rank)
                if not holds[where] and where not in gone:
                    gone.add(where)
                    free.append(where)
    return not any(count.values())


def circle_of(blocked: Blocked) -> set[int]:
    """Return the ranks of one circle of waiting; none where every chain comes to an end."""
    ends: set[int] = set()
    for start in blocked.at:
        rank = start
        path: dict[int, int] = {}
        order: list[int] = []
        while rank not in path and rank not in ends:
            path[rank] = len(order)
            order.append(rank)
            ahead = [other for _, others in blocked.by(rank) for other in others - ends]
            if not ahead:
                break
            rank = min(ahead)
        else:
            if rank in path:
                return set(order[path[rank] :])
        ends.update(order)
    return set()
