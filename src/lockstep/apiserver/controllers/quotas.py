"""The status of resource quotas: their limits, and what is used of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from lockstep.apiserver.limits.ledger import QUOTAS, Account, Ledger
from lockstep.apiserver.objects import Objects, WriteOptions
from lockstep.apiserver.status import StatusError
from lockstep.apiserver.store import Event, StoreUnavailable

logger = logging.getLogger(__name__)

Json = dict[str, Any]

_OPTIONS = WriteOptions(manager="kube-controller-manager", validation="Ignore")
_TOGETHER_SECONDS = 0.1


class QuotaStatus:
    """Writes down what is used of each quota when something in its namespace changes."""

    def __init__(self, objects: Objects, ledger: Ledger) -> None:
        self._objects = objects
        self._store = objects.store
        self._ledger = ledger
        self._changed: set[str] = set()
        self._wake = asyncio.Event()

    def start(self) -> asyncio.Task[None]:
        """Write once and follow every change; the task runs until it is cancelled."""
        self._changed.update(record.key.namespace for record in self._store.objects(QUOTAS))
        self._store.subscribe(self._follow)
        self._wake.set()
        return asyncio.get_running_loop().create_task(self._run(), name="quotas")

    def _follow(self, events: Sequence[Event]) -> None:
        namespaces = {event.record.key.namespace for event in events}
        changed = {one for one in namespaces if one and self._store.has(QUOTAS, one)}
        if changed:
            self._changed |= changed
            self._wake.set()

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            changed, self._changed = self._changed, set()
            for namespace in changed:
                for account in self._ledger.accounts(namespace):
                    await self._write(account)
            # What is written here wakes this again, and changes come in bursts.
            await asyncio.sleep(_TOGETHER_SECONDS)

    async def _write(self, account: Account) -> None:
        served = self._objects.catalog.stored_as(QUOTAS)
        if served is None:
            return

        def mutate(quota: Json) -> Json:
            limits = (quota.get("spec") or {}).get("hard") or {}
            used = {name: str(amount) for name, amount in sorted(account.used.items())}
            return {**quota, "status": {"hard": limits, "used": used}}

        key = account.record.key
        try:
            await self._objects.change(
                served, key.namespace, key.name, mutate, _OPTIONS, subresource="status"
            )
        except (StatusError, StoreUnavailable) as error:
            logger.debug("status of quota %s/%s: %s", key.namespace, key.name, error)
