"""Which pods of a run may go before the run does: their steps' ends are on record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from lockstep.api import duration, timestamp
from lockstep.api.core import Pod
from lockstep.api.pipeline import ENDED, STEP_ANNOTATION, PipelineRun, StepStatus

_OVER: Final = frozenset({"Succeeded", "Failed"})


def doomed(
    run: PipelineRun, steps: Mapping[str, StepStatus], pods: Iterable[Pod], now: float
) -> tuple[list[str], float | None]:
    """Return the names of the *pods* to delete at *now*, and in how many seconds to look again."""
    policy = run.spec.sweep
    if policy is None:
        return [], None
    found: list[str] = []
    again: float | None = None
    over = run.status.completion_time
    if policy.strategy == "OnRunSuccess" and run.status.phase != "Succeeded":
        return [], None
    for pod in pods:
        meta = pod.metadata
        step = steps.get(meta.annotations.get(STEP_ANNOTATION, ""))
        if step is None or step.phase not in ENDED or pod.status.phase not in _OVER:
            continue
        if meta.deletion_timestamp is not None or not policy.labels.items() <= meta.labels.items():
            continue
        if policy.strategy == "OnPodSuccess" and pod.status.phase != "Succeeded":
            continue
        since = step.finished_at if policy.strategy.startswith("OnPod") else over
        if since is None:
            continue
        left = timestamp.parse(since) + duration.parse(policy.delay) - now
        if left <= 0:
            found.append(meta.name)
        else:
            again = left if again is None else min(left, again)
    return found, again
