"""Failures: what counts as one, what it means for the job, when to try again."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec import structs

from lockstep.api import duration, timestamp
from lockstep.api.backoff import Backoff
from lockstep.api.core import Pod
from lockstep.api.names import MEMORY, RESTART_ANNOTATION, SIZE_ANNOTATION
from lockstep.api.roles import launched
from lockstep.api.training import LastError, ReplicaStatus, TrainingJob, TrainingJobStatus
from lockstep.health.core.exits import PERMANENT_EXIT_CODES, last_line
from lockstep.jobs import conditions as cond
from lockstep.jobs import seating
from lockstep.jobs.frameworks.base import Framework, members, size
from lockstep.jobs.hearing import SILENT_AFTER
from lockstep.jobs.last_words import last_words
from lockstep.jobs.roster import Roster, exits, leaving

OUT_OF_MEMORY: Final = "OOMKilled"
START_ERROR: Final = "StartError"
PERMANENT_START_ERROR: Final = re.compile(
    r"(?:cannot run|working directory|exec:) .*(?:no such file or directory|not found in \$PATH"
    r"|permission denied|not a directory|exec format error)",
    re.IGNORECASE,
)
"""What a node says of a command that no restart can start."""

DISRUPTION: Final = "DisruptionTarget"
PREEMPTED: Final = "PreemptionByScheduler"
"""The condition of pods that Kubernetes, or a node, ends for reasons that are not their own."""

STABLE_AFTER: Final = 600.0
"""Seconds of running after which a failure is the first in a row again."""
_RESTARTS: Final = Backoff(initial=5.0, cap=300.0)


@dataclass(frozen=True, slots=True)
class Failure:
    """A member that failed or was lost; ``uid`` is empty where nothing is left of it."""

    name: str
    uid: str
    why: str
    permanent: bool = False
    at: str = ""
    """When its first container failed; empty where there is none to tell."""
    code: int | None = None
    """The exit code of its first container that failed, where there is one to tell."""
    disrupted: bool = False
    """Whether the cluster took it away: eviction, preemption, a node told to stop."""


def find(
    roster: Roster,
    status: TrainingJobStatus,
    preempted: Container[str] = (),
    silent: Container[str] = (),
) -> list[Failure]:
    """Return the failures that *status* has not counted yet, the first to happen first.

    A pod that is gone precedes those that failed for want of it; *preempted* are the names of
    those that went so that others could have their place, *silent* those whose launchers have
    fallen silent. A pod that goes away before the gang was
    placed has not run: it is made again and not counted.
    """
    placed = cond.holds(status, cond.PLACED)
    found: list[Failure] = []
    for name, pod in roster.current.items():
        uid = pod.metadata.uid
        if status.replacing.get(name) == uid:
            continue
        if pod.status.phase == "Failed":
            found.append(_of_failed(pod))
        elif name in silent and placed and pod.status.phase == "Running":
            # As good as gone, and not by the job's own fault.
            why = f"the launcher of {name} has not reported for {SILENT_AFTER:.0f} s"
            found.append(Failure(name, uid, why, disrupted=True))
        elif leaving(pod) and placed:
            taken = _taken_away(pod)
            found.append(taken or Failure(name, uid, f"{name} is being deleted"))
    order = {name: at for at, name in roster.in_role()}
    for member in roster.missing() if placed else ():
        created = status.replica_statuses.get(member.role.name, ReplicaStatus()).created
        if order[member.name] < created and member.name not in status.replacing:
            found.append(_of_missing(member.name, member.name in preempted))
    return sorted(found, key=lambda failure: failure.at)


def _of_missing(name: str, preempted: bool) -> Failure:
    why = f"{name} was preempted: its place went to others" if preempted else f"{name} was deleted"
    return Failure(name, "", why, disrupted=preempted)


def _taken_away(pod: Pod) -> Failure | None:
    """Return the loss of a pod that the cluster took away, with what it says of that."""
    name = pod.metadata.name
    for one in pod.status.conditions:
        if one.type == DISRUPTION and one.status == "True":
            lost = "preempted" if one.reason == PREEMPTED else "taken away"
            why = f"{name} was {lost}: {one.message or one.reason}"
            return Failure(name, pod.metadata.uid, why, disrupted=True)
    return None


def _of_failed(pod: Pod) -> Failure:
    name, uid = pod.metadata.name, pod.metadata.uid
    if taken := _taken_away(pod):
        return taken
    for container, end in exits(pod):
        at = end.finished_at or ""
        why = f"{name} failed with exit code {end.exit_code}"
        if end.signal:
            why += f" (signal {end.signal})"
        if end.reason == OUT_OF_MEMORY:
            why = f"{name} was {OUT_OF_MEMORY}{_limit(pod, container.name)}"
        detail = last_words(end.message)
        if end.reason == START_ERROR and PERMANENT_START_ERROR.search(detail):
            return Failure(name, uid, f"{name} cannot start: {detail}", permanent=True, at=at)
        if known := PERMANENT_EXIT_CODES.get(end.exit_code):
            said = f"{known}: {detail}" if detail else known
            return Failure(name, uid, f"{why}: {said}", True, at, end.exit_code)
        detail = detail or end.reason
        if detail not in ("", "Error", OUT_OF_MEMORY):
            signal = end.signal or max(0, end.exit_code - 128)
            why += last_line(0 if end.reason == OUT_OF_MEMORY else signal, detail)
        if len(pod.spec.containers) > 1:
            why += f" (container {container.name})"
        return Failure(name, uid, why, at=at, code=end.exit_code)
    said = ": ".join(part for part in (pod.status.reason, pod.status.message) if part)
    return Failure(name, uid, f"{name} failed: {said or 'its node gave no reason'}")


def _limit(pod: Pod, container: str) -> str:
    """Return at how much memory the container was killed, where it had a limit of its own."""
    found = (c.resources.limits.get(MEMORY) for c in pod.spec.containers if c.name == container)
    limit = next(found, None)
    return f" at {limit}" if limit is not None else ""


def describe(failures: list[Failure]) -> str:
    """Return the first failure in words, and how many others there are."""
    first, others = failures[0], len(failures) - 1
    return first.why + (f" (and {others} more)" if others else "")


def resized(job: TrainingJob, roster: Roster) -> bool:
    """Say whether the pods were made for other sizes than the job has now."""
    now = size(job)
    return any(
        pod.metadata.annotations.get(SIZE_ANNOTATION, now) != now
        for pod in (*roster.current.values(), *roster.surplus)
    )


def asked_again(job: TrainingJob) -> dict[str, str]:
    """Return the annotation by which pods tell that they were made after a restart's request."""
    asked = job.metadata.annotations.get(RESTART_ANNOTATION)
    return {} if asked is None else {RESTART_ANNOTATION: asked}


def restart_asked(job: TrainingJob, roster: Roster) -> bool:
    """Say whether a restart was asked for after the pods were made."""
    asked = job.metadata.annotations.get(RESTART_ANNOTATION)
    return asked is not None and any(
        pod.metadata.annotations.get(RESTART_ANNOTATION) != asked for pod in roster.current.values()
    )


def judge(
    job: TrainingJob,
    framework: Framework,
    status: TrainingJobStatus,
    failures: list[Failure],
    now: float,
    *,
    spares: Sequence[str] = (),
) -> TrainingJobStatus:
    """Return the status after *failures*: failed for good, a member replaced, or a new attempt.

    Of *spares*, pods that stand by, each takes the place of one that was lost.

    What the cluster took away is not held against the job: its restarts are for its own faults.
    The diagnosis of *status* is that of these failures.
    """
    why = describe(failures)
    most = job.spec.recovery.max_restarts
    disrupted = any(f.disrupted for f in failures)
    permanent = next((f for f in failures if f.permanent), None)
    if permanent is not None:
        return fail(status, "PermanentError", permanent.why, now)
    ruled = None if disrupted else _ruled(job, failures[0])
    if ruled == "Fail":
        return fail(status, "FailureRule", f"{why}; by a rule of recovery.rules", now)
    if ruled == "RestartUncounted":
        # It still waits longer each time: what fails at once must not be tried without end.
        status = structs.replace(count(status, why, now), restarts=status.restarts)
        return anew(status, "Restarting", why, now)
    error = None if disrupted else _own_error(job, status, failures[0], now)
    if error is not None and error == status.last_error:
        return fail(status, "SameErrorTwice", f"{why}; the same error twice", now)
    if status.restarts >= most and not disrupted:
        used = f"{why}; all restarts are used up ({most} of {most})"
        return fail(status, "RestartsUsedUp", used, now)
    status = structs.replace(status, message=why) if disrupted else count(status, why, now)
    if error is not None:
        status = structs.replace(status, last_error=error)
    lost = {f.name for f in failures}
    if lost <= framework.replaceable(job) and not _some_done(job, status):
        if taken := seating.taken_over(job, status, lost, spares):
            status, why = taken, f"{why}; a spare takes its place"
        replacing = {**status.replacing, **{f.name: f.uid for f in failures}}
        status = regroup(structs.replace(status, replacing=replacing))
        return cond.put(status, cond.RESTARTING, True, cond.Why("Replacing", why), now)
    return anew(status, "Disrupted" if disrupted else "Restarting", why, now)


def _own_error(
    job: TrainingJob, status: TrainingJobStatus, failure: Failure, now: float
) -> LastError | None:
    """Return an early error of the program itself, which a second restart would not mend.

    None where launchers tell of ranks, where the pod was killed, or where the verdict does not say
    that the user has to change something.
    """
    found = status.diagnosis
    ran = now - (cond.since(status, cond.RUNNING, True) or now)
    told = found is not None and found.action == "stop_and_tell_user"
    if launched(job) or not told or ran >= STABLE_AFTER or (failure.code or 128) >= 128:
        return None
    return LastError(error=failure.why.removeprefix(failure.name).strip())


def _ruled(job: TrainingJob, failure: Failure) -> str | None:
    """Return what the first rule says that fits *failure*; None where none does."""
    role = next((m.role.name for m in members(job) if m.name == failure.name), "")
    for rule in job.spec.recovery.rules:
        if rule.roles and role not in rule.roles:
            continue
        if not rule.exit_codes or any(_within(failure.code, span) for span in rule.exit_codes):
            return rule.action
    return None


def _within(code: int | None, span: str) -> bool:
    low, _, high = span.partition("-")
    return code is not None and int(low) <= code <= int(high or low)


def _some_done(job: TrainingJob, status: TrainingJobStatus) -> bool:
    """Say whether ranks have ended well and left: the others cannot find together with them."""
    return launched(job) and any(r.succeeded for r in status.replica_statuses.values())


def regroup(status: TrainingJobStatus) -> TrainingJobStatus:
    """Return *status* with the next generation of its launchers' world, where it has one."""
    if not status.generation:
        return status
    return structs.replace(status, generation=status.generation + 1)


def count(status: TrainingJobStatus, why: str, now: float) -> TrainingJobStatus:
    """Return *status* with one more restart, and when that may begin."""
    ran = cond.since(status, cond.RUNNING, True)
    stable = ran is not None and now - ran >= STABLE_AFTER
    row = 1 if stable else status.failures_in_a_row + 1
    delay = backoff(row)
    return structs.replace(
        status,
        restarts=status.restarts + 1,
        failures_in_a_row=row,
        retry_at=timestamp.show(now + delay + 1) if delay else None,
        message=why,
    )


def backoff(failures_in_a_row: int) -> float:
    """Return the seconds to wait after so many failures; none after the first."""
    if failures_in_a_row <= 1:
        return 0.0
    return _RESTARTS.ceiling(failures_in_a_row - 1)


def anew(status: TrainingJobStatus, reason: str, why: str, now: float) -> TrainingJobStatus:
    """Return *status* at the beginning of a new attempt, which makes all pods stale."""
    status = structs.replace(
        regroup(status),
        attempt=status.attempt + 1,
        replica_statuses={},
        replacing={},
        seats=None,
        message=why,
    )
    status = cond.put(status, cond.RESTARTING, True, cond.Why(reason, why), now)
    status = cond.clear(status, cond.RUNNING, cond.Why(reason, why), now)
    return cond.clear(status, cond.PLACED, cond.Why(reason, why), now)


def fail(status: TrainingJobStatus, reason: str, why: str, now: float) -> TrainingJobStatus:
    """Return *status* at the end of a job that failed."""
    status = cond.put(status, cond.FAILED, True, cond.Why(reason, why), now)
    return _end(structs.replace(status, phase="Failed", message=why), reason, why, now)


def succeed(status: TrainingJobStatus, now: float) -> TrainingJobStatus:
    """Return *status* at the end of a job that succeeded."""
    began = timestamp.parse(status.start_time) if status.start_time else now

    why = f"done after {duration.show(now - began)}"
    status = cond.put(status, cond.SUCCEEDED, True, cond.Why("Succeeded", why), now)
    return _end(structs.replace(status, phase="Succeeded", message=why), "Succeeded", why, now)


def _end(status: TrainingJobStatus, reason: str, why: str, now: float) -> TrainingJobStatus:
    status = cond.clear(status, cond.RUNNING, cond.Why(reason, why), now)
    status = cond.clear(status, cond.RESTARTING, cond.Why(reason, why), now)
    return structs.replace(status, completion_time=timestamp.show(now), retry_at=None, replacing={})
