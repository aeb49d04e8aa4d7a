"""Who keeps a job waiting: a graph of which rank waits for which, over all groups at once.

A rank that has not come to a collective keeps all waiting that have. One that itself waits in
another group is no culprit: what is at the end of the chain is. No clock is compared.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from msgspec import convert

from lockstep.api.diagnosis import LONGEST_LINE, Act, Class, Diagnosis, Place
from lockstep.api.rank_evidence import RankSeen, Work, members
from lockstep.health.core.traces import facts, ranges

MOST_NAMED: Final = 64
_UNEQUAL: Final = frozenset({"gather", "scatter", "barrier", "all_to_all", "alltoall_base"})
_P2P: Final = re.compile(r"(send|recv)\s+(\d+)\s*(->|<-)\s*(\d+)")

_STANDS: Final = ("trace", "none", "stopped")
"""Answers of a rank whose program does not go on by itself."""

Where = tuple[str, int]
"""A group and a sequence number."""


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


@dataclass
class _Groups:
    """Members of each group and how far each of them has come."""

    of: dict[str, frozenset[int]] = field(default_factory=dict)
    enqueued: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    waiting: dict[Where, dict[int, Work]] = field(default_factory=lambda: defaultdict(dict))
    p2p: dict[int, list[Work]] = field(default_factory=lambda: defaultdict(list))


def rank_seen(dump: object, rank: int, node: str = "") -> RankSeen:
    """Return what a *dump* of the flight recorder says of *rank*.

    Raises:
        NoDump: when it is none.
    """
    return convert({**facts(dump), "rank": rank, "node": node}, RankSeen)


@lru_cache(maxsize=4096)
def _members(text: str) -> frozenset[int]:
    try:
        return members(text)
    except ValueError:
        return frozenset()


def _read(seen: Mapping[int, RankSeen]) -> _Groups:
    found = _Groups()
    told: dict[str, set[str]] = defaultdict(set)
    for rank, one in seen.items():
        for group in one.groups:
            found.enqueued[group.group][rank] = group.enqueued
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


def culprits(seen: Mapping[int, RankSeen], world: int = 0) -> Culprits:
    """Return who keeps the ranks waiting that are *seen*, by rank.

    *world* is the number of all ranks, where it is known: those of whom nothing is known at all
    are members of every group whose members no dump names.
    """
    groups = _read(seen)
    everybody = frozenset(range(world)) if world else frozenset().union(*groups.of.values())
    waits = {rank for found in groups.waiting.values() for rank in found} | set(groups.p2p)
    if not waits:
        return _silent(seen, everybody)
    if bad := _mismatch(groups, len(waits)):
        return bad
    return _ends(_blocked(groups, seen, everybody), groups, seen, waits, everybody)


def _silent(seen: Mapping[int, RankSeen], everybody: frozenset[int]) -> Culprits:
    """Return what can be said where no rank waits in a collective."""
    stopped = tuple(sorted(r for r, one in seen.items() if one.answers == "stopped"))
    if stopped:
        return Culprits(stopped, "absent")
    lost = everybody - seen.keys()
    if lost:
        return Culprits(candidates=tuple(sorted(lost)), missing=f"dumps of ranks {ranges(lost)}")
    return Culprits(missing="no rank waits in a collective: stacks of all ranks")


def _mismatch(groups: _Groups, waiting: int) -> Culprits | None:
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
    return (work.op, work.shape if _comparable(work.op) else "")


@dataclass
class _Blocked:
    """Where ranks wait, and who is awaited there."""

    at: dict[int, list[Where]] = field(default_factory=lambda: defaultdict(list))
    absent: dict[Where, frozenset[int]] = field(default_factory=dict)

    def by(self, rank: int) -> Iterable[tuple[Where, frozenset[int]]]:
        """Yield where *rank* waits for others, and for whom."""
        for where in self.at.get(rank, ()):
            if others := self.absent[where] - {rank}:
                yield where, others


def _blocked(groups: _Groups, seen: Mapping[int, RankSeen], everybody: frozenset[int]) -> _Blocked:
    """Return for which ranks each rank waits.

    Ranks without a dump are waited for only where no other explains why a collective stands.
    """
    found = _Blocked()
    heard = _heard(seen)
    for where, ranks in groups.waiting.items():
        group, seq = where
        there = groups.enqueued[group]
        all_ = groups.of[group]
        absent = frozenset(r for r in all_ if r in heard and there.get(r, 0) < seq)
        if not absent:
            whole = all_ | everybody if _is_world(group, groups, all_) else all_
            absent = whole - heard
        found.absent[where] = absent
        for rank in ranks:
            found.at[rank].append(where)
    for rank, works in groups.p2p.items():
        for work in works:
            peer = _peer(rank, work, groups)
            if peer is not None and not _answers(peer, rank, work, groups):
                where = (f"{work.group} {work.op}", work.seq)
                found.absent[where] = frozenset({peer})
                found.at[rank].append(where)
    return found


def _heard(seen: Mapping[int, RankSeen]) -> frozenset[int]:
    """Return the ranks of which more is known than that they do not answer."""
    return frozenset(r for r, one in seen.items() if one.groups or one.answers == "all")


def _is_world(group: str, groups: _Groups, all_: frozenset[int]) -> bool:
    """Say whether a group whose members nobody names is that of all ranks: the widest is."""
    return len(all_) == max(len(one) for one in groups.of.values()) and group in (
        "",
        "0",
        "default_pg",
    )


def _peer(rank: int, work: Work, groups: _Groups) -> int | None:
    found = _P2P.search(work.op)
    if found is None:
        return None
    ends = int(found[2]), int(found[4])
    order = sorted(groups.of.get(work.group, frozenset()))
    if max(ends) >= len(order):
        return None
    here = [order[end] for end in ends]
    return next((one for one in here if one != rank), None)


def _answers(peer: int, rank: int, work: Work, groups: _Groups) -> bool:
    """Say whether *peer* waits in the other half of the same exchange."""
    other = "recv" if work.op.find("send") >= 0 else "send"
    return any(
        w.group == work.group and other in w.op and _peer(peer, w, groups) == rank
        for w in groups.p2p.get(peer, ())
    )


def _ends(
    blocked: _Blocked,
    groups: _Groups,
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
    heard = _heard(seen)
    known = tuple(r for r in ends if r in heard)
    inside = {work_at for rank in known for work_at in blocked.at.get(rank, ())}
    if inside:
        # They have come where all have, and none goes on: it is one of these.
        held = {where: groups.waiting[where] for where in inside if where in groups.waiting}
        return _past(held, groups, heard, waits) or _inside(held, waits, "")
    if known:
        return _at(known, "absent", awaited[known[0]], groups, waits)
    if ends:
        stood = tuple(r for r in ends if r in seen and seen[r].answers in _STANDS)
        if stood and len(stood) < len(ends):
            ends = list(stood)
        stuck = _inside(groups.waiting, waits, "")
        if stuck.how == "device":
            return stuck
        ends = _most_awaited(ends, blocked)
        place = awaited[ends[0]]
        if len(ends) == 1 or stood:
            return _at(ends, "missing", place, groups, waits)
        told = Culprits(candidates=tuple(ends), missing=f"dumps of ranks {ranges(ends)}")
        return _replaced(told, place, groups, waits)
    if awaited:
        return _order(blocked, groups, seen, waits)
    lost = everybody - heard
    return _inside(groups.waiting, waits, ranges(lost))


def _most_awaited(ends: list[int], blocked: _Blocked) -> list[int]:
    """Return those of *ends* that are awaited in the most groups: others went along with theirs."""
    groups: dict[int, set[str]] = {one: set() for one in ends}
    for (group, _), others in blocked.absent.items():
        for one in others & groups.keys():
            groups[one].add(group)
    most = max(len(found) for found in groups.values())
    return [one for one, found in groups.items() if len(found) == most]


def _at(ranks: Sequence[int], how: str, where: Where, groups: _Groups, waits: set[int]) -> Culprits:
    return Culprits(tuple(ranks), how, where, _op(where, groups), len(waits))


def _replaced(told: Culprits, where: Where, groups: _Groups, waits: set[int]) -> Culprits:
    return Culprits((), "", where, _op(where, groups), len(waits), told.candidates, told.missing)


def _op(where: Where, groups: _Groups) -> str:
    works = groups.waiting.get(where, {}).values()
    return next((one.op for one in works), "")


def _order(
    blocked: _Blocked, groups: _Groups, seen: Mapping[int, RankSeen], waits: set[int]
) -> Culprits:
    """Return who is to blame where ranks wait for each other in a circle.

    One that does not answer has work under way from before it stood. Else the order is wrong, or
    one was left out, by the rank that alone explains all waiting.
    """
    circle = _circle(blocked)
    stands = tuple(sorted(r for r in circle if r in seen and seen[r].answers in _STANDS))
    awaited = {
        rank: [where for where, others in blocked.absent.items() if rank in others]
        for rank in circle
    }
    place = min((where for found in awaited.values() for where in found), default=("", 0))
    if stands:
        return _at(stands, "absent", awaited[stands[0]][0], groups, waits)
    alone = [rank for rank in sorted(circle) if _explains(rank, blocked)]
    fewest = {rank: min(len(blocked.absent[where]) for where in awaited[rank]) for rank in alone}
    few = [rank for rank in alone if fewest[rank] == min(fewest.values())]
    if len(few) == 1:
        return _at(few, "order", awaited[few[0]][0], groups, waits)
    missing = "the order of collectives in the program"
    told = Culprits(candidates=tuple(few or sorted(circle)), missing=missing)
    return _replaced(told, place, groups, waits)


def _explains(one: int, blocked: _Blocked) -> bool:
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


def _circle(blocked: _Blocked) -> set[int]:
    """Return the ranks of one circle; there is one, as every awaited rank waits itself."""
    rank = next(r for r in blocked.at if any(blocked.by(r)))
    path: dict[int, int] = {}
    order: list[int] = []
    while rank not in path:
        path[rank] = len(order)
        order.append(rank)
        rank = min(min(others) for _, others in blocked.by(rank))
    return set(order[path[rank] :])


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
    groups: _Groups,
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


# In words


def outliers(seen: Iterable[RankSeen]) -> tuple[int, ...]:
    """Return the ranks whose stacks differ from those of most; none where most do not agree."""
    frames = {one.rank: one.frames for one in seen if one.frames}
    if len(frames) < 3:
        return ()
    ((usual, most),) = Counter(frames.values()).most_common(1)
    odd = tuple(sorted(rank for rank, hash_ in frames.items() if hash_ != usual))
    return odd if most > len(odd) else ()


def verdict(seen: Mapping[int, RankSeen], world: int = 0) -> Diagnosis:
    """Return the diagnosis of a job whose ranks do not go on."""
    found = culprits(seen, world)
    ranks = list(found.ranks)
    odd = outliers(seen.values())
    if not ranks and odd and not found.how:
        ranks = list(odd)
        found = Culprits(odd, "absent", found.where, found.op, found.waiting)
    nodes = sorted({seen[r].node for r in ranks if r in seen and seen[r].node})
    class_, action, sure, words = _judged(found, seen)
    evidence = _evidence(found, seen)
    place = Place(nodes=nodes, ranks=ranks[:MOST_NAMED] or list(found.candidates[:MOST_NAMED]))
    return Diagnosis(class_, words, action, place, sure, evidence)


def _judged(found: Culprits, seen: Mapping[int, RankSeen]) -> tuple[Class, Act, float, str]:
    named, place = ranges(list(found.ranks)), _place(found)
    if found.how == "mismatch" and found.ranks:
        why = f"rank {named} calls {found.op} where the others call something else{place}"
        return "user", "stop_and_tell_user", 0.92, why
    if found.how == "mismatch":
        return "user", "stop_and_tell_user", 0.7, f"ranks call different collectives{place}"
    if found.how == "past":
        why = f"rank {named} has gone past where the others wait: it calls something else{place}"
        return "user", "stop_and_tell_user", 0.7, why
    if found.how == "order":
        why = f"rank {named} calls collectives in another order than the others{place}"
        return "user", "stop_and_tell_user", 0.85, why
    if found.how == "device":
        return "hardware", "isolate_node", 0.7, f"the device of rank {named} has not begun{place}"
    if found.how == "link":
        words = f"cannot tell: all ranks have begun and none ends{place}; missing: {found.missing}"
        return "network", "restart_in_place", 0.4, words
    if not found.ranks:
        return "unknown", "observe", 0.0, f"cannot tell: {_which(found)}missing: {found.missing}"
    return _absent(found, seen, named, place)


def _absent(
    found: Culprits, seen: Mapping[int, RankSeen], named: str, place: str
) -> tuple[Class, Act, float, str]:
    """Return what keeps a rank from coming, by what answers in it."""
    states = {seen[r].answers if r in seen else "none" for r in found.ranks}
    at = next((seen[r].at for r in found.ranks if r in seen and seen[r].at), "")
    where = f", at {at}" if at else ""
    if states == {"stopped"}:
        return "platform", "restart_in_place", 0.9, f"the process of rank {named} is stopped{place}"
    if states == {"trace"}:
        why = f"rank {named} holds the interpreter's lock{where}{place}"
        return "software", "restart_in_place", 0.85, why
    if states <= {"none"} and found.how == "missing":
        why = f"rank {named} gives no answer, and the others wait for it{place}"
        return "software", "restart_in_place", 0.7, why
    if _loads(at):
        return "storage", "restart_in_place", 0.8, f"rank {named} waits for data{where}{place}"
    return "software", "restart_in_place", 0.8, f"rank {named} has not come{where}{place}"


def _loads(at: str) -> bool:
    return any(word in at for word in ("dataloader", "data_loader", "dataset", "_try_get_data"))


def _place(found: Culprits) -> str:
    group, seq = found.where
    if not found.op and not group:
        return ""
    return f": {found.op or 'operation'} {seq} of group {group or '?'}"


def _which(found: Culprits) -> str:
    if not found.candidates:
        return ""
    return f"one of ranks {ranges(list(found.candidates))} keeps {found.waiting} waiting; "


def _evidence(found: Culprits, seen: Mapping[int, RankSeen]) -> list[str]:
    lines = []
    if found.op:
        group, seq = found.where
        lines.append(f"{found.waiting} ranks wait; {found.op} {seq} of group {group}")
    for rank in (found.ranks or found.candidates)[:4]:
        one = seen.get(rank)
        if one is None:
            lines.append(f"rank {rank}: nothing is known")
            continue
        far = ", ".join(f"{g.group}: {g.completed}/{g.enqueued}" for g in one.groups[:6])
        lines.append(
            f"rank {rank}: completed/enqueued {far or '-'}; answers: {one.answers} {one.at}"
        )
    return [line[:LONGEST_LINE] for line in lines]
