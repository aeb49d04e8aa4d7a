"""Jobs whose pods follow one another: more completions than run at once, limits by index.

A Job whose pods all run side by side is a gang, and is served with other systems' jobs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lockstep.api import timestamp
from lockstep.api.core import PODS, AnyObject, Pod
from lockstep.api.wire import Json
from lockstep.compat.kubernetes.job import in_turn
from lockstep.runtime.actions import Create, Delete
from lockstep.workloads.core import pods as members
from lockstep.workloads.core.job_indexes import read_indexes, show_indexes
from lockstep.workloads.core.plan import JOBS, Plan, World, pod_body, word

INDEX: Final = "batch.kubernetes.io/job-completion-index"
BACK_OFF: Final = 10.0
"""Seconds after the first failure at which its pod is replaced; they double with each."""
LONGEST: Final = 600.0
UNLIMITED: Final = 2**31 - 1


@dataclass(slots=True)
class _Tally:
    """What the pods of a Job have come to."""

    active: list[Pod]
    leaving: list[Pod]
    succeeded: int
    failed: int
    counted: int
    """Failures that the limit counts."""
    done: set[int]
    lost: set[int]
    """Indexes that have succeeded, and those that are given up."""
    failures: list[Pod]
    verdict: tuple[str, str] | None = None
    """Reason and message of a failure that a policy decides."""


def decide(obj: AnyObject, world: World, now: float) -> Plan:
    """Return what the Job *obj* needs next."""
    if not in_turn(obj) or obj.metadata.deletion_timestamp is not None:
        return Plan(obj.status)
    conditions = {one["type"]: one for one in obj.status.get("conditions") or ()}
    plan = Plan({**obj.status})
    if "Complete" in conditions or "Failed" in conditions:
        _expire(obj, plan, now)
        return plan
    tally = _tally(obj, world.pods)
    end = _end(obj, tally, conditions, now)
    if end is None and obj.spec.get("suspend"):
        _clear(plan, tally)
        _say(conditions, "Suspended", "JobSuspended", "Job suspended", now)
    elif end is None:
        if conditions.get("Suspended", {}).get("status") == "True":
            _say(conditions, "Suspended", "JobResumed", "Job resumed", now, holds=False)
        _grow(obj, world, tally, plan, now)
    else:
        _conclude(plan, tally, conditions, end, now)
    _count(obj, tally, plan, conditions, now)
    return plan


def _tally(obj: AnyObject, pods: Sequence[Pod]) -> _Tally:
    failures = [one for one in pods if one.status.phase == "Failed"]
    ended = [one for one in pods if one.status.phase == "Succeeded"]
    tally = _Tally(
        active=[one for one in pods if members.active(one)],
        leaving=[one for one in pods if members.leaving(one) and not members.ended(one)],
        succeeded=max(int(obj.status.get("succeeded") or 0), len(ended)),
        failed=max(int(obj.status.get("failed") or 0), len(failures)),
        counted=0,
        done=read_indexes(obj.status.get("completedIndexes") or ""),
        lost=read_indexes(obj.status.get("failedIndexes") or ""),
        failures=failures,
    )
    if _indexed(obj):
        tally.done |= {index for one in ended if (index := _index(one)) is not None}
        tally.succeeded = len(tally.done)
    by_index: dict[int | None, int] = {}
    for pod in failures:
        action, why = _rule(obj, pod)
        if action == "FailJob":
            tally.verdict = ("PodFailurePolicy", why)
        elif action == "FailIndex" and (index := _index(pod)) is not None:
            tally.lost.add(index)
        elif action != "Ignore":
            tally.counted += 1
            by_index[_index(pod)] = by_index.get(_index(pod), 0) + 1
    limit = obj.spec.get("backoffLimitPerIndex")
    if limit is not None:
        tally.lost |= {i for i, count in by_index.items() if i is not None and count > limit}
    tally.lost -= tally.done
    return tally


def _rule(obj: AnyObject, pod: Pod) -> tuple[str, str]:
    """Return the action of the first rule that fits the failed *pod*, and why; empty for none."""
    rules = (obj.spec.get("podFailurePolicy") or {}).get("rules") or ()
    statuses = [*pod.status.init_container_statuses, *pod.status.container_statuses]
    for i, rule in enumerate(rules):
        codes = rule.get("onExitCodes")
        for status in statuses if codes else ():
            end = status.state.terminated
            if end is None or not end.exit_code:
                continue
            if codes.get("containerName") not in (None, status.name):
                continue
            if (end.exit_code in codes["values"]) == (codes["operator"] == "In"):
                place = f"{pod.metadata.namespace}/{pod.metadata.name}"
                told = f"Container {status.name} for pod {place} failed with exit code "
                return rule["action"], (
                    f"{told}{end.exit_code} matching {rule['action']} rule at index {i}"
                )
        for wish in rule.get("onPodConditions") or ():
            held = {one.type: one.status for one in pod.status.conditions}
            if held.get(wish["type"]) == wish.get("status", "True"):
                place = f"{pod.metadata.namespace}/{pod.metadata.name}"
                return rule["action"], (
                    f"Pod {place} has condition {wish['type']} matching {rule['action']} "
                    f"rule at index {i}"
                )
    return "", ""


def _end(
    obj: AnyObject, tally: _Tally, conditions: dict[str, Json], now: float
) -> tuple[str, str, str] | None:
    """Return how the Job ends: condition, reason and message; none while it goes on."""
    for type_, final in (("SuccessCriteriaMet", "Complete"), ("FailureTarget", "Failed")):
        if known := conditions.get(type_):
            return final, known["reason"], known["message"]
    if failure := _failure(obj, tally, now):
        return ("Failed", *failure)
    wanted = obj.spec.get("completions")
    for i, rule in enumerate((obj.spec.get("successPolicy") or {}).get("rules") or ()):
        among = rule.get("succeededIndexes")
        met = tally.done & read_indexes(among) if among else tally.done
        enough = rule.get("succeededCount")
        if enough is None:
            enough = len(read_indexes(among or ""))
        if len(met) >= enough:
            return "Complete", "SuccessPolicy", f"Matched rules at index {i}"
    if wanted is not None and tally.succeeded >= wanted:
        text = "Reached expected number of succeeded pods"
        return "Complete", "CompletionsReached", text
    if wanted is not None and _indexed(obj) and len(tally.done | tally.lost) >= wanted:
        return "Failed", "FailedIndexes", "Job has failed indexes"
    return None


def _failure(obj: AnyObject, tally: _Tally, now: float) -> tuple[str, str] | None:
    if tally.verdict is not None:
        return tally.verdict
    spec = obj.spec
    usual = 6 if spec.get("backoffLimitPerIndex") is None else UNLIMITED
    limit = int(spec.get("backoffLimit", usual))
    restarts = sum(s.restart_count for p in tally.active for s in p.status.container_statuses)
    if tally.counted > limit or (restarts >= limit if limit else restarts > 0):
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    most = spec.get("maxFailedIndexes")
    if most is not None and len(tally.lost) > most:
        text = "Job has exceeded the specified maximal number of failed indexes"
        return "MaxFailedIndexesExceeded", text
    start = timestamp.read(obj.status.get("startTime"))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and start is not None and now >= start + deadline:
        return "DeadlineExceeded", "Job was active longer than specified deadline"
    return None


def _grow(obj: AnyObject, world: World, tally: _Tally, plan: Plan, now: float) -> None:
    """Make pods that are missing, and end those beyond ``parallelism``."""
    spec = obj.spec
    parallel, wanted = int(spec.get("parallelism", 1)), spec.get("completions")
    if wanted is not None:
        parallel = min(parallel, int(wanted) - len(tally.done | tally.lost)
                       if _indexed(obj) else int(wanted) - tally.succeeded)  # fmt: skip
    start, deadline = timestamp.read(obj.status.get("startTime")), spec.get("activeDeadlineSeconds")
    if deadline is not None:
        plan.wait(max(0.05, (start or now) + deadline - now))
    for pod in members.first_to_go(tally.active)[: max(0, len(tally.active) - parallel)]:
        plan.actions.append(Delete.of(PODS, pod.metadata))
    held = len(tally.active)
    if spec.get("podReplacementPolicy") == "Failed" or spec.get("podFailurePolicy"):
        held += len(tally.leaving)
    missing = parallel - held
    if missing <= 0:
        return
    if (left := _back_off(tally, now)) > 0:
        plan.wait(left)
        return
    for name, index in _new(obj, world, tally, missing):
        plan.actions.append(Create(PODS, _pod(obj, name, index)))


def _back_off(tally: _Tally, now: float) -> float:
    """Return for how many seconds no pod is made after failures."""
    ends = [
        moment
        for pod in tally.failures
        for status in pod.status.container_statuses
        if (end := status.state.terminated) and (moment := timestamp.read(end.finished_at))
    ]
    if not ends:
        return 0.0
    wait = min(LONGEST, BACK_OFF * 2.0 ** min(len(tally.failures) - 1, 10))
    return max(ends) + wait - now


def _new(
    obj: AnyObject, world: World, tally: _Tally, count: int
) -> Iterator[tuple[str, int | None]]:
    """Yield names and indexes of *count* new pods; the same ones as long as they are free."""
    name, taken = obj.metadata.name, world.names
    number = 0
    busy = {_index(pod) for pod in [*tally.active, *tally.leaving]} | tally.done | tally.lost
    free = (i for i in range(int(obj.spec.get("completions") or 0)) if i not in busy)
    while count > 0:
        index = next(free, None) if _indexed(obj) else None
        if index is None and _indexed(obj):
            return
        head = name if index is None else f"{name}-{index}"
        while (made := f"{head}-{word(5, obj.metadata.uid, number)}") in taken:
            number += 1
        number += 1
        yield made, index
        count -= 1


def _pod(obj: AnyObject, name: str, index: int | None) -> Json:
    template = obj.spec.get("template") or {}
    if index is None:
        return pod_body(JOBS, obj, template, name)
    body = pod_body(JOBS, obj, template, name, **{INDEX: str(index)})
    meta, spec = body["metadata"], body["spec"]
    meta["annotations"] = {**(meta.get("annotations") or {}), INDEX: str(index)}
    spec["hostname"] = f"{obj.metadata.name}-{index}"
    own = {"name": "JOB_COMPLETION_INDEX", "value": str(index)}
    for field in ("initContainers", "containers"):
        if listed := spec.get(field):
            spec[field] = [{**one, "env": [*(one.get("env") or []), own]} for one in listed]
    return body


def _clear(plan: Plan, tally: _Tally) -> None:
    plan.actions += [Delete.of(PODS, pod.metadata) for pod in tally.active]


def _conclude(
    plan: Plan, tally: _Tally, conditions: dict[str, Json], end: tuple[str, str, str], now: float
) -> None:
    """Decide the end, end the pods that are left, and then say that the Job is over."""
    final, reason, message = end
    first = "SuccessCriteriaMet" if final == "Complete" else "FailureTarget"
    if first not in conditions:
        _say(conditions, first, reason, message, now)
    _clear(plan, tally)
    if not tally.active and not tally.leaving:
        _say(conditions, final, reason, message, now)
        if final == "Complete":
            plan.status["completionTime"] = timestamp.show(now)


def _say(
    conditions: dict[str, Json],
    type_: str,
    reason: str,
    message: str,
    now: float,
    *,
    holds: bool = True,
) -> None:
    status, moment = "True" if holds else "False", timestamp.show(now)
    if conditions.get(type_, {}).get("status") == status:
        return
    conditions[type_] = {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "lastProbeTime": moment,
        "lastTransitionTime": moment,
    }


def _count(
    obj: AnyObject, tally: _Tally, plan: Plan, conditions: dict[str, Json], now: float
) -> None:
    status: dict[str, Any] = plan.status
    gone = {action.name for action in plan.actions if isinstance(action, Delete)}
    born = sum(isinstance(action, Create) for action in plan.actions)
    kept = [pod for pod in tally.active if pod.metadata.name not in gone]
    status["active"] = len(kept) + born
    status["ready"] = sum(map(members.ready, kept))
    status["terminating"] = len(tally.leaving) + len(gone)
    status["succeeded"], status["failed"] = tally.succeeded, tally.failed
    status["conditions"] = list(conditions.values())
    status["uncountedTerminatedPods"] = {}
    if _indexed(obj):
        status["completedIndexes"] = show_indexes(tally.done)
    if obj.spec.get("backoffLimitPerIndex") is not None:
        status["failedIndexes"] = show_indexes(tally.lost)
    if obj.spec.get("suspend"):
        status.pop("startTime", None)
    else:
        status.setdefault("startTime", timestamp.show(now))


def _expire(obj: AnyObject, plan: Plan, now: float) -> None:
    """Delete a Job when its time after its end is over."""
    after = obj.spec.get("ttlSecondsAfterFinished")
    ends = [
        moment
        for one in obj.status.get("conditions") or ()
        if one.get("type") in ("Complete", "Failed")
        and (moment := timestamp.read(one.get("lastTransitionTime"))) is not None
    ]
    if after is None or not ends:
        return
    left = ends[0] + after - now
    if left > 0:
        plan.wait(left)
    else:
        plan.actions.append(Delete.of(JOBS, obj.metadata))


def _indexed(obj: AnyObject) -> bool:
    return obj.spec.get("completionMode") == "Indexed"


def _index(pod: Pod) -> int | None:
    text = pod.metadata.annotations.get(INDEX, "")
    return int(text) if text.isdecimal() else None
