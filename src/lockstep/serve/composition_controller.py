"""The shell around objects that become InferenceServices."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lockstep.api.core import PODS, AnyObject
from lockstep.api.names import ROUTE_LABEL
from lockstep.api.resource import Resource
from lockstep.api.wire import Json
from lockstep.compat.kserve.objects import INFERENCE_SERVICES
from lockstep.kube.informer import Informer
from lockstep.runtime.actions import Decision
from lockstep.serve.core.composing import SeenComposition, compose


@dataclass
class CompositionController:
    """Makes InferenceServices of the objects of one kind, and says how they stand."""

    translate: Callable[[AnyObject], list[Json]]
    caches: Mapping[Resource[Any], Informer[Any]]
    ignored: Callable[[AnyObject], list[str]] = lambda _: []
    """From an object to its fields that have no effect."""
    clock: Callable[[], float] = time.time

    async def see(self, obj: AnyObject) -> SeenComposition:
        """Return what is known of *obj* and of the services made of it."""
        namespace, name = obj.metadata.namespace, obj.metadata.name
        services = [
            one for one in self.caches[INFERENCE_SERVICES] if one.metadata.namespace == namespace
        ]
        label = f"{namespace}/{name}"
        return SeenComposition(
            obj,
            {one.metadata.name: one for one in services},
            list(self.caches[PODS].by_index(ROUTE_LABEL, label)),
        )

    def decide(self, seen: SeenComposition, now: float) -> Decision[Json]:
        """Return what to do for the object that was seen."""
        return Decision(*compose(seen, self.translate, now, self.ignored))
