"""A ``default`` service account in every namespace."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from lockstep.apiserver.objects import Objects, WriteOptions
from lockstep.apiserver.status import StatusError
from lockstep.apiserver.store import Event, Key

_OPTIONS = WriteOptions(manager="lockstep-apiserver", validation="Ignore")


class DefaultAccounts:
    """Creates the ``default`` service account of each namespace, and again when it is deleted."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._missing: set[str] = set()
        self._wake = asyncio.Event()

    def start(self) -> asyncio.Task[None]:
        """Follow namespaces and accounts; the task runs until it is cancelled."""
        store = self._objects.store
        self._missing.update(record.key.name for record in store.objects("namespaces"))
        store.subscribe(self._follow)
        self._wake.set()
        return asyncio.get_running_loop().create_task(self._run(), name="accounts")

    def _follow(self, events: Sequence[Event]) -> None:
        for event in events:
            key = event.record.key
            if key.resource == "namespaces" and event.previous is None:
                self._missing.add(key.name)
            elif key.resource == "serviceaccounts" and event.deleted and key.name == "default":
                self._missing.add(key.namespace)
            else:
                continue
            self._wake.set()

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            missing, self._missing = self._missing, set()
            await asyncio.gather(*map(self._create, missing))

    async def _create(self, namespace: str) -> None:
        served = self._objects.catalog.find("", "v1", "serviceaccounts")
        key = Key("serviceaccounts", namespace, "default")
        if served is None or self._objects.store.newest(key) is not None:
            return
        account = {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "default", "namespace": namespace},
        }
        try:
            await self._objects.create(served, namespace, account, _OPTIONS)
        except StatusError:
            # The namespace is gone or about to go.
            return
