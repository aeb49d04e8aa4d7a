"""The controller of datasets, put under a manager."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lockstep.api.core import CLAIMS, NAMESPACES, NODES, VOLUMES, AnyObject
from lockstep.api.dataset_cache import (
    DATASET_CACHES,
    EVERYWHERE,
    NO_CACHE,
    OWN_CACHE_ANNOTATION,
    DatasetCache,
    share_label,
)
from lockstep.api.meta import ObjectMeta
from lockstep.api.names import NODE_KIND_LABEL
from lockstep.api.resource import Resource
from lockstep.compat.fluid.objects import (
    DATA_BACKUPS,
    DATA_LOADS,
    DATA_MIGRATES,
    DATA_PROCESSES,
    DATASETS,
    RUNTIME_KINDS,
    DataBackup,
    DataLoad,
    DataMigrate,
    DataProcess,
    Dataset,
)
from lockstep.compat.fluid.operations import about
from lockstep.data.claims import CLAIM_INDEX, CLAIMING_PODS, ClaimingPod, claims_of
from lockstep.data.controller import (
    DATASET_INDEX,
    REFERENCE_INDEX,
    DatasetController,
    can_cache,
)
from lockstep.data.core.objects import STORAGE_CLASS
from lockstep.data.core.sharing import refers_to
from lockstep.kube.informer import Informer
from lockstep.runtime.controller import Controller, Key
from lockstep.runtime.manager import Manager

Operation = DataLoad | DataProcess | DataMigrate | DataBackup
_OF_PODS = (DATA_MIGRATES, DATA_BACKUPS)
"""Operations that become pods of ours; the caches carry out the others themselves."""


@dataclass(frozen=True)
class _Concerned:
    """Tells which datasets a change concerns."""

    datasets: Informer[Dataset]
    kept: Informer[DatasetCache]
    operations: Mapping[Resource[Any], Informer[Any]]

    def of_pod(self, pod: ClaimingPod) -> Iterable[Key]:
        """Return the datasets that *pod* claims or carries, and what those stand for."""
        keys = [_key(one) for one in claims_of(pod)]
        found = [one for key in keys if (one := self.datasets.get(*key)) is not None]
        owners = [_key(where) for one in found for where in refers_to(one)]
        return [*map(_place, found), *owners, *_carried(pod, self.operations)]

    def of_dataset(self, dataset: Dataset) -> Iterable[Key]:
        """Return *dataset*, what it stands for and what stands for it."""
        meta = dataset.metadata
        standing = self.datasets.by_index(REFERENCE_INDEX, f"{meta.namespace}/{meta.name}")
        others = [(one.metadata.namespace, one.metadata.name) for one in standing]
        owners = [_key(where) for where in refers_to(dataset)]
        return [(meta.namespace, meta.name), *others, *owners]

    def after(self, operation: Operation) -> Iterable[Key]:
        """Return the dataset of *operation*, and those of what runs after it."""
        found = [_key(_of_operation(operation)[0])]
        for other in (one for kind in self.operations.values() for one in kind):
            then = other.spec.run_after
            if then is not None and then.name == operation.metadata.name:
                found.append(_key(_of_operation(other)[0]))
        return found

    def within(self, namespace: AnyObject) -> Iterable[Key]:
        """Return the datasets of a namespace."""
        return [key for key in map(_place, self.datasets) if key[0] == namespace.metadata.name]

    def homeless(self, node: Any) -> Iterable[Key]:
        """Return the datasets that may want *node*, those without a place or with every one, those
        that had a copy there which it keeps no more, and those whose label there is out of date.
        """
        there = {one.spec.dataset for one in self.kept}
        here = {one.spec.dataset for one in self.kept if one.spec.node == node.metadata.name}
        lost = set() if can_cache(node) else here
        return [
            (meta.namespace, meta.name)
            for meta in (one.metadata for one in self.datasets)
            if meta.name not in there
            or meta.name in lost
            or _mislabelled(node, meta)
            or meta.annotations.get(OWN_CACHE_ANNOTATION) == EVERYWHERE
        ]


def _mislabelled(node: Any, dataset: ObjectMeta) -> bool:
    """Tell whether a label of *node* says wrongly that it can have *dataset*, or that it cannot."""
    if node.metadata.labels.get(NODE_KIND_LABEL) == "simulated":
        return False
    said: str | None = node.metadata.labels.get(share_label(dataset.namespace, dataset.name))
    return (said == NO_CACHE) == can_cache(node)


def add_data(manager: Manager, *, open_to_all: bool = False) -> None:
    """Run the controller of datasets while *manager* leads.

    With *open_to_all* datasets that list no namespaces may be read from all of them.
    """
    datasets = manager.informer(DATASETS, indices={REFERENCE_INDEX: refers_to}, optional=True)
    kept = manager.informer(DATASET_CACHES, indices={DATASET_INDEX: _of_cache})
    operations: dict[Resource[Any], Informer[Any]] = {
        res: manager.informer(res, indices={DATASET_INDEX: _of_operation}, optional=True)
        for res in (DATA_LOADS, DATA_PROCESSES, *_OF_PODS)
    }
    runtimes = {res: manager.informer(res, optional=True) for res in RUNTIME_KINDS}
    pods = manager.informer(CLAIMING_PODS, indices={CLAIM_INDEX: claims_of})
    plain = {res: manager.informer(res) for res in (CLAIMS, VOLUMES, NODES, NAMESPACES)}
    caches: dict[Resource[Any], Informer[Any]] = {
        DATASETS: datasets,
        DATASET_CACHES: kept,
        CLAIMING_PODS: pods,
        **operations,
        **runtimes,
        **plain,
    }
    shell = DatasetController(manager.writer(), caches, open_to_all)
    concerned = _Concerned(datasets, kept, operations)
    controller = Controller("dataset", shell.reconcile, workers=4)
    controller.follow(datasets, concerned.of_dataset)
    controller.follow(kept, lambda one: [_key(*_of_cache(one))])
    for one in operations.values():
        controller.follow(one, concerned.after)
    for informer in runtimes.values():
        controller.follow(informer)
    controller.follow(pods, concerned.of_pod)
    controller.follow(plain[CLAIMS])
    controller.follow(plain[VOLUMES], _of_volume)
    controller.follow(plain[NODES], concerned.homeless)
    controller.follow(plain[NAMESPACES], concerned.within)
    manager.add(controller)


def _carried(pod: ClaimingPod, operations: Mapping[Resource[Any], Informer[Any]]) -> Iterable[Key]:
    """Yield the datasets of those operations that *pod* carries out."""
    kinds = {res.kind: operations[res] for res in _OF_PODS}
    for owner in pod.metadata.owner_references:
        kind = kinds.get(owner.kind)
        one = kind.get(pod.metadata.namespace, owner.name) if kind is not None else None
        if one is not None:
            yield _key(_of_operation(one)[0])


def _place(dataset: Dataset) -> Key:
    return dataset.metadata.namespace, dataset.metadata.name


def _key(text: str) -> Key:
    namespace, _, name = text.partition("/")
    return namespace, name


def _of_cache(cache: DatasetCache) -> list[str]:
    return [f"{cache.metadata.namespace}/{cache.spec.dataset}"]


def _of_operation(one: Operation) -> list[str]:
    """Return the dataset that an operation is about."""
    name = about(one) if isinstance(one, DataMigrate | DataBackup) else one.spec.dataset.name
    return [f"{one.metadata.namespace}/{name}"]


def _of_volume(volume: Any) -> Iterable[Key]:
    if volume.spec.get("storageClassName") != STORAGE_CLASS:
        return []
    claim = volume.spec.get("claimRef") or {}
    return [(claim.get("namespace", ""), claim.get("name", ""))]
