"""The shell around LocalModelCaches, those of the cluster and those of one namespace."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lockstep.api.core import AnyObject
from lockstep.api.dataset_cache import DATASET_CACHES
from lockstep.api.merge import difference
from lockstep.api.resource import Resource
from lockstep.compat.fluid.objects import DATA_LOADS, DATASETS
from lockstep.compat.kserve import storage
from lockstep.compat.kserve.objects import (
    LOCAL_MODEL_CACHES,
    LOCAL_MODEL_NAMESPACE_CACHES,
    LOCAL_MODEL_NODE_GROUPS,
)
from lockstep.kube.client import Client
from lockstep.kube.controller import Controller, Key
from lockstep.kube.errors import Conflict, NotFound
from lockstep.kube.informer import Informer
from lockstep.kube.manager import Manager
from lockstep.serve.carrying_out import carry_out
from lockstep.serve.core.local_models import SeenLocalModel, decide_local, place_of

log = logging.getLogger(__name__)


@dataclass
class LocalModelController:
    """Makes a Dataset of each LocalModelCache of one kind, and says which nodes have it."""

    client: Client
    resource: Resource[AnyObject]
    caches: Mapping[Resource[Any], Informer[Any]]

    async def reconcile(self, key: Key) -> float | None:
        """Take the next step for the object at *key*; return when to look again.

        Raises:
            ApiError: when the server cannot be used now; the caller tries again later.
        """
        obj = self.caches[self.resource].get(*key)
        if obj is None or obj.metadata.deletion_timestamp is not None:
            return None
        place = place_of(obj)
        seen = SeenLocalModel(
            obj,
            {one.metadata.name: one for one in self.caches[LOCAL_MODEL_NODE_GROUPS]},
            self.caches[DATASETS].get(*place),
            [
                one
                for one in self.caches[DATASET_CACHES]
                if (one.metadata.namespace, one.spec.dataset) == place
            ],
            self.caches[DATA_LOADS].get(*place) is not None,
            list(self._users(place)),
        )
        status, actions = decide_local(seen)
        try:
            for action in actions:
                await carry_out(self.client, place[0], action)
            if patch := difference(obj.status, status):
                await self.client.patch(
                    self.resource, key[1], {"status": patch}, key[0] or None, subresource="status"
                )
        except (Conflict, NotFound) as error:
            log.debug("%s: %s", key, error)
            return 0.1
        return None

    def _users(self, place: Key) -> Iterable[Key]:
        """Yield the services whose models lie in the Dataset at *place*."""
        for one in self.caches[DATASETS]:
            if any(storage.names(mount.mount_point, place) for mount in one.spec.mounts):
                for owner in one.metadata.owner_references:
                    yield one.metadata.namespace, owner.name


def add_local_models(manager: Manager, caches: Mapping[Resource[Any], Informer[Any]]) -> None:
    """Run the controllers of LocalModelCaches while *manager* leads."""
    known = {
        **caches,
        LOCAL_MODEL_NODE_GROUPS: manager.informer(LOCAL_MODEL_NODE_GROUPS),
        DATASET_CACHES: manager.informer(DATASET_CACHES),
        DATA_LOADS: manager.informer(DATA_LOADS),
    }
    known[LOCAL_MODEL_NODE_GROUPS].optional = known[DATA_LOADS].optional = True
    for resource in (LOCAL_MODEL_CACHES, LOCAL_MODEL_NAMESPACE_CACHES):
        shell = LocalModelController(manager.client, resource, known)
        objects = known[resource]

        def every(_: Any, objects: Informer[Any] = objects) -> Iterable[Key]:
            return [(one.metadata.namespace, one.metadata.name) for one in objects]

        controller = Controller(resource.kind.lower(), shell.reconcile)
        controller.follow(objects)
        for followed in (LOCAL_MODEL_NODE_GROUPS, DATASETS, DATASET_CACHES, DATA_LOADS):
            controller.follow(known[followed], every)
        manager.add(controller)
