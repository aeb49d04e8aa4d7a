"""The core: what to do about a job, as a function of what is seen and of the time.

Neither I/O nor a clock: ``decide`` is called again whenever something changes, and always decides
from the whole state.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from msgspec import structs

from lockstep.api import checkpoint, duration, timestamp
from lockstep.api.rendezvous import Report
from lockstep.api.roles import launched, place
from lockstep.api.training import TrainingJob, TrainingJobStatus
from lockstep.api.validation import Problem
from lockstep.jobs import conditions as cond
from lockstep.jobs import (
    diagnosis,
    ensure,
    failures,
    gathering,
    goodput,
    hanging,
    history,
    leaving_nodes,
    ranks,
    seating,
    storage,
    watching,
)
from lockstep.jobs.awaited import held_back
from lockstep.jobs.frameworks import FRAMEWORKS
from lockstep.jobs.frameworks.base import Framework, Member
from lockstep.jobs.job_state import Decision, Seen
from lockstep.jobs.progress import observe
from lockstep.jobs.reasons import unstarted
from lockstep.jobs.roster import Roster, counts, finished, is_ready, owns, read
from lockstep.jobs.validate import problems

TERMINAL: Final = ("Succeeded", "Failed")
RETRY_REFUSED: Final = 5.0
"""Seconds after which what the server refused is tried again."""
LOOK_AGAIN: Final = 10.0
"""Seconds after which pods that do not start are looked at again."""


def decide(seen: Seen, now: float) -> Decision:
    """Return what to do about *seen*'s job at the Unix time *now*, with its history up to then."""
    found = _decide(seen, now)
    return replace(found, status=history.follow(seen, found.status, now))


def _decide(seen: Seen, now: float) -> Decision:
    job = seen.job
    if job.metadata.deletion_timestamp is not None:
        return Decision(_deleting(seen))
    if job.status.phase in TERMINAL:
        return _concluded(seen, job.status, now)
    status = structs.replace(job.status, observed_generation=job.metadata.generation)
    if wrong := problems(job):
        return _invalid(job, status, wrong, now)
    if job.spec.suspend:
        return _suspended(seen, status, now)
    if held := held_back(seen, status, now):
        return held
    status = _saved(job, _queued(seen, _resumed(status, now), now), now)
    return _active(seen, FRAMEWORKS[job.spec.framework], status, now)


def _deleting(seen: Seen) -> TrainingJobStatus:
    """Return the status of a job that is being deleted; one that has ended keeps its own."""
    if seen.job.status.phase in TERMINAL:
        return seen.job.status
    left = sum(owns(seen.job, p.metadata) and not finished(p) for p in seen.pods)
    run = "pod still runs" if left == 1 else "pods still run"
    text = f"being deleted; {left} {run}" if left else "being deleted"
    return structs.replace(seen.job.status, phase="Deleting", message=text)


def _active(seen: Seen, framework: Framework, status: TrainingJobStatus, now: float) -> Decision:
    job = seen.job
    roster = read(job, seen.pods, status)
    if launched(job) and not status.generation:
        status = structs.replace(status, generation=1)
    told = gathering.reports(seen, roster)
    status = gathering.compared(roster, told, status)
    status = _durable(status, gathering.saved_at(roster, told))
    status = storage.held(seen, goodput.counted(seen, status, told), now)
    status, found = _judged(seen, framework, status, roster, told, now=now)
    if status.generation != job.status.generation or status.phase in TERMINAL:
        status = goodput.reached(status, told, max(1, job.status.generation))
    if status.phase not in TERMINAL:
        roster = read(job, seen.pods, status)
        status = _in_time(job, observe(_with(seen, status), roster, status, now), now)
    absent = tuple(f.name for f in found if not f.uid)
    if status.phase in TERMINAL:
        return replace(_concluded(seen, status, now), absent=absent)
    after = _with(seen, status)
    return Decision(
        status,
        tuple(ensure.running(after, framework, roster, now)),
        absent,
        _again(after, roster, now),
        (*cond.notes(job.status, status), *cond.unlaunched(job)),
    )


def _judged(
    seen: Seen,
    framework: Framework,
    status: TrainingJobStatus,
    roster: Roster,
    told: Mapping[str, Report],
    *,
    now: float,
) -> tuple[TrainingJobStatus, list[failures.Failure]]:
    """Return the status after the first of these that holds, and the failures of pods.

    The job has succeeded, a pod failed, a rank failed, its size changed, the user asks for a
    restart, it hangs, or its ranks change seats.
    """
    job, spares = seen.job, seating.ready(roster.standing, told, status)
    if _succeeded(framework, job, roster):
        return failures.succeed(_counted(roster, status), now), []
    if found := [
        *failures.find(roster, status, _preempted(seen), _silent(seen, told)),
        *_leaving(seen, status, roster, told, spares),
    ]:
        status = goodput.forgiven(_counted(roster, status), told)
        status = diagnosis.of_pods(seen, status, roster, found, now)
        return failures.judge(job, framework, status, found, now, spares=spares), found
    if ended := ranks.lost(told, status.generation):
        gone = storage.away(seen, now)
        verdict = diagnosis.of_ranks(seen, status, roster, told, now)
        forgiven = goodput.forgiven(verdict, told)
        status = (
            storage.wait(forgiven, gone, ranks.words(ended), now)
            if gone
            else ranks.judge(job, forgiven, ended, told, now)
        )
    elif failures.resized(job, roster):
        status = failures.anew(status, "Resized", "the job's size has changed", now)
    elif failures.restart_asked(job, roster):
        status = failures.anew(status, "RestartAsked", "a restart was asked for", now)
    elif hanging.judged(seen, status):
        status = hanging.judge(seen, status, roster, told, now)
    elif regrouped := _other_seats(seen, status, roster, told, now):
        status = failures.regroup(regrouped)
    else:
        status = diagnosis.of_waits(status, roster)
        status = watching.judge(seen, status, roster, told, now)
    return status, []


def _other_seats(
    seen: Seen,
    status: TrainingJobStatus,
    roster: Roster,
    told: Mapping[str, Report],
    now: float,
) -> TrainingJobStatus | None:
    """Return *status*, where that helps with another number of pods that hold ranks.

    None where the world may stay as it is.
    """
    job = seen.job
    if gathering.outgrown(seen, status, roster):
        return status
    if not roster.standby and cond.holds(status, cond.RUNNING):
        return None
    ready = seating.ready(roster.standing, told, status)
    return seating.larger(job, status, ready) or seating.smaller(
        job, status, roster.current, told, now
    )


def _silent(seen: Seen, told: Container[str]) -> Container[str]:
    """Return whose launchers have fallen silent, of those that have reported in these pods."""
    return frozenset(name for name in seen.silent if name in told)


def _leaving(
    seen: Seen,
    status: TrainingJobStatus,
    roster: Roster,
    told: Mapping[str, Report],
    spares: Sequence[str],
) -> Iterator[failures.Failure]:
    """Yield the pods that should leave their nodes, where their launchers can go on elsewhere."""
    if launched(seen.job) and cond.holds(status, cond.PLACED):
        yield from leaving_nodes.failures(roster, status.replacing, seen.going, told, spares)


def _preempted(seen: Seen) -> Container[str]:
    return seen.gang.status.preempted if seen.gang is not None else ()


def _with(seen: Seen, status: TrainingJobStatus) -> Seen:
    return replace(seen, job=structs.replace(seen.job, status=status))


def _counted(roster: Roster, status: TrainingJobStatus) -> TrainingJobStatus:
    found = counts(roster, status.replica_statuses, status.replacing)
    return structs.replace(status, replica_statuses=found)


def _succeeded(framework: Framework, job: TrainingJob, roster: Roster) -> bool:
    policy = job.spec.success_policy
    if policy is None:
        deciding = framework.deciding(job)
        if roster.standby:
            deciding = list(roster.wanted.values())
        return all(_done(roster, member) for member in deciding)
    named = [m for m in roster.wanted.values() if m.role.name in policy.roles]
    if policy.operator == "All":
        return all(_done(roster, member) for member in named)
    blocks: dict[tuple[str, int], list[bool]] = {}
    for member in named:
        size = member.role.identity.block or member.role.replicas
        at = member.role.name, place(member.role, member.index) // size
        blocks.setdefault(at, []).append(_done(roster, member))
    return any(all(block) for block in blocks.values())


def _done(roster: Roster, member: Member) -> bool:
    pod = roster.current.get(member.name)
    return pod is not None and pod.status.phase == "Succeeded"


def _in_time(job: TrainingJob, status: TrainingJobStatus, now: float) -> TrainingJobStatus:
    """Return *status*, failed when one of the job's limits of time is exceeded."""
    for end, reason, why in _limits(job, status):
        if now >= end:
            return failures.fail(status, reason, why, now)
    return status


def _limits(job: TrainingJob, status: TrainingJobStatus) -> Iterator[tuple[float, str, str]]:
    longest = job.spec.run_policy.active_deadline
    if longest is not None and status.start_time is not None:
        end = timestamp.parse(status.start_time) + duration.parse(longest)
        yield end, "DeadlineExceeded", f"not done {longest} after its start (activeDeadline)"
    waiting = cond.since(status, cond.PLACED, False)
    if job.spec.max_wait is not None and waiting is not None:
        end = waiting + duration.parse(job.spec.max_wait)
        last = f"; last: {status.message}" if status.message else ""
        yield end, "MaxWaitExceeded", f"not placed within {job.spec.max_wait} (maxWait){last}"


def _again(seen: Seen, roster: Roster, now: float) -> float | None:
    job, status = seen.job, seen.job.status
    moments = [end for end, _, _ in _limits(job, status)]
    if status.retry_at is not None:
        moments.append(timestamp.parse(status.retry_at))
    if (smaller := seating.smaller_at(job, status)) is not None:
        moments.append(smaller)
    if seen.refusals:
        moments.append(now + RETRY_REFUSED)
    if unstarted(list(roster.current.values())):
        moments.append(now + LOOK_AGAIN)
    return _wait([*moments, *_forced(seen)], now)


def _forced(seen: Seen) -> Iterator[float]:
    for pod in seen.pods:
        if pod.metadata.deletion_timestamp is not None and owns(seen.job, pod.metadata):
            yield timestamp.parse(pod.metadata.deletion_timestamp) + ensure.FORCE_AFTER


def _wait(moments: list[float], now: float) -> float | None:
    # What was due already has been acted upon; should that not help, it is not tried at once.
    return min(m - now if m > now else LOOK_AGAIN for m in moments) if moments else None


def _invalid(
    job: TrainingJob, status: TrainingJobStatus, wrong: list[Problem], now: float
) -> Decision:
    text = "; and ".join(str(problem) for problem in wrong)
    status = cond.put(status, cond.CREATED, False, cond.Why("InvalidSpec", text), now)
    status = structs.replace(status, message=text)
    return Decision(status, notes=cond.notes(job.status, status))


def _suspended(seen: Seen, status: TrainingJobStatus, now: float) -> Decision:
    own = [p for p in seen.pods if owns(seen.job, p.metadata)]
    told = gathering.reports(seen, read(seen.job, seen.pods, status))
    if not cond.holds(status, cond.SUSPENDED):
        # The pods of now must not be taken for those of a resumed job.
        used = bool(own) or any(r.created for r in status.replica_statuses.values())
        status = structs.replace(
            status,
            phase="Suspended",
            attempt=status.attempt + used,
            # New launchers must not find the world that those of now were told to run.
            generation=status.generation + bool(status.generation and used),
            failures_in_a_row=0,
            retry_at=None,
            replacing={},
            replica_statuses={},
            seats=None,
        )
        status = cond.put(
            status, cond.SUSPENDED, True, cond.Why("Suspended", "by spec.suspend"), now
        )
        status = goodput.reached(status, told, seen.job.status.generation)
        status = cond.clear(status, cond.RUNNING, cond.Why("Suspended"), now)
        status = cond.clear(status, cond.RESTARTING, cond.Why("Suspended"), now)
        status = cond.drop(status, cond.PLACED)
    left = sum(not finished(p) for p in own)
    text = (
        f"suspended; {left} {'pod is' if left == 1 else 'pods are'} ending" if left else "suspended"
    )
    status = structs.replace(status, message=text)
    after = _with(seen, status)
    return Decision(
        status,
        tuple(ensure.suspended(after, now)),
        again=_wait(list(_forced(after)), now),
        notes=cond.notes(seen.job.status, status),
    )


def _resumed(status: TrainingJobStatus, now: float) -> TrainingJobStatus:
    if not cond.holds(status, cond.SUSPENDED):
        return status
    return cond.clear(status, cond.SUSPENDED, cond.Why("Resumed"), now)


def _queued(seen: Seen, status: TrainingJobStatus, now: float) -> TrainingJobStatus:
    """Return *status* with the time at which the job stood in line for the first time."""
    if status.queued_at is not None:
        return status
    gang = seen.gang
    known = None
    if gang is not None and owns(seen.job, gang.metadata):
        known = gang.metadata.creation_timestamp
    return structs.replace(status, queued_at=known or timestamp.show(now))


def _saved(job: TrainingJob, status: TrainingJobStatus, now: float) -> TrainingJobStatus:
    """Return *status* with the last save that launchers report in a form that can be read."""
    annotations, shown = job.metadata.annotations, status.last_checkpoint
    odd = checkpoint.unreadable(annotations, shown)
    if odd:
        why = cond.Why(cond.CHECKPOINT_UNREADABLE, odd)
        status = cond.put(status, cond.CHECKPOINT_UNREADABLE, True, why, now)
    else:
        status = cond.drop(status, cond.CHECKPOINT_UNREADABLE)
    last = checkpoint.last(annotations, shown)
    return status if last is None else structs.replace(status, last_checkpoint=timestamp.show(last))


def _durable(status: TrainingJobStatus, at: float | None) -> TrainingJobStatus:
    """Return *status* with what the launchers have saved of all ranks, if it is news."""
    shown = status.last_checkpoint
    known = timestamp.read(shown) if shown is not None else None
    if at is None or (known is not None and known >= at):
        return status
    return structs.replace(status, last_checkpoint=timestamp.show(at))


def _concluded(seen: Seen, status: TrainingJobStatus, now: float) -> Decision:
    job = seen.job
    roster = read(job, seen.pods, status)
    status = structs.replace(
        status,
        replica_statuses={
            role: structs.replace(
                known,
                active=sum(not finished(p) for p in roster.of_role(role)),
                ready=sum(is_ready(p) and not finished(p) for p in roster.of_role(role)),
                # Of those that did not decide some may end after the job.
                succeeded=max(
                    known.succeeded,
                    sum(p.status.phase == "Succeeded" for p in roster.of_role(role)),
                ),
            )
            for role, known in status.replica_statuses.items()
        },
    )
    after = _with(seen, status)
    moments = list(_forced(after))
    actions = list(ensure.ended(after, now))
    if job.spec.run_policy.time_to_live is not None and status.completion_time is not None:
        ended = timestamp.parse(status.completion_time)
        expiry = ended + duration.parse(job.spec.run_policy.time_to_live)
        if now >= expiry:
            actions = [ensure.expired(job)]
        moments.append(expiry)
    return Decision(
        status,
        tuple(actions),
        again=_wait(moments, now),
        notes=cond.notes(job.status, status),
    )
