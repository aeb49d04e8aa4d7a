"""The status of a pod, computed from what the node knows, as the kubelet computes it."""

from __future__ import annotations

import time

from lockstep.api.share_sizes import HELD, amounts
from lockstep.api.wire import Json
from lockstep.nodes.process.facts import ContainerFacts, Exit, PodFacts, Role, Run, containers_of
from lockstep.nodes.process.pod_lifecycle import due_at, finished, started_main
from lockstep.nodes.process.spec import Container, Pod

OWNED = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", HELD)


def timestamp(seconds: float) -> str:
    """Return *seconds* since the epoch as Kubernetes writes times."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def pod_status(pod: Pod, facts: PodFacts, host_ip: str, now: float) -> Json:
    """Return the whole status of *pod*, ready to be merged into the one on the server.

    Conditions that others wrote (and readiness gates) are kept as they are.
    """
    states = {one.name: (role, facts.of(one.name)) for one, role in containers_of(pod)}
    statuses = {
        one.name: container_status(pod, one, role, facts, now) for one, role in containers_of(pod)
    }
    current = phase(pod, facts)
    result: Json = {
        "phase": current,
        "reason": facts.verdict.reason if facts.verdict else None,
        "message": facts.verdict.message if facts.verdict else None,
        "startTime": timestamp(facts.accepted_at),
    }
    if facts.verdict is not None and not facts.verdict.admitted:
        return result
    result |= {
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
        "qosClass": qos_class(pod),
        "initContainerStatuses": [statuses[one.name] for one in pod.spec.init_containers],
        "containerStatuses": [statuses[one.name] for one in pod.spec.containers],
        "conditions": conditions(pod, facts, current, states, now),
    }
    if facts.ip:
        result |= {"podIP": facts.ip, "podIPs": [{"ip": facts.ip}]}
    return result


# --- phase ---------------------------------------------------------------------------------


def phase(pod: Pod, facts: PodFacts) -> str:
    """Return the phase that the containers' states amount to."""
    if facts.verdict is not None and not facts.verdict.admitted:
        return "Failed"
    ended = facts.verdict is not None or facts.deleted
    running = any(facts.of(one.name).running for one, _ in containers_of(pod))
    if ended and not running:
        return _phase_at_end(pod, facts)
    if _failed_init(pod, facts) and pod.spec.restart_policy == "Never":
        return "Failed"
    if not started_main(pod, facts):
        return "Pending"
    return _phase_of_main(pod, facts)


def _phase_at_end(pod: Pod, facts: PodFacts) -> str:
    if facts.verdict is not None:
        return "Failed"
    exits = [facts.of(one.name).exit for one in pod.spec.containers]
    return "Succeeded" if all(end is not None and end.code == 0 for end in exits) else "Failed"


def _failed_init(pod: Pod, facts: PodFacts) -> bool:
    ends = [facts.of(one.name).exit for one, role in containers_of(pod) if role is Role.INIT]
    return any(end is not None and end.code != 0 for end in ends)


def _phase_of_main(pod: Pod, facts: PodFacts) -> str:
    known = [facts.of(one.name) for one in pod.spec.containers]
    if any(one.run is None for one in known):
        return "Pending"
    anyone = any(facts.of(one.name).running for one, _ in containers_of(pod))
    if anyone or not finished(pod, facts):
        return "Running"
    good = all(one.exit is not None and one.exit.code == 0 for one in known)
    return "Succeeded" if good else "Failed"


# --- containers ----------------------------------------------------------------------------


def container_status(
    pod: Pod, container: Container, role: Role, facts: PodFacts, now: float
) -> Json:
    """Return the status of one container."""
    known = facts.of(container.name)
    state, last = _states(pod, container, role, facts, now)
    attempts = known.run.attempt if known.run else 0
    share = facts.shares.get(container.name)
    limits = {name: str(amount) for name, amount in amounts(share).items()} if share else {}
    return {
        **({"resources": {"limits": limits}} if limits else {}),
        "name": container.name,
        "image": container.image,
        "imageID": "",
        "containerID": f"process://{known.run.pid}" if known.run and known.run.pid else "",
        "ready": _ready(known, role),
        "started": known.running and known.started,
        "restartCount": attempts,
        "state": state,
        "lastState": last,
    }


def _ready(known: ContainerFacts, role: Role) -> bool:
    if role is Role.INIT:
        return known.exit is not None and known.exit.code == 0
    return known.running and known.started and known.ready


def _states(
    pod: Pod, container: Container, role: Role, facts: PodFacts, now: float
) -> tuple[Json, Json]:
    """Return the present state and the one before; each names exactly one of the three."""
    known = facts.of(container.name)
    if known.run is None:
        return _waiting(_why_not_started(pod, role, facts, known)), NO_STATE
    before = _terminated(known.previous) if known.previous else NO_STATE
    if known.run.exit is None:
        since = timestamp(known.run.started)
        return {"running": {"startedAt": since}}, before
    present = _terminated(known.run)
    why = _why_not_again(pod, role, facts, known, now)
    return (_waiting(why), present) if why else (present, before)


NO_STATE: Json = {}


def _waiting(why: tuple[str, str]) -> Json:
    reason, message = why
    return {"waiting": {"reason": reason, **({"message": message} if message else {})}}


def _terminated(run: Run) -> Json:
    end = run.exit or Exit(0)
    reason = end.reason or ("Completed" if end.code == 0 else "Error")
    terminated: Json = {
        "exitCode": end.code,
        "reason": reason,
        "startedAt": timestamp(run.started),
        "finishedAt": timestamp(end.finished),
    }
    if end.signal:
        terminated["signal"] = end.signal
    if end.message:
        terminated["message"] = end.message
    if run.pid:
        terminated["containerID"] = f"process://{run.pid}"
    return {"terminated": terminated}


def _why_not_started(
    pod: Pod, role: Role, facts: PodFacts, known: ContainerFacts
) -> tuple[str, str]:
    if known.hindrance is not None:
        return known.hindrance.reason, known.hindrance.message
    if facts.hindrance is not None:
        return facts.hindrance.reason, facts.hindrance.message
    if pod.spec.init_containers and (role is not Role.MAIN or not initialized(pod, facts)):
        return "PodInitializing", ""
    return "ContainerCreating", ""


def _why_not_again(
    pod: Pod, role: Role, facts: PodFacts, known: ContainerFacts, now: float
) -> tuple[str, str] | None:
    """Return why a container that ended waits to run again; none when it will not."""
    end = known.exit
    if end is None or facts.deleted or facts.verdict is not None or finished(pod, facts):
        return None
    policy = "Always" if role is Role.SIDECAR else pod.spec.restart_policy
    done = end.code == 0 and (role is Role.INIT or policy != "Always")
    if done or policy == "Never":
        return None
    if known.hindrance is not None:
        return known.hindrance.reason, known.hindrance.message
    if now >= due_at(known):
        return None
    wait = f"{known.backoff:.0f}s" if known.backoff < 60 else _minutes(known.backoff)
    name = pod.metadata.name
    return "CrashLoopBackOff", f"back-off {wait} restarting failed container in pod {name}"


def _minutes(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m{rest}s"


# --- conditions ----------------------------------------------------------------------------


def initialized(pod: Pod, facts: PodFacts) -> bool:
    """Tell whether all init containers are done and all sidecars have started."""
    if started_main(pod, facts):
        return True
    for one, role in containers_of(pod):
        known = facts.of(one.name)
        if role is Role.INIT and not (known.exit is not None and known.exit.code == 0):
            return False
        if role is Role.SIDECAR and not (known.running and known.started):
            return False
    return True


def conditions(
    pod: Pod,
    facts: PodFacts,
    current: str,
    states: dict[str, tuple[Role, ContainerFacts]],
    now: float,
) -> list[Json]:
    """Return the conditions: those of others unchanged, the node's own as they are now."""
    over = current in ("Succeeded", "Failed")
    unready = [
        name
        for name, (role, known) in states.items()
        if role is not Role.INIT and not _ready(known, role)
    ]
    containers = _readiness(over, current, unready)
    own = {
        "PodReadyToStartContainers": ("True" if facts.prepared else "False", "", ""),
        "Initialized": _initialization(pod, facts, current),
        "Ready": _with_gates(pod, containers),
        "ContainersReady": containers,
    }
    if facts.disrupted and current == "Failed":
        own["DisruptionTarget"] = ("True", "TerminationByKubelet", facts.disrupted)
    if facts.resized is not None:
        told = facts.resized
        own[HELD] = ("True" if told.done else "False", told.reason, told.message)
    before = {one.type: one for one in pod.status.conditions}
    result = []
    for kind, (status, reason, message) in own.items():
        old = before.get(kind)
        same = old is not None and old.status == status and old.last_transition_time
        since = old.last_transition_time if old is not None and same else timestamp(now)
        result.append(_condition(kind, status, reason, message, since))
    for one in pod.status.conditions:
        if one.type not in own:
            since = one.last_transition_time
            result.append(_condition(one.type, one.status, one.reason, one.message, since))
    return result


def _condition(kind: str, status: str, reason: str, message: str, since: str) -> Json:
    result: Json = {"type": kind, "status": status}
    if since:
        result["lastTransitionTime"] = since
    if reason:
        result["reason"] = reason
    if message:
        result["message"] = message
    return result


def _initialization(pod: Pod, facts: PodFacts, current: str) -> tuple[str, str, str]:
    if initialized(pod, facts):
        return "True", "PodCompleted" if current == "Succeeded" else "", ""
    open_ones = [
        one.name
        for one, role in containers_of(pod)
        if role is not Role.MAIN and not _ready(facts.of(one.name), role)
    ]
    return (
        "False",
        "ContainersNotInitialized",
        f"containers with incomplete status: [{' '.join(open_ones)}]",
    )


def _readiness(over: bool, current: str, unready: list[str]) -> tuple[str, str, str]:
    if over:
        reason = "PodCompleted" if current == "Succeeded" else "PodFailed"
        return "False", reason, ""
    if unready:
        return (
            "False",
            "ContainersNotReady",
            f"containers with unready status: [{' '.join(unready)}]",
        )
    return "True", "", ""


def _with_gates(pod: Pod, containers: tuple[str, str, str]) -> tuple[str, str, str]:
    if containers[0] != "True":
        return containers
    have = {one.type for one in pod.status.conditions if one.status == "True"}
    wanted = [gate.get("conditionType", "") for gate in pod.spec.readiness_gates]
    missing = [gate for gate in wanted if gate not in have]
    if not missing:
        return containers
    return (
        "False",
        "ReadinessGatesNotReady",
        f'corresponding condition of pod readiness gate "{missing[0]}" does not exist.',
    )


# --- quality of service --------------------------------------------------------------------


def qos_class(pod: Pod) -> str:
    """Return Guaranteed, Burstable or BestEffort by the rules of Kubernetes."""
    everyone = [one.resources for one, _ in containers_of(pod)]
    kinds = ("cpu", "memory")
    if not any(r.requests.get(k) or r.limits.get(k) for r in everyone for k in kinds):
        return "BestEffort"
    for one in everyone:
        for kind in kinds:
            limit = one.limits.get(kind)
            if limit is None or str(one.requests.get(kind, limit)) != str(limit):
                return "Burstable"
    return "Guaranteed"
