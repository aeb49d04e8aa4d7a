"""Writing down what each queue holds."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from lockstep.api.queue import QUEUES, Queue
from lockstep.kube.client import Client
from lockstep.kube.errors import ApiError, NotFound
from lockstep.kube.informer import Informer
from lockstep.scheduler.core.cluster import Cluster
from lockstep.scheduler.core.usage import Usage, by_queue

log = logging.getLogger(__name__)

PACE = 1.0
"""Seconds between two looks at all units: what happens in between is written once."""


class QueueWriter:
    """Keeps the statuses of queues as they should be."""

    def __init__(self, client: Client, cluster: Cluster, queues: Informer[Queue]) -> None:
        self._client = client
        self._cluster = cluster
        self._queues = queues
        self._wake = asyncio.Event()
        self.note = self._wake.set
        """To be called when something may have changed."""

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            if len(self._queues):
                usages = by_queue(self._cluster)
                for queue in list(self._queues):
                    await self._write(queue, usages.get(queue.metadata.name, Usage()))
            await asyncio.sleep(PACE)

    async def _write(self, queue: Queue, usage: Usage) -> None:
        status = usage.status(queue.status.used)
        if status == _shown(queue):
            return
        try:
            await self._client.patch(
                QUEUES, queue.metadata.name, {"status": status}, subresource="status"
            )
        except NotFound:
            log.debug("queue %s is gone", queue.metadata.name)
        except ApiError as error:
            log.warning("the status of queue %s is not written: %s", queue.metadata.name, error)
            self._wake.set()


def _shown(queue: Queue) -> dict[str, Any]:
    status = queue.status
    return {"pending": status.pending, "running": status.running, "used": status.used}
