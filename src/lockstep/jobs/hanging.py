"""Ranks that seem not to go on: what all tell that was asked, and the verdict on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import structs

from lockstep.api.rank_evidence import RankSeen
from lockstep.api.rendezvous import Report
from lockstep.api.roles import processes
from lockstep.api.training import TrainingJobStatus
from lockstep.health.core.hang import verdict
from lockstep.jobs import conditions as cond
from lockstep.jobs import gathering
from lockstep.jobs.job_state import Seen
from lockstep.jobs.roster import Roster

PATIENCE: Final = 60.0
"""Seconds without a step that an evaluation or a checkpoint may take, where no rank is to blame."""
BLAMES: Final = 0.5
"""Confidence from which on a verdict tells why ranks wait."""


def judged(seen: Seen, status: TrainingJobStatus) -> bool:
    """Say whether launchers were asked, or a verdict stands that may have to go."""
    there = gathering.current(seen)
    asked = there is not None and there.generation == status.generation and there.asked
    return asked or cond.holds(status, cond.HANGING)


def judge(
    seen: Seen,
    status: TrainingJobStatus,
    roster: Roster,
    told: Mapping[str, Report],
    now: float,
) -> TrainingJobStatus:
    """Return *status* with the verdict once all that can have told; without it once all go on."""
    if not gathering.suspected(told, status.generation):
        if not cond.holds(status, cond.HANGING):
            return status
        status = cond.clear(status, cond.HANGING, cond.Why("GoesOn", "all ranks go on"), now)
        return structs.replace(status, diagnosis=None)
    reported = {name: report for name, report in told.items() if report.hang}
    if any(name not in reported for name in roster.wanted if name not in seen.silent):
        return status
    found = verdict(_ranks(roster, reported), _world(roster))
    if found.confidence < BLAMES and now - _last_step(told, status.generation) < PATIENCE:
        return status
    why = cond.Why("RanksWait", found.cause)
    return cond.put(structs.replace(status, diagnosis=found), cond.HANGING, True, why, now)


def _last_step(told: Mapping[str, Report], generation: int) -> float:
    """Return when a rank of *generation* that may hang ended its last step, Unix time; else 0."""
    return max(
        (
            rank.at or 0.0
            for report in told.values()
            if report.generation == generation
            for rank in report.ranks
            if rank.suspect
        ),
        default=0.0,
    )


def _ranks(roster: Roster, reported: Mapping[str, Report]) -> dict[int, RankSeen]:
    found = {}
    for name, report in reported.items():
        pod = roster.current.get(name)
        node = pod.spec.node_name if pod is not None else ""
        for one in report.hang:
            if one.answers != "none":
                found[one.rank] = structs.replace(one, node=node)
            else:
                found[one.rank] = RankSeen(rank=one.rank, answers="none", node=node)
    return found


def _world(roster: Roster) -> int:
    return sum(processes(member.role) for member in roster.wanted.values())
