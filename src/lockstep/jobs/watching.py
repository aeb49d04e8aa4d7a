"""Ranks that go on, and not as they should: one is slower than the others, or the loss is odd.

All is judged from what the launchers report now, so that a controller that was just started says
the same. Nothing is restarted for it: the verdict says what to do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median
from typing import Final

import numpy as np
from msgspec import structs

from lockstep.api.diagnosis import Diagnosis
from lockstep.api.rendezvous import RankFigures, Report
from lockstep.api.training import TrainingJobStatus
from lockstep.health.core import losses, stragglers
from lockstep.health.core.holding import holds
from lockstep.health.core.stragglers import Known, Slow
from lockstep.jobs import conditions as cond
from lockstep.jobs.job_state import Seen
from lockstep.jobs.roster import Roster

THROTTLED: Final = "the GPU is slowed down"
_LEAST_DATA: Final = 0.02
"""Share of a step below which waits for data do not count."""

Ranks = Mapping[int, tuple[str, RankFigures]]
"""By rank its pod and what its telemetry shows."""


def judge(
    seen: Seen, status: TrainingJobStatus, roster: Roster, told: Mapping[str, Report], now: float
) -> TrainingJobStatus:
    """Return *status* with what is odd about ranks that go on, and without what is no more."""
    if cond.holds(status, cond.HANGING):
        return status
    ranks = dict(_ranks(status, told))
    status = _put(status, cond.LOSS_ABNORMAL, "LossOdd", _loss(ranks), now)
    if cond.holds(status, cond.LOSS_ABNORMAL):
        return status
    return _put(status, cond.STRAGGLING, "RankSlow", _slow(seen, roster, ranks), now)


def _put(
    status: TrainingJobStatus, type_: str, reason: str, found: Diagnosis | None, now: float
) -> TrainingJobStatus:
    if found is None:
        if not cond.holds(status, type_):
            return status
        status = cond.clear(status, type_, cond.Why("Passed", "it is over"), now)
        return structs.replace(status, diagnosis=None)
    there = status.diagnosis
    if cond.holds(status, type_) and there is not None and there.place == found.place:
        # Figures differ from report to report; the verdict does not.
        return status
    status = structs.replace(status, diagnosis=found)
    return cond.put(status, type_, True, cond.Why(reason, found.cause), now)


def _ranks(
    status: TrainingJobStatus, told: Mapping[str, Report]
) -> Iterator[tuple[int, tuple[str, RankFigures]]]:
    for name, report in told.items():
        current = report.generation == status.generation and report.state == "Running"
        if current and report.first_rank is not None:
            for one in report.ranks:
                yield report.first_rank + one.local, (name, one)


def _loss(ranks: Ranks) -> Diagnosis | None:
    told = {rank: one.loss for rank, (_, one) in ranks.items() if one.loss is not None}
    return losses.reported(told, {rank: ranks[rank][1].steps for rank in told})


def _slow(seen: Seen, roster: Roster, ranks: Ranks) -> Diagnosis | None:
    order = sorted(rank for rank, (_, one) in ranks.items() if one.busy)
    if len(order) < stragglers.FEWEST or len(order) * 2 <= len(ranks):
        return None
    window = stragglers.WINDOW
    columns = [ranks[rank][1].busy[-window:] for rank in order]
    if min(len(one) for one in columns) < window:
        return None
    seconds = np.array(columns, dtype=np.float64).T
    found = stragglers.slow(seconds / np.median(seconds, axis=1, keepdims=True))
    if not found:
        return None
    some = [Slow(order[one.rank], one.excess, one.errors) for one in found]
    return stragglers.verdict(some[0], {some[0].rank: _known(seen, roster, ranks, some)})


def _known(seen: Seen, roster: Roster, ranks: Ranks, slow: list[Slow]) -> Known:
    """Return what else is known of the slowest rank."""
    name, own = ranks[slow[0].rank]
    pod = roster.current.get(name)
    waits = [max(one.data, _LEAST_DATA) for _, one in ranks.values()]
    throttled = next(
        (
            one.evidence
            for one in seen.findings.get(pod.spec.node_name if pod else "", ())
            if pod is not None and one.cause == THROTTLED and one.device in holds(pod)
        ),
        "",
    )
    return Known(
        node=pod.spec.node_name if pod is not None else "",
        data=max(own.data, _LEAST_DATA) / median(waits),
        throttled=throttled,
        neighbours=any(ranks[one.rank][0] == name for one in slow[1:]),
    )
