"""The history of a job, written with each decision: a function of what was, what is, and the time.

It is part of the status that a decision writes, so that a controller that is killed in between
neither loses a part of it nor writes one twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import structs

from lockstep.api import timestamp
from lockstep.api.job_history import (
    CAUSE_OF,
    LONGEST_TEXT,
    MOST_ATTEMPTS,
    MOST_ENDS,
    MOST_NODES,
    MOST_SPANS,
    Attempt,
    History,
    HistoryPhase,
    RankEnd,
    Span,
)
from lockstep.api.rendezvous import Report
from lockstep.api.roles import launched, processes
from lockstep.api.training import TrainingJobStatus
from lockstep.jobs import conditions as cond
from lockstep.jobs import gathering, goodput
from lockstep.jobs.coming_up import coming_up
from lockstep.jobs.job_state import Seen
from lockstep.jobs.last_words import last_words
from lockstep.jobs.roster import Roster, exits, read

_OVER = ("Succeeded", "Failed")


def follow(seen: Seen, status: TrainingJobStatus, now: float) -> TrainingJobStatus:
    """Return *status*, which was decided from *seen*, with its history up to *now*, Unix time."""
    old = seen.job.status
    if old.phase in _OVER:
        return status
    roster = read(seen.job, seen.pods, old)
    told = gathering.reports(seen, roster)
    phase = _phase(seen, status, roster, told)
    cause = CAUSE_OF[phase] if phase else ""
    history, spent = status.history, status.goodput
    spans, dropped = history.spans, history.dropped_spans
    for name, moment in list(goodput.turns(status, cause, now, told.values())):
        # Only steps that are done again come between two phases unseen.
        at = phase if name == cause else "lost"
        spans, began = _spans(spans, at, timestamp.show(moment))
        spent = goodput.turned(spent, name, began)
    most = spans[-MOST_SPANS:]
    history = structs.replace(
        history,
        spans=most,
        dropped_spans=dropped + len(spans) - len(most),
        saves=history.saves + (status.last_checkpoint not in (None, old.last_checkpoint)),
    )
    status = structs.replace(status, history=history, goodput=spent)
    attempts = _attempts(old, status, roster, told, timestamp.show(now))
    return structs.replace(status, history=attempts)


def _phase(
    seen: Seen, status: TrainingJobStatus, roster: Roster, told: Mapping[str, Report]
) -> HistoryPhase | None:
    """Return what the job does after the decision; None once it is over."""
    if status.phase in _OVER:
        return None
    if cond.holds(status, cond.SUSPENDED):
        return "suspended"
    created = cond.find(status, cond.CREATED)
    if created is not None and created.reason in ("WaitsForJobs", "InvalidSpec"):
        return "held"
    if not cond.holds(status, cond.PLACED):
        return "queued"
    if not cond.holds(status, cond.RUNNING):
        return coming_up(roster.current.values(), seen.warnings)
    return _training(seen, status, told)


def _training(seen: Seen, status: TrainingJobStatus, told: Mapping[str, Report]) -> HistoryPhase:
    there = gathering.current(seen)
    present = goodput.of_generation(status, told)
    if not launched(seen.job) or seen.job.spec.simulated:
        # Without launchers nothing is told: the time in which pods run counts.
        return "productive"
    if there is None or not present:
        return "start"
    if any(rank.suspect for report in present for rank in report.ranks):
        return "hung"
    if not any(goodput.stepped(report, there.resume or 0) for report in present):
        return "start" if there.resume is None and status.goodput.step < 0 else "restore"
    return "lost" if 0 <= goodput.farthest(present) < status.goodput.step else "productive"


def _spans(spans: list[Span], phase: HistoryPhase | None, moment: str) -> tuple[list[Span], str]:
    """Return the spans after *phase* has begun at *moment*, or goes on; and when it began.

    That is no earlier than the phase before, whose begin is written already.
    """
    last = spans[-1] if spans else None
    if last is not None:
        if not last.end and last.phase == phase:
            return spans, last.begin
        moment = max(moment, last.end or last.begin)
    if last is not None and not last.end:
        # A span of less than a second is none.
        kept = [structs.replace(last, end=moment)] if moment > last.begin else []
        spans = [*spans[:-1], *kept]
    if phase is None:
        return spans, moment
    before = spans[-1] if spans else None
    if before is not None and before.phase == phase and before.end == moment:
        return [*spans[:-1], structs.replace(before, end="")], moment
    return [*spans, Span(phase=phase, begin=moment)], moment


def _attempts(
    old: TrainingJobStatus,
    status: TrainingJobStatus,
    roster: Roster,
    told: Mapping[str, Report],
    now: str,
) -> History:
    """Return the history with the attempt that ended by the decision, or the one that goes on."""
    history, attempts = status.history, status.history.attempts
    last = attempts[-1] if attempts else None
    if last is not None and not last.end:
        last = _grown(last, old, roster, told)
        if _is_over(old, status):
            last = _reached(last, told)
            last = _ended(last, old, status, list(_ends(roster, told, old.generation)), now)
        attempts = [*attempts[:-1], last]
    if (last is None or last.end) and status.phase not in _OVER and cond.holds(status, cond.PLACED):
        number, generation = status.attempt, status.generation
        attempts = [*attempts, Attempt(number=number, generation=generation, begin=now)]
    kept = attempts[-MOST_ATTEMPTS:]
    dropped = history.dropped_attempts + len(attempts) - len(kept)
    return structs.replace(history, attempts=kept, dropped_attempts=dropped)


def _is_over(old: TrainingJobStatus, new: TrainingJobStatus) -> bool:
    """Say whether the ranks of *old* were given up: each such decision is made once."""
    again = (new.attempt, new.generation, new.restarts) != (
        old.attempt,
        old.generation,
        old.restarts,
    )
    replaced = bool(new.replacing.items() - old.replacing.items())
    return again or replaced or new.phase in _OVER or cond.holds(new, cond.SUSPENDED)


def _grown(
    last: Attempt, old: TrainingJobStatus, roster: Roster, told: Mapping[str, Report]
) -> Attempt:
    """Return *last* with the size that it has reached, and how far its ranks have come."""
    if (last.number, last.generation) != (old.attempt, old.generation):
        return last
    placed = {n: p for n, p in roster.current.items() if p.spec.node_name}
    ranks = sum(processes(roster.wanted[name].role) for name in placed)
    nodes = sorted({*last.nodes, *(p.spec.node_name for p in placed.values())})
    return structs.replace(
        last,
        pods=max(last.pods, len(placed)),
        ranks=max(last.ranks, ranks),
        nodes=nodes[:MOST_NODES],
        node_count=max(last.node_count, len({p.spec.node_name for p in placed.values()})),
    )


def _reached(last: Attempt, told: Mapping[str, Report]) -> Attempt:
    """Return *last* with the steps that its launchers told last; not written before its end."""
    mine = [one for one in told.values() if one.generation == last.generation]
    step = max((one.step for one in mine if one.step is not None), default=last.step)
    saved = [one.saved.step for one in mine if one.saved is not None]
    every = min(saved) if mine and len(saved) == len(mine) else last.saved
    return structs.replace(last, step=step, saved=every)


def _ended(
    last: Attempt,
    old: TrainingJobStatus,
    new: TrainingJobStatus,
    ends: list[RankEnd],
    now: str,
) -> Attempt:
    reason, why = _why(old, new)
    found = new.diagnosis if new.diagnosis != old.diagnosis or ends else None
    if reason in ("Succeeded", "Suspended", "Resized", "RestartAsked"):
        found, ends = None, []
    return structs.replace(
        last,
        end=max(now, last.begin),
        reason=reason,
        why=why[:LONGEST_TEXT],
        fault=found.class_ if found is not None else "",
        verdict=found.cause[:LONGEST_TEXT] if found is not None else "",
        counted=new.restarts > old.restarts,
        ended=ends[:MOST_ENDS],
    )


def _why(old: TrainingJobStatus, new: TrainingJobStatus) -> tuple[str, str]:
    """Return why the ranks were given up: a word and a sentence."""
    for type_ in (cond.SUSPENDED, cond.SUCCEEDED, cond.FAILED):
        found = cond.find(new, type_)
        if found is not None and found.status == "True":
            return found.reason, found.message
    found, before = cond.find(new, cond.RESTARTING), cond.find(old, cond.RESTARTING)
    failed = new.restarts > old.restarts or new.attempt > old.attempt
    replaced = bool(new.replacing.items() - old.replacing.items())
    if found is not None and (found != before or failed or replaced):
        return found.reason, found.message
    return "Regrouped", "other pods hold the ranks"


def _ends(roster: Roster, told: Mapping[str, Report], generation: int) -> Iterator[RankEnd]:
    """Yield how ranks ended, the first first; and pods, where no launcher tells of ranks."""
    found = [
        (name, report.ended)
        for name, report in told.items()
        if report.ended is not None and report.generation == generation
    ]
    for name, one in sorted(found, key=lambda pair: pair[1].at):
        line = one.line[:LONGEST_TEXT]
        yield RankEnd(pod=name, rank=one.rank, code=one.code, signal=one.signal, line=line)
    if found:
        return
    failed = [p for p in roster.current.values() if p.status.phase == "Failed"]
    last = [(end, p.metadata.name) for p in failed for _, end in exits(p)[:1]]
    for end, name in sorted(last, key=lambda pair: pair[0].finished_at or ""):
        code, signal = end.exit_code, end.signal or max(0, end.exit_code - 128)
        line = last_words(end.message)[:LONGEST_TEXT] or end.reason
        yield RankEnd(pod=name, code=code, signal=signal, line=line)
