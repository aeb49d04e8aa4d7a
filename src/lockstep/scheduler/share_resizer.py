"""Answering wishes for shares of another size."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime

import msgspec

from lockstep.api.core import PODS, Pod
from lockstep.api.meta import Condition
from lockstep.api.names import GPU_RESIZE_ANNOTATION
from lockstep.api.wire import to_builtins
from lockstep.kube.client import Client
from lockstep.kube.errors import ApiError, NotFound
from lockstep.runtime.status import put_condition
from lockstep.scheduler.core.cycle.share_resizing import answer_resize
from lockstep.scheduler.core.model.workload import PodKey
from lockstep.scheduler.core.state.cluster import Cluster

log = logging.getLogger(__name__)

RETRY_SECONDS = 1.0


class ShareResizer:
    """Decides between two rounds of placing, so that nothing else is given the same room.

    What is granted counts at once; it is written until the API server has it.
    """

    def __init__(self, client: Client, cluster: Cluster) -> None:
        self._client, self._cluster = client, cluster
        self._told: dict[PodKey, tuple[str, str]] = {}
        """By pod, its uid and the wish that was answered last."""

    def answer(self, group: asyncio.TaskGroup) -> None:
        """Answer all wishes that have none."""
        resizes = self._cluster.resizes
        self._told = {key: one for key, one in self._told.items() if key in resizes.waiting}
        for key, pod in list(resizes.waiting.items()):
            wish = pod.metadata.uid, pod.metadata.annotations[GPU_RESIZE_ANNOTATION]
            if self._told.get(key) == wish:
                continue
            self._told[key] = wish
            now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            found = answer_resize(self._cluster, pod)
            condition = msgspec.structs.replace(found.condition(pod), last_transition_time=now)
            if found.granted:
                resizes.assume(pod, condition)
                self._cluster.set_pod(pod)
            group.create_task(self._write(pod, condition))

    async def _write(self, pod: Pod, condition: Condition) -> None:
        meta = pod.metadata
        while True:
            try:
                await put_condition(self._client, PODS, meta, to_builtins(condition))
            except NotFound:
                return
            except ApiError as error:
                log.warning("answer to %s/%s: %s", meta.namespace, meta.name, error)
                if (meta.namespace, meta.name) not in self._cluster.resizes.waiting:
                    return
                await asyncio.sleep(RETRY_SECONDS)
            else:
                return
