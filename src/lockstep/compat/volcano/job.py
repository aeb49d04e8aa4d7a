"""Volcano's jobs: tasks, their policies and what plugins set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lockstep.api.core import AnyObject
from lockstep.api.wire import Json
from lockstep.compat import native
from lockstep.compat.admission import different
from lockstep.compat.pods import template
from lockstep.compat.tiers import by_hypernodes
from lockstep.compat.translation import Refused, Translation, read
from lockstep.compat.volcano import plugins
from lockstep.compat.volcano.admission import check_job, check_topology
from lockstep.compat.volcano.objects import JobSpec, Policy, Task

PREFIX: Final = "volcano.sh/"
SCHEDULER: Final = "volcano"
RESTARTS: Final = ("RestartJob", "RestartTask", "RestartPod", "RestartPartition")
_ON_EXIT: Final = {
    "AbortJob": "Fail",
    "TerminateJob": "Fail",
    **dict.fromkeys(RESTARTS, "Restart"),
}
"""What each action is where a policy names an exit code."""
FAILED: Final = frozenset({"PodFailed", "TaskFailed", "*"})
FAILURES: Final = ("PodFailed", "PodEvicted", "TaskFailed", "*")
_SERVED: Final = {
    "AbortJob": FAILURES,
    "TerminateJob": FAILURES,
    "CompleteJob": ("TaskCompleted", "PodCompleted"),
    **dict.fromkeys(RESTARTS, FAILURES),
}
"""Events of which each action may be the answer."""


def to_native(obj: AnyObject) -> Translation:
    """Return *obj* as a TrainingJob.

    Raises:
        Refused: when something in it cannot be honoured.
    """
    spec = read(obj.spec, JobSpec)
    if spec.scheduler_name not in ("", SCHEDULER, "default-scheduler", "lockstep"):
        raise Refused("spec.schedulerName", spec.scheduler_name, f"must be {SCHEDULER}")
    names = [task.name or f"default{i}" for i, task in enumerate(spec.tasks)]
    check_job(obj, spec, names)
    check_topology(spec.network_topology, "spec.networkTopology")
    _bounds(spec)
    built = plugins.Built(
        obj,
        {
            name: _role(obj, spec, task, name, f"spec.tasks[{i}]")
            for i, (name, task) in enumerate(zip(names, spec.tasks, strict=True))
        },
    )
    plugins.apply(built, spec.plugins)
    _volumes(built, spec)
    _order(spec, built.tasks, names)
    if built.framework == "plain":
        _least(spec, list(built.tasks.values()))
    job = native.training_job(
        obj,
        built.framework,
        list(built.tasks.values()),
        restarts=_restarts(spec),
        clean="Running",
        queue=spec.queue,
        rules=_rules(spec),
        priorityClassName=spec.priority_class_name,
        topology=by_hypernodes(spec.network_topology),
        successPolicy=_success(spec, names),
        ssh=built.ssh,
    )
    return Translation((job, *built.more), expires_after=spec.ttl_seconds_after_finished)


def _bounds(spec: JobSpec) -> None:
    total = sum(task.replicas for task in spec.tasks)
    if spec.min_available is not None and spec.min_available > total:
        raise Refused("spec.minAvailable", spec.min_available, f"must be at most {total}, its pods")
    for i, task in enumerate(spec.tasks):
        if task.min_available is not None and task.min_available > task.replicas:
            at, most = f"spec.tasks[{i}].minAvailable", task.replicas
            raise Refused(at, task.min_available, f"must be at most {most}, its replicas")


def _role(obj: AnyObject, spec: JobSpec, task: Task, name: str, at: str) -> Json:
    meta = obj.metadata
    told = {
        f"{PREFIX}job-name": meta.name,
        f"{PREFIX}queue-name": spec.queue,
        f"{PREFIX}task-index": "{index}",
        f"{PREFIX}task-spec": name,
    }
    notes = {
        **told,
        f"{PREFIX}job-version": "0",
        f"{PREFIX}job-retry-count": "0",
        f"{PREFIX}template-uid": f"{meta.name}-{name}",
    }
    found: Json = {
        "name": name,
        "replicas": task.replicas,
        "template": template(task.template, f"{at}.template", schedulers=(SCHEDULER,)),
        "identity": {
            "labels": {**told, f"{PREFIX}job-namespace": meta.namespace},
            "annotations": notes,
        },
    }
    return found


def _policies(spec: JobSpec) -> Iterator[tuple[str, str | None, Policy]]:
    """Yield each policy with its field and its task, if it is of one."""
    for i, policy in enumerate(spec.policies):
        yield f"spec.policies[{i}]", None, policy
    for t, task in enumerate(spec.tasks):
        for i, policy in enumerate(task.policies):
            yield f"spec.tasks[{t}].policies[{i}]", task.name or f"default{t}", policy


def _restarts(spec: JobSpec) -> int:
    """Return how often the job may start again.

    Raises:
        Refused: for a policy that is not served.
    """
    again = False
    for at, _, policy in _policies(spec):
        events = policy.events or ([policy.event] if policy.event else [])
        if policy.exit_code is not None:
            if events:
                raise Refused(f"{at}.exitCode", policy.exit_code, "cannot stand beside an event")
            if policy.action not in _ON_EXIT:
                raise Refused(f"{at}.action", policy.action, f"must be of: {', '.join(_ON_EXIT)}")
            again = again or policy.action in RESTARTS
            continue
        if policy.action not in _SERVED:
            raise Refused(f"{at}.action", policy.action, f"served are: {', '.join(_SERVED)}")
        for event in events:
            if event not in _SERVED[policy.action]:
                allowed = f"{policy.action} is served on: {', '.join(_SERVED[policy.action])}"
                raise Refused(f"{at}.event", event, allowed)
        again = again or policy.action in RESTARTS
    inside = [task.template.get("spec", {}).get("restartPolicy") for task in spec.tasks]
    if all(policy != "Never" for policy in inside):
        return native.UNLIMITED
    return spec.max_retry if again else 0


def _rules(spec: JobSpec) -> list[Json]:
    """Return the policies about exit codes, and those that end the job, as rules of ours."""
    found: list[Json] = []
    for _, task, policy in _policies(spec):
        if policy.exit_code is None:
            continue
        made: Json = {"action": _ON_EXIT[policy.action], "exitCodes": [str(policy.exit_code)]}
        found.append(made | ({"roles": [task]} if task is not None else {}))
    return found


def _volumes(built: plugins.Built, spec: JobSpec) -> None:
    """Mount the job's volumes in all pods, by claims that are there or are made.

    Raises:
        Refused: where Volcano's webhook denies it: two at one path, or no claim.
    """
    at = "spec.volumes"
    rows = ((f"{at}[{i}].mountPath", one.mount_path) for i, one in enumerate(spec.volumes))
    different(rows, "a path of a volume")
    for i, one in enumerate(spec.volumes):
        name = one.volume_claim_name or f"{built.obj.metadata.name}-volume-{i}"
        if one.volume_claim and one.volume_claim_name:
            allowed = "leave it out: the claim that volumeClaimName names is there already"
            raise Refused(f"{at}[{i}].volumeClaim", name, allowed)
        if one.volume_claim:
            built.more.append(native.claim(built.obj, name, one.volume_claim))
        elif not one.volume_claim_name:
            raise Refused(f"{at}[{i}].volumeClaim", None, "say it, or volumeClaimName")
        for role in built.tasks.values():
            source = {"persistentVolumeClaim": {"claimName": name}}
            native.mount(role["template"], f"lockstep-volume-{i}", one.mount_path, source)


def _least(spec: JobSpec, roles: list[Json]) -> None:
    """Let the job start with its fewest pods: those of its tasks, or so many of all.

    A job that starts anew as a whole when a pod fails is placed as a whole.
    """
    for _, _, policy in _policies(spec):
        if policy.action in RESTARTS and FAILED.intersection((policy.event, *policy.events)):
            return
    wanted = [t.replicas if t.min_available is None else t.min_available for t in spec.tasks]
    left = sum(wanted) if spec.min_available is None else spec.min_available
    if left < sum(wanted):
        # Any pods will do; those of the first tasks go first, and one of each.
        left -= len(wanted)
        for i, most in enumerate(wanted):
            wanted[i] = 1 + min(max(left, 0), most - 1)
            left -= most - 1
    for role, least in zip(roles, wanted, strict=True):
        if max(1, least) < role["replicas"]:
            role["min"] = max(1, least)


def _order(spec: JobSpec, roles: dict[str, Json], names: list[str]) -> None:
    """Say which tasks go before which: a task begins once those are ready."""
    for i, (name, task) in enumerate(zip(names, spec.tasks, strict=True)):
        wish = task.depends_on
        if wish is None or not wish.name:
            continue
        at = f"spec.tasks[{i}].dependsOn"
        if wish.iteration != "all" and len(wish.name) > 1:
            raise Refused(f"{at}.iteration", wish.iteration or "any", "must be all")
        for before in wish.name:
            if before not in names or before == name:
                raise Refused(f"{at}.name", before, f"must be other tasks of: {', '.join(names)}")
        roles[name]["after"] = [{"role": before, "condition": "Ready"} for before in wish.name]


def _success(spec: JobSpec, names: list[str]) -> Json | None:
    """Return whose success is the job's: tasks whose end completes it, where any does."""
    found = [task for _, task, p in _policies(spec) if p.action == "CompleteJob"]
    if not found:
        return None
    roles = [name for name in names if name in found] or names
    return {"roles": roles, "operator": "Any" if len(roles) > 1 else "All"}
