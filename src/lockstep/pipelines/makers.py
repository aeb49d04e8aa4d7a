"""The controller of the kinds that make runs: CronWorkflows, recurring runs, triggers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from lockstep.api.wire import Json
from lockstep.kube.client import Client
from lockstep.kube.errors import AlreadyExists, ApiError
from lockstep.kube.informer import Informer
from lockstep.pipelines.core.makers import Wish
from lockstep.runtime.actions import Delete
from lockstep.runtime.controller import Controller, Key
from lockstep.runtime.execution import execute
from lockstep.runtime.manager import Manager
from lockstep.runtime.refusals import refuses
from lockstep.runtime.status import write_status

_LONGEST: Final = 3600.0
"""Seconds after which it is looked again in any case: clocks are set."""
_SOONEST: Final = 0.01
_SEEN_WITHIN: Final = 2.0
"""Seconds within which what was made is seen; after that it has been deleted."""


Decide = Callable[[Any, Sequence[Any], float], Wish]
"""What an object wants, of which those are there, at a time."""


@dataclass
class Maker:
    """Makes what each object of *sources* wants now, and deletes what it wants no longer."""

    client: Client
    sources: Informer[Any]
    made: Informer[Any]
    decide: Decide
    clock: Callable[[], float] = time.time
    _fresh: dict[Key, tuple[str, float]] = field(default_factory=dict)
    """By source: what was made last, and when, until it is seen among those that are there."""

    async def reconcile(self, key: Key) -> float | None:
        """Do what the object at *key* wants now; return when to look again.

        The status is written last: what is not in it is tried again, and refused by its name.

        Raises:
            ApiError: when the server cannot be used now; the caller tries again later.
        """
        obj = self.sources.get(*key)
        if obj is None or obj.metadata.deletion_timestamp is not None:
            self._fresh.pop(key, None)
            return None
        if self._unseen(key):
            return _SOONEST
        index = self.sources.resource.kind
        found = self.decide(obj, self.made.by_index(index, "/".join(key)), self.clock())
        make = found.make
        status = found.status if make is None else await self._make(found, make, key)
        for one in found.delete:
            await execute(self.client, Delete.of(self.made.resource, one.metadata))
        await write_status(self.client, self.sources.resource, obj, status)
        if found.again is None:
            return None
        return min(_LONGEST, max(_SOONEST, found.again - self.clock()))

    def _unseen(self, key: Key) -> bool:
        """Tell whether what was made last is still to be seen: till then others are miscounted."""
        name, since = self._fresh.get(key, ("", 0.0))
        if name and self.made.get(key[0], name) is None and self.clock() - since < _SEEN_WITHIN:
            return True
        self._fresh.pop(key, None)
        return False

    async def _make(self, found: Wish, make: Json, key: Key) -> Json:
        """Make what is wished; return the status that is true then."""
        try:
            await self.client.create(self.made.resource, make, key[0])
            self._fresh[key] = make["metadata"]["name"], self.clock()
        except AlreadyExists:
            return found.status
        except ApiError as error:
            if found.refused is None or not refuses(error):
                raise
            return found.refused(f"refused by the server: {error.message}")
        return found.status


def add_maker(
    manager: Manager, name: str, sources: Informer[Any], made: Informer[Any], decide: Decide
) -> Controller:
    """Run the controller *name* while *manager* leads; what it made is told by its owner."""
    kind = sources.resource.kind

    def owners(one: Any) -> Iterable[Key]:
        meta = one.metadata
        return [(meta.namespace, o.name) for o in meta.owner_references if o.kind == kind]

    made.add_index(kind, lambda one: ["/".join(key) for key in owners(one)])
    controller = Controller(name, Maker(manager.client, sources, made, decide).reconcile, workers=2)
    controller.follow(sources)
    controller.follow(made, owners)
    manager.add(controller)
    return controller
