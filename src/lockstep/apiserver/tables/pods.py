"""The table of pods, whose status sums up what their containers do."""

from __future__ import annotations

from dataclasses import dataclass

from lockstep.api.wire import Json
from lockstep.apiserver.tables.format import (
    AGE,
    NAME,
    NONE,
    Cells,
    Column,
    age,
    at,
    containers,
    is_true,
    labels,
    seconds,
    since,
    wide,
)

_POD = "core.v1.PodStatus"
PODS = (
    NAME,
    Column("Ready", "The aggregate readiness state of this pod for accepting traffic."),
    Column("Status", "The aggregate status of the containers in this pod."),
    Column(
        "Restarts",
        "The number of times the containers in this pod have been restarted and when the last "
        "container in this pod has restarted.",
    ),
    AGE,
    wide("IP", f"{_POD}#podIP"),
    wide("Node", "core.v1.PodSpec#nodeName"),
    wide("Nominated Node", f"{_POD}#nominatedNodeName"),
    wide("Readiness Gates", "core.v1.PodSpec#readinessGates"),
)


@dataclass(slots=True)
class _Sum:
    """What the containers amount to, as far as they have been looked at."""

    reason: str
    ready: int = 0
    restarts: int = 0
    last_restart: str = ""
    initializing: bool = False

    def add_restarts(self, status: Json) -> None:
        self.restarts += status.get("restartCount") or 0
        finished = at(status, "lastState.terminated.finishedAt", "")
        if finished and (seconds(finished) or 0) > (seconds(self.last_restart) or 0):
            self.last_restart = finished


def row(obj: Json, now: float) -> Cells:
    """Return the cells of a pod; several of them come from one look at its containers."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    total = _sum_up(obj)
    sidecars = sum(1 for c in spec.get("initContainers") or () if _is_sidecar(c))
    containers = len(spec.get("containers") or ()) + sidecars
    restarts = str(total.restarts)
    if total.restarts and total.last_restart:
        restarts = f"{restarts} ({since(total.last_restart, now)} ago)"
    ips = status.get("podIPs") or [{"ip": status.get("podIP")}]
    return [
        at(obj, "metadata.name", ""),
        f"{total.ready}/{containers}",
        total.reason,
        restarts,
        age(obj, now),
        ips[0].get("ip") or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _gates(obj),
    ]


def _sum_up(obj: Json) -> _Sum:
    status = obj.get("status") or {}
    phase = status.get("phase") or ""
    total = _Sum(status.get("reason") or phase)
    scheduled = (c for c in status.get("conditions") or () if c.get("type") == "PodScheduled")
    if any(c.get("reason") == "SchedulingGated" for c in scheduled):
        total.reason = "SchedulingGated"
    sidecars = _sum_up_init(obj, total)
    if not total.initializing or is_true(obj, "Initialized"):
        total.restarts, total.last_restart = sidecars.restarts, sidecars.last_restart
        _sum_up_containers(obj, total)
    if at(obj, "metadata.deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            total.reason = "Unknown"
        elif phase not in ("Failed", "Succeeded"):
            total.reason = "Terminating"
    return total


def _sum_up_init(obj: Json, total: _Sum) -> _Sum:
    """Look at the init containers in turn, up to the one that is not done."""
    declared = at(obj, "spec.initContainers", [])
    sidecar_names = {c.get("name") for c in declared if _is_sidecar(c)}
    sidecars = _Sum("")
    for position, status in enumerate(at(obj, "status.initContainerStatuses", [])):
        total.add_restarts(status)
        is_sidecar = status.get("name") in sidecar_names
        if is_sidecar:
            sidecars.add_restarts(status)
        state = status.get("state") or {}
        ended, waiting = state.get("terminated"), state.get("waiting") or {}
        if ended is not None and not ended.get("exitCode"):
            continue
        if is_sidecar and status.get("started"):
            total.ready += bool(status.get("ready"))
            continue
        total.initializing = True
        if ended is not None:
            total.reason = f"Init:{_why_ended(ended)}"
        elif waiting.get("reason") and waiting["reason"] != "PodInitializing":
            total.reason = f"Init:{waiting['reason']}"
        else:
            total.reason = f"Init:{position}/{len(declared)}"
        break
    return sidecars


def _sum_up_containers(obj: Json, total: _Sum) -> None:
    has_running, error = False, ""
    for status in reversed(at(obj, "status.containerStatuses", [])):
        total.add_restarts(status)
        state = status.get("state") or {}
        ended, waiting = state.get("terminated"), state.get("waiting") or {}
        if waiting.get("reason"):
            total.reason = waiting["reason"]
        elif ended is not None:
            total.reason = _why_ended(ended)
            if ended.get("exitCode"):
                error = total.reason
        elif status.get("ready") and state.get("running") is not None:
            has_running = True
            total.ready += 1
    if total.reason == "Completed":
        if has_running and is_true(obj, "Ready"):
            total.reason = "Running"
        elif error:
            total.reason = error
        elif has_running:
            total.reason = "NotReady"


def _why_ended(ended: Json) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    if ended.get("signal"):
        return f"Signal:{ended['signal']}"
    return f"ExitCode:{ended.get('exitCode') or 0}"


def _is_sidecar(container: Json) -> bool:
    return bool(container.get("restartPolicy") == "Always")


def _gates(obj: Json) -> str:
    gates = at(obj, "spec.readinessGates", [])
    if not gates:
        return NONE
    return f"{sum(is_true(obj, g.get('conditionType', '')) for g in gates)}/{len(gates)}"


def row_conditions(obj: Json) -> list[Json]:
    """Return what the row of a pod that has ended says about it."""
    phase = at(obj, "status.phase")
    messages = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}
    if phase not in messages:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": messages[phase]}]


COLUMNS = {
    "pods": PODS,
    "podtemplates": (
        NAME,
        *containers("template", Column),
        Column(
            "Pod Labels",
            "The labels for the pod template.",
            lambda obj: labels(at(obj, "template.metadata.labels")),
        ),
    ),
}
