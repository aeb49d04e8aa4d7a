"""The controller of datasets, put under a manager."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lockstep.api.core import NODES
from lockstep.api.dataset_cache import DATASET_CACHES, DatasetCache
from lockstep.api.resource import Resource
from lockstep.compat.fluid.objects import DATA_LOADS, DATASETS, RUNTIME_KINDS, DataLoad
from lockstep.data.claims import CLAIM_INDEX, CLAIMING_PODS, ClaimingPod, claims_of
from lockstep.data.controller import DATASET_INDEX, DatasetController
from lockstep.data.core.objects import CLAIMS, STORAGE_CLASS, VOLUMES
from lockstep.kube.controller import Controller, Key
from lockstep.kube.informer import Informer
from lockstep.kube.manager import Manager


def add_data(manager: Manager) -> None:
    """Run the controller of datasets while *manager* leads."""
    datasets = manager.informer(DATASETS)
    kept = manager.informer(DATASET_CACHES, indices={DATASET_INDEX: _of_cache})
    loads = manager.informer(DATA_LOADS, indices={DATASET_INDEX: _of_load})
    runtimes = {res: manager.informer(res) for res in RUNTIME_KINDS}
    pods = manager.informer(CLAIMING_PODS, indices={CLAIM_INDEX: claims_of})
    claims, volumes = manager.informer(CLAIMS), manager.informer(VOLUMES)
    nodes = manager.informer(NODES)
    datasets.optional = loads.optional = True
    for runtime in runtimes.values():
        runtime.optional = True
    caches: dict[Resource[Any], Informer[Any]] = {
        DATASETS: datasets,
        DATASET_CACHES: kept,
        DATA_LOADS: loads,
        **runtimes,
        CLAIMING_PODS: pods,
        CLAIMS: claims,
        VOLUMES: volumes,
        NODES: nodes,
    }
    shell = DatasetController(manager.client, caches, manager.recorder())

    def known(pod: ClaimingPod) -> Iterable[Key]:
        keys = [_key(one) for one in claims_of(pod)]
        return [key for key in keys if datasets.get(*key) is not None]

    def homeless(node: Any) -> Iterable[Key]:
        """Return the datasets that may want *node*: those without a place yet."""
        there = {one.spec.dataset for one in kept}
        names = [one.metadata for one in datasets]
        return [(one.namespace, one.name) for one in names if one.name not in there]

    controller = Controller("dataset", shell.reconcile, workers=4)
    controller.follow(datasets)
    controller.follow(kept, lambda one: [_key(*_of_cache(one))])
    controller.follow(loads, lambda one: [_key(*_of_load(one))])
    for informer in runtimes.values():
        controller.follow(informer)
    controller.follow(pods, known)
    controller.follow(claims)
    controller.follow(volumes, _of_volume)
    controller.follow(nodes, homeless)
    manager.add(controller)


def _key(text: str) -> Key:
    namespace, _, name = text.partition("/")
    return namespace, name


def _of_cache(cache: DatasetCache) -> list[str]:
    return [f"{cache.metadata.namespace}/{cache.spec.dataset}"]


def _of_load(load: DataLoad) -> list[str]:
    return [f"{load.metadata.namespace}/{load.spec.dataset.name}"]


def _of_volume(volume: Any) -> Iterable[Key]:
    if volume.spec.get("storageClassName") != STORAGE_CLASS:
        return []
    claim = volume.spec.get("claimRef") or {}
    return [(claim.get("namespace", ""), claim.get("name", ""))]
