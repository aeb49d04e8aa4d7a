"""The diagnosis of a job whose ranks do not go on, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import convert

from lockstep.api.diagnosis import LONGEST_LINE, Act, Class, Diagnosis, Place
from lockstep.api.rank_evidence import RankSeen
from lockstep.health.core.culprits import Culprits, culprits
from lockstep.health.core.traces import facts, ranges

MOST_NAMED: Final = 64


def rank_seen(dump: object, rank: int, node: str = "") -> RankSeen:
    """Return what a *dump* of the flight recorder says of *rank*.

    Raises:
        NoDump: when it is none.
    """
    return convert({**facts(dump), "rank": rank, "node": node}, RankSeen)


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
    place = Place(nodes=nodes, ranks=ranks[:MOST_NAMED])
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
    if any(word in at for word in ("dataloader", "data_loader", "dataset", "_try_get_data")):
        return "storage", "restart_in_place", 0.8, f"rank {named} waits for data{where}{place}"
    sure = 0.8 if states == {"all"} else 0.7
    return "software", "restart_in_place", sure, f"rank {named} has not come{where}{place}"


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
