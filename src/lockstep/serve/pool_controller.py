"""The shell around InferencePools."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from lockstep.api.core import PODS, AnyObject, Pod
from lockstep.api.names import REVISION_LABEL, ROUTE_LABEL
from lockstep.api.resource import Resource
from lockstep.api.serving import ROUTERS, ROUTES
from lockstep.compat.kserve.objects import INFERENCE_POOLS
from lockstep.kube.client import Client
from lockstep.kube.informer import Informer
from lockstep.runtime.actions import Decision
from lockstep.runtime.controller import Controller
from lockstep.runtime.manager import Manager
from lockstep.runtime.reconciler import Reconciler
from lockstep.serve.core.load import alive
from lockstep.serve.core.pools import SeenPool, decide_pool
from lockstep.serve.core.surroundings import first

LOOK_AGAIN: Final = 5.0
"""Seconds between two looks at the pods of a pool: to follow all pods would cost more."""


@dataclass
class PoolController:
    """Gives each InferencePool its route, and its pods the labels of backends."""

    client: Client
    caches: Mapping[Resource[Any], Informer[Any]]
    clock: Callable[[], float] = time.time

    async def see(self, pool: AnyObject) -> SeenPool:
        """Return what is known of *pool*."""
        namespace, name = pool.metadata.namespace, pool.metadata.name
        router = first(alive(self.caches[ROUTERS], self.clock()))
        return SeenPool(
            pool,
            await self._pods(pool),
            self.caches[ROUTES].get(namespace, name),
            f"{router.spec.url}/serving/{namespace}/{name}" if router is not None else "",
        )

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


def _decide(seen: SeenPool, now: float) -> Decision[dict[str, Any]]:
    status, actions = decide_pool(seen, now)
    return Decision(status, actions, LOOK_AGAIN)


def add_inference_pools(manager: Manager, caches: Mapping[Resource[Any], Informer[Any]]) -> None:
    """Run the controller of InferencePools while *manager* leads."""
    pools = manager.informer(INFERENCE_POOLS, optional=True)
    see = PoolController(manager.client, caches).see
    shell = Reconciler(pools, see, _decide, manager.writer())
    controller = Controller("inferencepool", shell.reconcile)
    controller.follow(pools)
    controller.follow(caches[ROUTES])
    manager.add(controller)
