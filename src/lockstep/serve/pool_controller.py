"""The shell around InferencePools."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from lockstep.api.core import PODS, AnyObject, Pod
from lockstep.api.merge import difference
from lockstep.api.names import REVISION_LABEL, ROUTE_LABEL
from lockstep.api.resource import Resource
from lockstep.api.serving import ROUTERS, ROUTES
from lockstep.compat.kserve.objects import INFERENCE_POOLS
from lockstep.kube.client import Client
from lockstep.kube.controller import Controller, Key
from lockstep.kube.errors import Conflict, NotFound
from lockstep.kube.informer import Informer
from lockstep.kube.manager import Manager
from lockstep.serve.carrying_out import carry_out
from lockstep.serve.core.load import alive
from lockstep.serve.core.pools import SeenPool, decide_pool
from lockstep.serve.core.surroundings import first

log = logging.getLogger(__name__)

LOOK_AGAIN: Final = 5.0
"""Seconds between two looks at the pods of a pool: to follow all pods would cost more."""


@dataclass
class PoolController:
    """Gives each InferencePool its route, and its pods the labels of backends."""

    client: Client
    caches: Mapping[Resource[Any], Informer[Any]]
    clock: Callable[[], float] = time.time

    async def reconcile(self, key: Key) -> float | None:
        """Take the next step for the pool at *key*; return when to look again.

        Raises:
            ApiError: when the server cannot be used now; the caller tries again later.
        """
        namespace, name = key
        pool = self.caches[INFERENCE_POOLS].get(namespace, name)
        if pool is None or pool.metadata.deletion_timestamp is not None:
            return None
        router = first(alive(self.caches[ROUTERS], self.clock()))
        seen = SeenPool(
            pool,
            await self._pods(pool),
            self.caches[ROUTES].get(namespace, name),
            f"{router.spec.url}/serving/{namespace}/{name}" if router is not None else "",
        )
        status, actions = decide_pool(seen, self.clock())
        try:
            for action in actions:
                await carry_out(self.client, namespace, action)
            if patch := difference(pool.status, status):
                await self.client.patch(
                    INFERENCE_POOLS, name, {"status": patch}, namespace, subresource="status"
                )
        except (Conflict, NotFound) as error:
            log.debug("%s: %s", key, error)
            return 0.1
        return LOOK_AGAIN

    async def _pods(self, pool: AnyObject) -> list[Pod]:
        """Return the pods that the pool selects, and those that it has selected before."""
        meta = pool.metadata
        labels = (pool.spec.get("selector") or {}).get("matchLabels") or {}
        texts = [f"{ROUTE_LABEL}={meta.name},{REVISION_LABEL}={meta.name}"]
        if labels:
            texts.append(",".join(f"{key}={value}" for key, value in labels.items()))
        found: dict[str, Pod] = {}
        for text in texts:
            listing = await self.client.list(PODS, meta.namespace, label_selector=text)
            found |= {one.metadata.uid: one for one in listing.items}
        return list(found.values())


def add_pools(manager: Manager, caches: Mapping[Resource[Any], Informer[Any]]) -> None:
    """Run the controller of InferencePools while *manager* leads."""
    pools = manager.informer(INFERENCE_POOLS)
    pools.optional = True
    shell = PoolController(manager.client, {**caches, INFERENCE_POOLS: pools})
    controller = Controller("inferencepool", shell.reconcile)
    controller.follow(pools)
    controller.follow(caches[ROUTES])
    manager.add(controller)
