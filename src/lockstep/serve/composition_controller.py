"""The shell around objects that become InferenceServices."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lockstep.api.core import PODS, AnyObject
from lockstep.api.merge import difference
from lockstep.api.names import ROUTE_LABEL
from lockstep.api.resource import Resource
from lockstep.compat.kserve.objects import INFERENCE_SERVICES
from lockstep.kube.client import Client
from lockstep.kube.controller import Key
from lockstep.kube.errors import Conflict, NotFound
from lockstep.kube.informer import Informer
from lockstep.serve.carrying_out import carry_out
from lockstep.serve.core.composing import SeenComposition, compose

log = logging.getLogger(__name__)

Json = dict[str, Any]


@dataclass
class CompositionController:
    """Makes InferenceServices of the objects of one kind, and says how they stand."""

    client: Client
    resource: Resource[AnyObject]
    translate: Callable[[AnyObject], list[Json]]
    caches: Mapping[Resource[Any], Informer[Any]]
    clock: Callable[[], float] = time.time

    async def reconcile(self, key: Key) -> float | None:
        """Take the next step for the object at *key*; return when to look again.

        Raises:
            ApiError: when the server cannot be used now; the caller tries again later.
        """
        namespace, name = key
        obj = self.caches[self.resource].get(namespace, name)
        if obj is None or obj.metadata.deletion_timestamp is not None:
            return None
        services = [
            one for one in self.caches[INFERENCE_SERVICES] if one.metadata.namespace == namespace
        ]
        label = f"{namespace}/{name}"
        seen = SeenComposition(
            obj,
            {one.metadata.name: one for one in services},
            list(self.caches[PODS].by_index(ROUTE_LABEL, label)),
        )
        status, actions = compose(seen, self.translate, self.clock())
        try:
            for action in actions:
                await carry_out(self.client, namespace, action)
            if patch := difference(obj.status, status):
                await self.client.patch(
                    self.resource, name, {"status": patch}, namespace, subresource="status"
                )
        except (Conflict, NotFound) as error:
            log.debug("%s: %s", key, error)
            return 0.1
        return None
