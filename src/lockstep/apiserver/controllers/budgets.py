"""The status of disruption budgets: how many disruptions they allow now."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from lockstep.apiserver.clock import timestamp
from lockstep.apiserver.disruption import selector_of, status_of
from lockstep.apiserver.objects import Objects, WriteOptions
from lockstep.apiserver.status import StatusError
from lockstep.apiserver.store import Event, StoreUnavailable

logger = logging.getLogger(__name__)

Json = dict[str, Any]

_BUDGETS = "poddisruptionbudgets.policy"
_OPTIONS = WriteOptions(manager="kube-controller-manager", validation="Ignore")
_TOGETHER_SECONDS = 0.2


class BudgetStatus:
    """Counts the pods of each budget anew when a pod or a budget in its namespace changes."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._store = objects.store
        self._changed: set[str] = set()
        self._wake = asyncio.Event()

    def start(self) -> asyncio.Task[None]:
        """Count once and follow every change; the task runs until it is cancelled."""
        self._changed.update(r.key.namespace for r in self._store.objects(_BUDGETS))
        self._store.subscribe(self._follow)
        self._wake.set()
        return asyncio.get_running_loop().create_task(self._run(), name="budgets")

    def _follow(self, events: Sequence[Event]) -> None:
        for event in events:
            key = event.record.key
            if key.resource == _BUDGETS or (
                key.resource == "pods" and self._store.has(_BUDGETS, key.namespace)
            ):
                self._changed.add(key.namespace)
                self._wake.set()

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            changed, self._changed = self._changed, set()
            for namespace in changed:
                await self._count(namespace)
            # Pods change in bursts, and each count looks at all of a namespace.
            await asyncio.sleep(_TOGETHER_SECONDS)

    async def _count(self, namespace: str) -> None:
        served = self._objects.catalog.stored_as(_BUDGETS)
        if served is None:
            return
        pods = self._store.objects("pods", namespace)
        now = timestamp(self._objects.clock())
        for record in self._store.objects(_BUDGETS, namespace):
            selector = selector_of(record.object())
            protected = [pod.object() for pod in pods if selector.matches(pod.labels)]

            def mutate(budget: Json, protected: list[Json] = protected) -> Json:
                return {**budget, "status": status_of(budget, protected, now)}

            try:
                await self._objects.change(
                    served, namespace, record.key.name, mutate, _OPTIONS, subresource="status"
                )
            except (StatusError, StoreUnavailable) as error:
                logger.debug("status of budget %s/%s: %s", namespace, record.key.name, error)
