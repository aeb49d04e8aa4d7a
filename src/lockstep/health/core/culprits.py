"""Which ranks keep a job waiting: a graph of which rank waits for which, over all groups at once.

A rank that has not come to a collective keeps all waiting that have. One that itself waits in
another group is no culprit: what is at the end of the chain is. No clock is compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from lockstep.api.rank_evidence import RankSeen, Work
from lockstep.health.core.circles import (
    circle_of,
    explains,
    odd_among_its_like,
    odd_exchanges,
)
from lockstep.health.core.group_waits import Blocked, Groups, Where, blocked_ranks, heard_of, read
from lockstep.health.core.traces import ranges

_UNEQUAL: Final = frozenset({"gather", "scatter", "barrier", "all_to_all", "alltoall_base"})

_EXCHANGES: Final = frozenset({"all_to_all", "alltoall_base"})
_LOOSE: Final = 1
"""Ranks that seem to wait for nothing, above which some may wait in what gloo does not record."""
_NODE: Final = 4
"""Neighbouring ranks without a dump from which on a node's end is likelier than lost dumps."""
_STANDS: Final = ("trace", "none", "stopped")
"""Answers of a rank whose program does not go on by itself."""


@dataclass(frozen=True, slots=True)
class Culprits:
    """The ranks that keep the others waiting, and how that is known."""

    ranks: tuple[int, ...] = ()
    how: str = ""
    """absent, missing, mismatch, past, order, device, link; empty: none found."""
    where: Where = ("", 0)
    op: str = ""
    waiting: int = 0
    """Ranks that wait."""
    candidates: tuple[int, ...] = ()
    """Where it cannot be told: those that it is one of."""
    missing: str = ""
    """What is missing to tell it."""


def culprits(seen: Mapping[int, RankSeen], world: int = 0) -> Culprits:
    """Return who keeps the ranks waiting that are *seen*, by rank.

    *world* is the number of all ranks, where it is known: those of whom nothing is known at all
    are members of every group whose members no dump names.
    """
    groups = read(seen)
    everybody = frozenset(range(world)) if world else frozenset().union(*groups.of.values())
    waits = {rank for found in groups.waiting.values() for rank in found} | set(groups.p2p)
    if not waits:
        return _silent(seen, everybody)
    if bad := _mismatch(groups, len(waits)):
        return bad
    return _ends(blocked_ranks(groups, seen, everybody), groups, seen, waits, everybody)


def _silent(seen: Mapping[int, RankSeen], everybody: frozenset[int]) -> Culprits:
    """Return what can be said where no rank waits in a collective."""
    stopped = tuple(sorted(r for r, one in seen.items() if one.answers == "stopped"))
    if stopped:
        return Culprits(stopped, "absent")
    lost = everybody - seen.keys()
    if lost:
        return Culprits(candidates=tuple(sorted(lost)), missing=f"dumps of ranks {ranges(lost)}")
    return Culprits(missing="stacks of all ranks, for none waits in a collective")


def _mismatch(groups: Groups, waiting: int) -> Culprits | None:
    """Return the ranks that do something else at a place where others are too; first in order."""
    for where, found in sorted(groups.waiting.items(), key=lambda pair: pair[0][1]):
        if len(found) < 2:
            continue
        known = {rank: work for rank, work in found.items() if work.op}
        ways = Counter(_way(work) for work in known.values())
        if len(ways) < 2:
            continue
        (usual, most), (_, next_most) = ways.most_common(2)
        odd = tuple(sorted(r for r, w in known.items() if _way(w) != usual))
        if most == next_most:
            return Culprits((), "mismatch", where, usual[0], waiting, tuple(sorted(found)))
        return Culprits(odd, "mismatch", where, found[odd[0]].op, waiting)
    return None


def _comparable(op: str) -> bool:
    """Say whether all ranks of an operation give equally much to it."""
    return op not in _UNEQUAL and "uneven" not in op


def _way(work: Work) -> tuple[str, str]:
    """Return what all ranks of a collective have in common, as far as its kind lets them."""
    if _comparable(work.op):
        return (work.op, work.shape)
    # Sizes differ where tokens are exchanged; their type does not.
    return (work.op, work.shape.partition("][")[0] if work.op in _EXCHANGES else "")


def _ends(
    blocked: Blocked,
    groups: Groups,
    seen: Mapping[int, RankSeen],
    waits: set[int],
    everybody: frozenset[int],
) -> Culprits:
    """Return who is at the end of the chains of waiting."""
    awaited: dict[int, Where] = {}
    for where, others in blocked.absent.items():
        for other in others:
            awaited.setdefault(other, where)
    ends = sorted(r for r in awaited if not any(blocked.by(r)))
    heard = heard_of(seen)
    known = tuple(r for r in ends if r in heard)
    inside = {work_at for rank in known for work_at in blocked.at.get(rank, ())}
    if inside:
        # They have come where all have, and none goes on: it is one of these.
        held = {where: groups.waiting[where] for where in inside if where in groups.waiting}
        return _past(held, groups, heard, waits) or _inside(held, waits, "")
    if nothing := _begun_nothing(groups, seen, heard):
        return _at(nothing, "absent", min(groups.waiting, default=("", 0)), groups, waits)
    if known:
        return _known(known, blocked, groups, seen, waits)
    circle = _order(blocked, groups, seen, waits) if awaited else None
    if circle is not None:
        return circle
    if ends:
        return _unheard(ends, blocked, groups, seen, waits)
    lost = everybody - heard
    return _inside(groups.waiting, waits, ranges(lost))


def _begun_nothing(
    groups: Groups, seen: Mapping[int, RankSeen], heard: frozenset[int]
) -> tuple[int, ...]:
    """Return the few ranks that have begun nothing at all, where the others have."""
    begun = {
        rank
        for found in (*groups.enqueued.values(), *groups.exchanged.values())
        for rank, n in found.items()
        if n
    }
    few = tuple(sorted(r for r in heard - begun if not seen[r].inside and seen[r].groups))
    return few if len(few) * 4 <= len(begun) else ()


def _known(
    known: tuple[int, ...],
    blocked: Blocked,
    groups: Groups,
    seen: Mapping[int, RankSeen],
    waits: set[int],
) -> Culprits:
    """Return the ranks that wait for nothing; the few that wait for most others called too much."""
    outside = tuple(r for r in known if not seen[r].inside) or known
    # A stack outside of any collective tells more than that none is recorded.
    outside = tuple(r for r in outside if seen[r].at) or outside
    if not any(
        work.started is not None for found in groups.waiting.values() for work in found.values()
    ):
        outside = _most_inner(outside, blocked, groups)
        if len(outside) > _LOOSE and not any(seen[r].at for r in known):
            told = Culprits(candidates=outside, missing=f"stacks of ranks {ranges(outside)}")
            return _replaced(told, min(blocked.absent, key=lambda one: one[1]), groups, waits)
    places = {where: others for where, others in blocked.absent.items() if others & set(outside)}
    where = min(places, key=lambda one: (-len(places[one]), one[1]))
    there = tuple(sorted(groups.waiting.get(where, ())))
    if there and len(there) < len(places[where]) and len(places) == 1 and waits <= {*there}:
        return _at(there, "past", where, groups, waits)
    return _at(outside, "absent", where, groups, waits)


def _most_inner(known: tuple[int, ...], blocked: Blocked, groups: Groups) -> tuple[int, ...]:
    """Return those of *known* that are awaited in small groups, not in wide ones alone.

    Gloo records no sends and receives: a whole stage that waits in one seems to wait for nothing.
    """
    least = {
        rank: min(
            len(groups.of.get(group, ())) for (group, _), o in blocked.absent.items() if rank in o
        )
        for rank in known
    }
    widest = max(len(one) for one in groups.of.values())
    return tuple(r for r in known if least[r] < widest) or known


def _unheard(
    ends: list[int],
    blocked: Blocked,
    groups: Groups,
    seen: Mapping[int, RankSeen],
    waits: set[int],
) -> Culprits:
    """Return who it is where only ranks without a dump are at the end of all waiting."""
    stood = tuple(r for r in ends if r in seen and seen[r].answers in _STANDS)
    # Who wrote a dump that cannot be read lived then.
    ends = list(stood) or [r for r in ends if r not in seen] or ends
    stuck = _inside(groups.waiting, waits, "")
    if stuck.how == "device":
        return stuck
    place = next(where for where, others in blocked.absent.items() if ends[0] in others)
    if odd := odd_exchanges(groups):
        return _at(odd, "order", place, groups, waits)
    most = _most_awaited(ends, blocked)
    if len(most) == 1 or stood:
        return _at(most, "missing", place, groups, waits)
    if node := _neighbours(ends, blocked, _span(groups)):
        return _at(node, "missing", place, groups, waits)
    told = Culprits(candidates=tuple(ends), missing=f"dumps of ranks {ranges(ends)}")
    return _replaced(told, place, groups, waits)


def _span(groups: Groups) -> int:
    """Return how many neighbouring ranks the widest group of neighbours has, except that of all."""
    widths = {len(one) for one in groups.of.values() if one and max(one) - min(one) < len(one)}
    return max(widths - {max(widths, default=1)}, default=1)


def _neighbours(ends: list[int], blocked: Blocked, span: int) -> list[int]:
    """Return the longest run of *ends* if some of it are awaited wherever ranks wait in vain.

    A run that holds whole blocks of *span* ranks is that of nodes: its edges are lost dumps.
    """
    runs: list[list[int]] = [[]]
    for rank in ends:
        if runs[-1] and rank != runs[-1][-1] + 1:
            runs.append([])
        runs[-1].append(rank)
    longest = max(runs, key=len)
    whole = [r for r in longest if {*range(r - r % span, r - r % span + span)} <= {*longest}]
    longest = whole
    if len(longest) < (_NODE if span == 1 else span) or sum(len(run) >= _NODE for run in runs) > 1:
        return []
    awaited = [others for others in blocked.absent.values() if others & set(ends)]
    return longest if all(others & set(longest) for others in awaited) else []


def _most_awaited(ends: list[int], blocked: Blocked) -> list[int]:
    """Return those of *ends* that are awaited in the most groups: others went along with theirs."""
    groups: dict[int, set[str]] = {one: set() for one in ends}
    for (group, _), others in blocked.absent.items():
        for one in others & groups.keys():
            groups[one].add(group)
    most = max(len(found) for found in groups.values())
    return [one for one, found in groups.items() if len(found) == most]


def _at(ranks: Sequence[int], how: str, where: Where, groups: Groups, waits: set[int]) -> Culprits:
    return Culprits(tuple(ranks), how, where, _op(where, groups), len(waits))


def _replaced(told: Culprits, where: Where, groups: Groups, waits: set[int]) -> Culprits:
    return Culprits((), "", where, _op(where, groups), len(waits), told.candidates, told.missing)


def _op(where: Where, groups: Groups) -> str:
    works = groups.waiting.get(where, {}).values()
    return next((one.op for one in works), "")


def _order(
    blocked: Blocked, groups: Groups, seen: Mapping[int, RankSeen], waits: set[int]
) -> Culprits | None:
    """Return who is to blame where ranks wait for each other in a circle; None where none do.

    One that does not answer has work under way from before it stood. Else the order is wrong, or
    one was left out, by the rank that alone explains all waiting.
    """
    circle = circle_of(blocked)
    if not circle:
        return None
    stands = tuple(sorted(r for r in circle if r in seen and seen[r].answers in _STANDS))
    awaited = {
        rank: [where for where, others in blocked.absent.items() if rank in others]
        for rank in circle
    }
    place = min((where for found in awaited.values() for where in found), default=("", 0))
    if stands:
        return _at(stands, "absent", awaited[stands[0]][0], groups, waits)
    if odd := odd_exchanges(groups) or odd_among_its_like(circle, groups):
        return _at(odd, "order", awaited.get(odd[0], [place])[0], groups, waits)
    alone = [rank for rank in sorted(circle) if explains(rank, blocked)]
    fewest = {rank: min(len(blocked.absent[where]) for where in awaited[rank]) for rank in alone}
    few = [rank for rank in alone if fewest[rank] == min(fewest.values())]
    if len(few) == 1:
        return _at(few, "order", awaited[few[0]][0], groups, waits)
    missing = "the order of collectives in the program"
    told = Culprits(candidates=tuple(few or sorted(circle)), missing=missing)
    return _replaced(told, place, groups, waits)


def _inside(places: Mapping[Where, Mapping[int, Work]], waits: set[int], lost: str) -> Culprits:
    """Return who is behind where all have come and none goes on: inside of a collective."""
    for where, found in sorted(places.items(), key=lambda pair: pair[0][1]):
        begun = {rank for rank, work in found.items() if work.started}
        behind = tuple(sorted(r for r, work in found.items() if _is_behind(r, work, where, places)))
        if begun and behind and len(behind) <= len(begun):
            return Culprits(behind, "device", where, found[behind[0]].op, len(waits))
    where = min(places, key=lambda one: one[1], default=("", 0))
    here = places.get(where, {})
    op = next((work.op for work in here.values()), "")
    missing = f"dumps of ranks {lost}" if lost else "counters of the links between these ranks"
    if not op and here and not lost:
        missing = "what these ranks began: the ring of the flight recorder was too short"
    how = "link" if op and not lost else ""
    return Culprits((), how, where, op, len(waits), tuple(sorted(here)), missing)


def _past(
    places: Mapping[Where, Mapping[int, Work]],
    groups: Groups,
    heard: frozenset[int],
    waits: set[int],
) -> Culprits | None:
    """Return the few that have gone past where the others wait: theirs was another call.

    On CPUs alone, where a call ends when its result is there: sums of too few numbers end early.
    """
    where = min(places, key=lambda one: one[1])
    here, there = places[where], groups.enqueued[where[0]]
    op = next((work.op for work in here.values()), "")
    if not _comparable(op) or any(work.started is not None for work in here.values()):
        return None
    past = tuple(sorted(r for r in heard if r not in here and there.get(r, 0) > where[1]))
    if not past or len(past) >= len(here):
        return None
    return Culprits(past, "past", where, op, len(waits))


def _is_behind(
    rank: int, work: Work, where: Where, places: Mapping[Where, Mapping[int, Work]]
) -> bool:
    """Say whether a device has not begun, and is not held up by what it has begun elsewhere."""
    return work.started is False and not any(
        other != where and (there := found.get(rank)) is not None and there.started
        for other, found in places.items()
    )
