"""Shares of GPUs whose pods want them larger or smaller while they run."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from lockstep.api.containers import Container
from lockstep.api.core import Pod, PodSpec
from lockstep.api.meta import Condition
from lockstep.api.names import GPU_RESIZE_ANNOTATION
from lockstep.api.share_sizes import GRANTED, answer, answered, counted, resized
from lockstep.scheduler.core.model.workload import PodKey


@dataclass(frozen=True, slots=True)
class ResizeAnswer:
    """Whether a share gets the size that is wanted, and why not."""

    granted: bool
    reason: str
    message: str

    def condition(self, pod: Pod) -> Condition:
        """Return it as the condition that answers the wish on a pod."""
        return Condition(
            type=GRANTED,
            status="True" if self.granted else "False",
            reason=self.reason,
            message=answered(pod.metadata.annotations, self.message),
        )


class ShareResizes:
    """The wishes that wait for an answer, and the answers that the API server does not show yet."""

    def __init__(self) -> None:
        self.waiting: dict[PodKey, Pod] = {}
        self._assumed: dict[PodKey, tuple[str, Condition]] = {}
        """By pod: its uid, and what it was granted."""

    def counted(self, pod: Pod, spec: PodSpec) -> PodSpec:
        """Return the *spec* of a pod with its shares as they are to be counted now."""
        key = pod.metadata.namespace, pod.metadata.name
        seen, annotations = pod.status.container_statuses, pod.metadata.annotations
        if GPU_RESIZE_ANNOTATION not in annotations and not any(
            one.resources.limits for one in seen
        ):
            self.forget(key)
            return spec
        conditions = pod.status.conditions
        self._note(key, pod)
        if key in self._assumed:
            conditions = [*conditions, self._assumed[key][1]]

        def now(one: Container) -> Container:
            size = counted(one.name, one.resources, annotations, conditions, seen)
            return msgspec.structs.replace(one, resources=resized(one.resources, size))

        return msgspec.structs.replace(spec, containers=[now(one) for one in spec.containers])

    def assume(self, pod: Pod, condition: Condition) -> None:
        """Count what a pod was granted before the API server shows it."""
        key = pod.metadata.namespace, pod.metadata.name
        self._assumed[key] = pod.metadata.uid, condition

    def forget(self, key: PodKey) -> None:
        """Note that a pod is gone or wants nothing any more."""
        self.waiting.pop(key, None)
        self._assumed.pop(key, None)

    def _note(self, key: PodKey, pod: Pod) -> None:
        """Let a wish wait until it is answered, once its pod has a node."""
        annotations = pod.metadata.annotations
        if answer(annotations, pod.status.conditions, GRANTED) is not None:
            self.forget(key)
            return
        known = self._assumed.get(key)
        stale = known is not None and (
            known[0] != pod.metadata.uid or answer(annotations, [known[1]], GRANTED) is None
        )
        if stale:
            del self._assumed[key]
        over = pod.status.phase in ("Succeeded", "Failed")
        if pod.spec.node_name and not over and annotations.get(GPU_RESIZE_ANNOTATION):
            self.waiting[key] = pod
        else:
            self.waiting.pop(key, None)
