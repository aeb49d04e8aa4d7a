"""What pods that have a node are waiting for before their programs run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from lockstep.api.core import SET_UP, Pod
from lockstep.api.job_history import HistoryPhase
from lockstep.jobs.reasons import unstarted

_IMAGE: Final = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "ErrImageNeverPull",
        "InvalidImageName",
        "ImageInspectError",
        "RegistryUnavailable",
        "Pulling",
    }
)
_VOLUMES: Final = ("FailedMount", "FailedAttachVolume")


def coming_up(pods: Iterable[Pod], warnings: Mapping[str, str]) -> HistoryPhase:
    """Return what the slowest of *pods* waits for; *warnings* are the last ones about them."""
    waiting = unstarted(list(pods))
    found = {_of(pod, warnings.get(pod.metadata.name, "")) for pod in waiting}
    order: tuple[HistoryPhase, ...] = ("image", "data", "placed")
    return next((phase for phase in order if phase in found), "start")


def _of(pod: Pod, warning: str) -> HistoryPhase:
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    reasons = [s.state.waiting.reason for s in statuses if s.state.waiting is not None]
    if _IMAGE.intersection(reasons):
        return "image"
    if warning.startswith(_VOLUMES):
        return "data"
    if any(s.state.running is not None or s.state.terminated is not None for s in statuses):
        return "start"
    set_up = next((c.status for c in pod.status.conditions if c.type == SET_UP), "")
    if set_up == "True":
        return "image"
    return "data" if set_up == "False" and any(v.claim for v in pod.spec.volumes) else "placed"
