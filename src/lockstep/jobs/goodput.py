"""What a job's time went to: of its time in the system, how much made steps that count, by cause.

The status keeps the seconds of each cause up to the last change of it, so that it is written when
the cause changes and not otherwise. A change is dated by the ranks' own figures where they tell
more exactly when it was. A step is counted once: one that was done before is recomputed, and it is
lost to what had ended the ranks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import structs

from lockstep.api import timestamp
from lockstep.api.goodput import Goodput, GoodputCause, spent
from lockstep.api.rendezvous import RankFigures, Report, World
from lockstep.api.training import TrainingJobStatus
from lockstep.jobs import conditions as cond
from lockstep.jobs import gathering
from lockstep.jobs.job_state import Seen

_STEPPING: Final = ("productive", "recomputing")


def of_generation(status: TrainingJobStatus, told: Mapping[str, Report]) -> list[Report]:
    """Return what launchers report of ranks that they have started in the present generation.

    Before its ranks are started a launcher shows the figures of those before.
    """
    found = (r for r in told.values() if r.generation == status.generation)
    return [r for r in found if r.state not in ("Idle", "Ready")]


def stepped(report: Report, resumed: int) -> bool:
    """Say whether a rank has made a step in the present generation."""
    if any(rank.steps for rank in report.ranks):
        return True
    return report.step is not None and report.step > resumed


def turned(known: Goodput, cause: GoodputCause, moment: str) -> Goodput:
    """Return *known* with *cause* from *moment* on; the time until then counts as before."""
    if known.cause == cause:
        return known
    # Whole seconds, as they are written: what ends then, and what begins, share no time.
    so_far = spent(known, timestamp.parse(moment))
    seconds = {name: round(some, 1) for name, some in so_far.items()}
    return structs.replace(known, cause=cause, since=moment if cause else None, seconds=seconds)


def turns(
    status: TrainingJobStatus, cause: GoodputCause, now: float, told: Iterable[Report]
) -> Iterator[tuple[GoodputCause, float]]:
    """Yield the causes up to *cause*, each with when it began.

    What ranks have *told* dates the change: when they began to step, when they made their last
    step, and when they were as far as before.
    """
    before, done = status.goodput.cause, status.goodput.step
    if before == cause:
        yield cause, now
        return
    paces = [(report, one) for report in told for one in report.ranks if one.steps and one.at]
    if cause in _STEPPING and paces:
        report, first = min(paces, key=lambda one: one[1].at or now)
        began = min(now, (first.at or now) - first.steps * first.seconds)
        done_again = _done_again(report, first, done)
        if before not in _STEPPING:
            yield "recomputing" if done_again else cause, began
        if cause == "productive" and (done_again or before in _STEPPING):
            yield cause, min(now, began + done_again * first.seconds)
    elif before in _STEPPING and cause and paces:
        yield cause, min(now, max(one.at or 0.0 for _, one in paces))
    else:
        yield cause, now


def _done_again(report: Report, rank: RankFigures, done: int) -> int:
    """Return how many of a *rank*'s steps in its generation had been done before."""
    here = _position(report)
    return min(rank.steps, max(0, done - (here - rank.steps))) if here >= 0 else 0


def forgiven(status: TrainingJobStatus, told: Mapping[str, Report]) -> TrainingJobStatus:
    """Return *status* for a failure to come: the first in a row, if steps were finished before."""
    if farthest(told.values()) <= status.goodput.step:
        return status
    return structs.replace(status, failures_in_a_row=0)


def _position(report: Report) -> int:
    """Return how many steps its ranks have finished since the job began; -1 where that is unknown.

    Of a program that does not tell it, it is what its state held at first and what it did since.
    """
    if report.step is not None:
        return report.step
    ranks = (one for one in report.ranks if one.steps and one.begun is not None)
    return max(((one.begun or 0) + one.steps for one in ranks), default=-1)


def farthest(told: Iterable[Report]) -> int:
    """Return how many steps the ranks have finished that came farthest; -1: not known."""
    return max((_position(report) for report in told), default=-1)


def counted(seen: Seen, status: TrainingJobStatus, told: Mapping[str, Report]) -> TrainingJobStatus:
    """Return *status* with the steps that the present generation does again, once it has begun."""
    known, there = status.goodput, gathering.current(seen)
    if there is None or known.counted >= status.generation:
        return status
    present = of_generation(status, told)
    begun = _begun(there, present)
    if begun is None or there.generation != status.generation:
        return status
    lost = dict(known.lost)
    if known.last > begun:
        lost[known.ended_by] = lost.get(known.ended_by, 0) + known.last - begun
    known = structs.replace(known, lost=lost, counted=status.generation)
    return structs.replace(status, goodput=known)


def _begun(there: World, present: Iterable[Report]) -> int | None:
    """Return the steps that its ranks began with; None while none of them has made one."""
    resumed = there.resume or 0
    found: list[int] = []
    for report in present:
        if report.step is not None and stepped(report, resumed):
            found.append(resumed)
        elif report.step is None:
            found += [one.begun for one in report.ranks if one.steps and one.begun is not None]
    return min(found, default=None)


def reached(status: TrainingJobStatus, told: Mapping[str, Report], ended: int) -> TrainingJobStatus:
    """Return *status* with how far the ranks of the generation *ended* had come."""
    known = status.goodput
    furthest = farthest(told.values())
    best = max(known.step, furthest)
    if known.counted == ended and furthest >= 0:
        # Ranks that made no step leave what the ones before them had reached.
        why = cond.find(status, cond.RESTARTING)
        name = why.reason if why is not None and why.status == "True" else "Resized"
        if cond.holds(status, cond.SUSPENDED):
            name = "Suspended"
        known = structs.replace(known, last=furthest, ended_by=name)
    return structs.replace(status, goodput=structs.replace(known, step=best))
