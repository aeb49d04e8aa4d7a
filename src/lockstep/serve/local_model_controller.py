"""The shell around LocalModelCaches, those of the cluster and those of one namespace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lockstep.api.core import AnyObject
from lockstep.api.dataset_cache import DATASET_CACHES
from lockstep.api.resource import Resource
from lockstep.compat.fluid.objects import DATA_LOADS, DATASETS
from lockstep.compat.kserve import storage
from lockstep.compat.kserve.objects import (
    LOCAL_MODEL_CACHES,
    LOCAL_MODEL_NAMESPACE_CACHES,
    LOCAL_MODEL_NODE_GROUPS,
)
from lockstep.kube.informer import Informer
from lockstep.runtime.actions import Decision
from lockstep.runtime.controller import Controller, Key
from lockstep.runtime.manager import Manager
from lockstep.runtime.reconciler import Reconciler
from lockstep.serve.core.local_models import SeenLocalModel, decide_local, place_of


@dataclass
class LocalModelController:
    """Makes a Dataset of each LocalModelCache of one kind, and says which nodes have it."""

    caches: Mapping[Resource[Any], Informer[Any]]

    async def see(self, obj: AnyObject) -> SeenLocalModel:
        """Return what is known of *obj* and of its Dataset."""
        place = place_of(obj)
        return SeenLocalModel(
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

    def _users(self, place: Key) -> Iterable[Key]:
        """Yield the services whose models lie in the Dataset at *place*."""
        for one in self.caches[DATASETS]:
            if any(storage.names(mount.mount_point, place) for mount in one.spec.mounts):
                for owner in one.metadata.owner_references:
                    yield one.metadata.namespace, owner.name


def _decide(seen: SeenLocalModel, now: float) -> Decision[dict[str, Any]]:
    status, actions = decide_local(seen)
    space, _ = place_of(seen.object)
    return Decision(status, [replace(action, namespace=space) for action in actions])


def add_local_models(manager: Manager, caches: Mapping[Resource[Any], Informer[Any]]) -> None:
    """Run the controllers of LocalModelCaches while *manager* leads."""
    known = {
        **caches,
        LOCAL_MODEL_NODE_GROUPS: manager.informer(LOCAL_MODEL_NODE_GROUPS, optional=True),
        DATASET_CACHES: manager.informer(DATASET_CACHES),
        DATA_LOADS: manager.informer(DATA_LOADS, optional=True),
    }
    see = LocalModelController(known).see
    for resource in (LOCAL_MODEL_CACHES, LOCAL_MODEL_NAMESPACE_CACHES):
        objects = known[resource]
        shell = Reconciler(objects, see, _decide, manager.writer())
        controller = Controller(resource.kind.lower(), shell.reconcile)
        controller.follow(objects)
        for followed in (LOCAL_MODEL_NODE_GROUPS, DATASETS, DATASET_CACHES, DATA_LOADS):
            controller.follow(known[followed], objects.all_keys)
        manager.add(controller)
