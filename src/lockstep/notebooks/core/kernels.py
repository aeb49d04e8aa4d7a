"""What a kernel needs next: a function of what is known of it, and of the time."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from lockstep.api import duration, timestamp
from lockstep.api.core import PODS, Pod
from lockstep.api.notebooks import Idle, KernelPhase, KernelStatus, ParkedState
from lockstep.api.wire import convert
from lockstep.notebooks.core import kernel_pod
from lockstep.notebooks.core.kernel_state import Decision, Park, Report, SeenKernel, Settings
from lockstep.runtime.actions import Create, Delete, Note

SOON: Final = 0.3
"""Seconds between two looks at a kernel that starts."""
OFTEN: Final = 2.0
SELDOM: Final = 15.0
WARNINGS: Final = (600.0, 120.0)
"""Seconds before its place is taken at which a kernel's user is warned."""
_RESTING: Final = ("Parked", "Lost", "Failed")


def decide(seen: SeenKernel, settings: Settings, now: float) -> Decision:
    """Return what is to be done about a kernel at *now*."""
    kernel, pod = seen.kernel, seen.pod
    status = kernel.status
    if pod is None:
        return _without_pod(seen, settings)
    if pod.metadata.deletion_timestamp is not None:
        return _ending(seen)
    if status.phase in _RESTING:
        # What was decided is carried out, if it was not yet; and a pod whose creation came late
        # goes again, for one that is wanted is made only after the status says so.
        return Decision(status, (_delete(pod),))
    if pod.status.phase in ("Succeeded", "Failed"):
        why = pod.status.message or pod.status.reason or "its process ended"
        status = replace(status, pod_uid=pod.metadata.uid)
        ended = _rest(status, "Lost", f"its pod ended: {why}; {_LAST_STATE}")
        return Decision(ended, (_delete(pod), Note("PodEnded", ended.message, warning=True)))
    if pod.status.phase != "Running" or not pod.status.pod_ip:
        return Decision(_waiting(seen, pod))
    if seen.report is None:
        phase: KernelPhase = "Running" if status.phase in ("Running", "Parking") else "Starting"
        started = replace(status, phase=phase, message="", pod_uid=pod.metadata.uid)
        return Decision(started, again=OFTEN if phase == "Running" else SOON)
    return _answering(seen, pod, seen.report, now)


_LAST_STATE: Final = "the next cell starts it with what was kept of it"


def _without_pod(seen: SeenKernel, settings: Settings) -> Decision:
    kernel = seen.kernel
    status = kernel.status
    if kernel.spec.environment and seen.environment is None:
        text = (
            f"spec.environment: there is no environment {kernel.spec.environment!r} in namespace "
            f"{kernel.metadata.namespace}; create it, or start a kernel in another"
        )
        return Decision(_rest(status, "Failed", text))
    if status.phase in _RESTING and kernel.spec.wake == status.woken:
        return Decision(status)
    if status.phase in ("Running", "Parking"):
        return Decision(_rest(status, "Lost", f"its pod was ended; {_LAST_STATE}"))
    wanted = replace(
        status, phase="Waiting", message="", woken=kernel.spec.wake, address="", pod_uid=""
    )
    return Decision(wanted, (Create(PODS, kernel_pod.pod(seen, settings)),))


def _ending(seen: SeenKernel) -> Decision:
    status = seen.kernel.status
    if status.phase in _RESTING:
        return Decision(status)
    if status.phase in ("Running", "Parking"):
        return Decision(_rest(status, "Lost", f"its pod is being ended; {_LAST_STATE}"))
    return Decision(replace(status, phase="Waiting", message="its last pod is being ended"))


def _waiting(seen: SeenKernel, pod: Pod) -> KernelStatus:
    scheduled = next((one for one in pod.status.conditions if one.type == "PodScheduled"), None)
    message = ""
    if scheduled is not None and scheduled.status == "False":
        message = scheduled.message
    for one in [*pod.status.init_container_statuses, *pod.status.container_statuses]:
        waiting = one.state.waiting
        if waiting is not None and waiting.message:
            message = f"{waiting.reason}: {waiting.message}"
    phase: KernelPhase = "Starting" if pod.spec.node_name else "Waiting"
    return replace(
        seen.kernel.status,
        phase=phase,
        message=message,
        woken=seen.kernel.spec.wake,
        pod_uid=pod.metadata.uid,
    )


def _answering(seen: SeenKernel, pod: Pod, report: Report, now: float) -> Decision:
    status, uid = seen.kernel.status, pod.metadata.uid
    if report.failure:
        failed = _rest(replace(status, pod_uid=uid), "Failed", report.failure)
        return Decision(failed, (_delete(pod), Note("NotStarted", report.failure, warning=True)))
    if report.parked is not None:
        parked = convert(report.parked, ParkedState)
        message = "it idled, and its place was given back"
        if parked.dropped:
            message += f"; not kept: {', '.join(parked.dropped)}"
        rest = _rest(replace(status, pod_uid=uid, parked=parked), "Parked", message)
        return Decision(rest, (_delete(pod), Note("Parked", message)))
    if not report.ready:
        starting = replace(status, phase="Starting", message="", pod_uid=uid)
        return Decision(starting, again=SOON)
    running = replace(
        status,
        phase="Running",
        message="",
        address=f"{pod.status.pod_ip}:{kernel_pod.PORT}",
        pod_uid=uid,
        execution_state=report.execution_state,
        last_activity=timestamp.show((now - report.idle_for) // 60 * 60),
        info=report.info,
        woken=seen.kernel.spec.wake,
    )
    return _idling(seen, running, report, now)


def _idling(seen: SeenKernel, status: KernelStatus, report: Report, now: float) -> Decision:
    idle = seen.environment.spec.idle if seen.environment else Idle()
    if idle.action == "Keep":
        return Decision(_forgetful(status), again=SELDOM)
    left = _left(seen, idle, report, now)
    if left > 0:
        status = _forgetful(status) if report.idle_for < SELDOM else status
        told, warning = _warned(status, left)
        return Decision(told, warning, again=max(SOON, min(SELDOM, left)))
    if status.obstacles and idle.action == "Park":
        return Decision(status, again=SELDOM)
    parking = replace(status, phase="Parking", message="its state is being kept")
    return Decision(parking, (Park(drop=idle.action == "Stop"),), again=OFTEN)


def _left(seen: SeenKernel, idle: Idle, report: Report, now: float) -> float:
    """Return in how many seconds a kernel's place is taken, if it goes on to idle."""
    left = duration.parse(idle.after) - report.idle_for
    asked = timestamp.read(seen.kernel.spec.keep_until)
    if asked is None:
        return left
    limit = now - report.idle_for + duration.parse(idle.keep_alive)
    return max(left, min(asked, limit) - now)


def _forgetful(status: KernelStatus) -> KernelStatus:
    return replace(status, obstacles=[], warned="")


def _warned(status: KernelStatus, left: float) -> tuple[KernelStatus, tuple[Note, ...]]:
    due = [seconds for seconds in WARNINGS if left <= seconds]
    if not due:
        return status, ()
    level = f"{int(due[-1])}s"
    if status.warned == level or status.warned == f"{int(WARNINGS[-1])}s":
        return status, ()
    text = f"it idles: in {duration.show(left)} its state is kept and its place given back"
    return replace(status, warned=level), (Note("Idle", text),)


def refused(status: KernelStatus, obstacles: list[dict[str, str]]) -> tuple[KernelStatus, Note]:
    """Return the status of a kernel that could not be parked for *obstacles*, and the event."""
    named = [f"{one['name']} ({one['type']}): {one['why']}" for one in obstacles]
    text = f"it idles and stays, for this cannot be kept: {'; '.join(named)}"
    kept = replace(status, phase="Running", message=text[:1000], obstacles=named)
    return kept, Note("NotParked", text[:1000], warning=True)


def _rest(status: KernelStatus, phase: KernelPhase, message: str) -> KernelStatus:
    return replace(
        status,
        phase=phase,
        message=message[:1000],
        address="",
        execution_state="",
        obstacles=[],
        warned="",
    )


def _delete(pod: Pod) -> Delete:
    return Delete.of(PODS, pod.metadata)
