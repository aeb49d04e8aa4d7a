"""How far each rank has come, as the watchdogs of NCCL write it into the ranks' logs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from lockstep.api.diagnosis import Diagnosis
from lockstep.api.rank_evidence import GroupSeen, RankSeen, Work
from lockstep.health.core.hang import verdict
from lockstep.health.core.lines import Line
from lockstep.health.core.traces import UNNAMED

_TIMED_OUT: Final = re.compile(
    r"\[Rank (\d{1,6})\] Watchdog caught collective operation timeout: "
    r"WorkNCCL\(SeqNum=(\d{1,18}), OpType=(\w+)(?:, NumelIn=(\d+))?"
)
_PROGRESS: Final = re.compile(
    r"\[PG (?:ID )?(\d{1,6})\b.{0,80}?Rank (\d{1,6})\].* at (?:NCCL )?work: (\d{1,18}), "
    r"last enqueued (?:NCCL )?work: (\d{1,18}), last completed (?:NCCL )?work: (-?\d{1,18})"
)
FEWEST: Final = 3
"""Ranks that must have written something before one that wrote nothing is missed."""


def of_watchdogs(lines: Iterable[Line]) -> Diagnosis | None:
    """Return the verdict on ranks whose watchdogs timed out; None where it names no rank."""
    works: dict[int, tuple[int, str, str]] = {}
    far: dict[int, tuple[str, int, int, int]] = {}
    for line in lines:
        if found := _TIMED_OUT.search(line.text):
            works.setdefault(int(found[1]), (int(found[2]), found[3], found[4] or ""))
        elif found := _PROGRESS.search(line.text):
            group = "0" if found[1] == "0" else f"{UNNAMED}{found[1]}"
            far.setdefault(int(found[2]), (group, int(found[3]), int(found[4]), int(found[5])))
    seen = {rank: _seen(rank, works.get(rank), far.get(rank)) for rank in works.keys() | far.keys()}
    if len(seen) < 2:
        return None
    told = verdict(seen, max(seen) + 1)
    if told.class_ == "user":
        return told
    return told if told.place.ranks and len(seen) >= FEWEST else None


def _seen(
    rank: int, work: tuple[int, str, str] | None, far: tuple[str, int, int, int] | None
) -> RankSeen:
    seq, op, size = work or (far[1] if far else 0, "", "")
    group, _, enqueued, completed = far or ("0", seq, seq, seq - 1)
    waits = [Work(group, seq, op.lower(), size)] if seq > completed else []
    return RankSeen(rank, groups=[GroupSeen(group, enqueued, completed)], waiting=waits)
