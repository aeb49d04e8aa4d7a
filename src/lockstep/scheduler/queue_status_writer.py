"""Writing down what each queue holds."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

from lockstep.api import timestamp
from lockstep.api.queue import QUEUES, Queue, QueueStatus
from lockstep.api.wire import convert, to_builtins
from lockstep.kube.client import Client
from lockstep.kube.errors import ApiError, NotFound
from lockstep.kube.informer import Informer
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.explain.quota_messages import queue_status

log = logging.getLogger(__name__)

PACE = 1.0
"""Seconds between two looks at the queues: what happens in between is written once."""
_SETS = ("used", "borrowed", "averageUse")
"""Fields whose entries must be taken out one by one, because patches merge them."""


class QueueStatusWriter:
    """Keeps the statuses of queues as they should be."""

    def __init__(self, client: Client, decider: Decider, queues: Informer[Queue]) -> None:
        self._client = client
        self._decider = decider
        self._cluster = decider.cluster
        self._queues = queues
        self._wake = asyncio.Event()
        self.note = self._wake.set
        """To be called when something may have changed."""

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            for queue in list(self._queues):
                if queue.metadata.name in self._cluster.ledger.specs:
                    await self._write(queue)
            await asyncio.sleep(PACE)

    async def _write(self, queue: Queue) -> None:
        name = queue.metadata.name
        self._cluster.settle()  # queues may have changed while the last one was written
        wanted = queue_status(self._cluster, name, self._decider.pending_queue.pending)
        change = changed(queue.status, wanted)
        if not change:
            return
        try:
            await self._client.patch(QUEUES, name, {"status": change}, subresource="status")
        except NotFound:
            log.debug("queue %s is gone", name)
        except ApiError as error:
            log.warning("the status of queue %s is not written: %s", name, error)
            self._wake.set()


def changed(shown: QueueStatus, wanted: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that a queue does not show as wanted, as a merge patch has them."""
    old = to_builtins(shown)
    since = {c.type: (c.status, c.last_transition_time) for c in shown.conditions}
    now = timestamp.show(time.time())
    for condition in wanted["conditions"]:
        status, moment = since.get(condition["type"], ("", None))
        same = status == condition["status"]
        condition["lastTransitionTime"] = moment if same and moment else now
    new = to_builtins(convert(wanted, QueueStatus))
    change = {field: wanted[field] for field in wanted if old.get(field) != new.get(field)}
    for field in _SETS:
        if field in change:
            change[field] = dict.fromkeys(old.get(field, ())) | change[field]
    return change
