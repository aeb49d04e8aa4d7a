"""Statuses that follow from all of a namespace, written once a moment."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from lockstep.api.wire import Json
from lockstep.apiserver.objects import Objects, WriteOptions
from lockstep.apiserver.status import StatusError
from lockstep.apiserver.store import Event, StoreUnavailable

logger = logging.getLogger(__name__)

Statuses = Callable[[str], Iterable[tuple[str, Callable[[Json], Json]]]]
"""For each object of a namespace its name and what makes the new one of it."""

_OPTIONS = WriteOptions(manager="kube-controller-manager", validation="Ignore")


@dataclass
class NamespaceStatus:
    """Writes the statuses of all of *resource* in a namespace when something there changes."""

    objects: Objects
    resource: str
    statuses: Statuses
    together: float
    """Seconds between two rounds: changes come in bursts, and what is written is one as well."""
    causes: frozenset[str] | None = None
    """The resources whose changes matter; None: all."""
    _changed: set[str] = field(default_factory=set, init=False)
    _wake: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def start(self) -> asyncio.Task[None]:
        """Write once and follow every change; the task runs until it is cancelled."""
        store = self.objects.store
        self._changed.update(record.key.namespace for record in store.objects(self.resource))
        store.subscribe(self._follow)
        self._wake.set()
        return asyncio.get_running_loop().create_task(self._run(), name=self.resource)

    def _follow(self, events: Sequence[Event]) -> None:
        keys = (event.record.key for event in events)
        namespaces = {
            key.namespace for key in keys if self.causes is None or key.resource in self.causes
        }
        has = self.objects.store.has
        if changed := {one for one in namespaces if one and has(self.resource, one)}:
            self._changed |= changed
            self._wake.set()

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            changed, self._changed = self._changed, set()
            for namespace in changed:
                for name, mutate in self.statuses(namespace):
                    await self._write(namespace, name, mutate)
            await asyncio.sleep(self.together)

    async def _write(self, namespace: str, name: str, mutate: Callable[[Json], Json]) -> None:
        served = self.objects.catalog.stored_as(self.resource)
        if served is None:
            return
        try:
            await self.objects.change(
                served, namespace, name, mutate, _OPTIONS, subresource="status"
            )
        except (StatusError, StoreUnavailable) as error:
            logger.debug("status of %s %s/%s: %s", self.resource, namespace, name, error)
