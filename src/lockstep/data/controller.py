"""The shell around the core: reads the caches, carries out the actions, writes the statuses."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import structs

from lockstep.api import timestamp
from lockstep.api.core import CLAIMS, CRDS, NAMESPACES, NODES, VOLUMES
from lockstep.api.dataset_cache import (
    CAN_CACHE_LABEL,
    DATASET_CACHES,
    QUOTA_ANNOTATION,
    DatasetCache,
    share_label,
)
from lockstep.api.names import NODE_KIND_LABEL
from lockstep.api.resource import Resource
from lockstep.api.wire import to_builtins
from lockstep.compat.fluid import operations
from lockstep.compat.fluid.objects import (
    DATA_BACKUPS,
    DATA_LOADS,
    DATA_MIGRATES,
    DATA_PROCESSES,
    DATASETS,
    RUNTIME_KINDS,
    Condition,
    DataProcess,
    Dataset,
    OperationStatus,
    Runtime,
)
from lockstep.compat.fluid.translate import Problem
from lockstep.compat.foreign_kinds import DIALECT_LABEL
from lockstep.data.claims import CLAIM_INDEX, CLAIMING_PODS, ClaimingPod, job_of
from lockstep.data.core.dataset_state import Carried, Decision, Seen
from lockstep.data.core.decide import decide
from lockstep.data.core.objects import volume_name
from lockstep.data.core.processes import pod_name
from lockstep.data.core.sharing import may_read, refers_to
from lockstep.data.core.status import with_ignored
from lockstep.kube.events import reference
from lockstep.kube.informer import Informer
from lockstep.runtime.controller import Key
from lockstep.runtime.own_image import with_own_image
from lockstep.runtime.reconciler import Writer
from lockstep.runtime.refusals import RETRY_REFUSED
from lockstep.runtime.status import write_status

log = logging.getLogger(__name__)

DATASET_INDEX: Final = "dataset"
"""DatasetCaches and DataLoads by the dataset that they are about: ``NAMESPACE/NAME``."""
REFERENCE_INDEX: Final = "reference"
"""Datasets by the dataset that they stand for: ``NAMESPACE/NAME``."""
PROCESSES: Final = (DATA_PROCESSES, DATA_MIGRATES, DATA_BACKUPS)
"""Operations that are pods."""
_ASK_AGAIN: Final = 60.0
"""Seconds for which it is remembered whose kind ``Dataset`` is."""
_OVER: Final = ("Succeeded", "Failed")


@dataclass
class DatasetController:
    """Brings each dataset to what its spec, its runtime, its warm-ups and its readers ask for."""

    writer: Writer
    caches: Mapping[Resource[Any], Informer[Any]]
    open_to_all: bool = False
    """Whether datasets that list no namespaces may be read from all of them."""
    clock: Callable[[], float] = time.time
    _asked: tuple[float, bool] = field(default=(-_ASK_AGAIN, False))

    async def reconcile(self, key: Key) -> float | None:
        """Take the next step for the dataset at *key*; return when to look again.

        Raises:
            ApiError: when the server cannot be used now; the caller tries again later.
        """
        seen = self._see(key)
        if seen is None or not await self._ours():
            return None
        now = timestamp.show(self.clock())
        decision = decide(seen, now)
        about = reference(DATASETS, seen.dataset.metadata)
        refusals = await self.writer.act(about, decision.actions)
        await self._tell(seen, decision, now)
        return RETRY_REFUSED if refusals and decision.again is None else decision.again

    async def _ours(self) -> bool:
        """Tell whether datasets are for this controller: where Fluid is installed they are not."""
        since, answer = self._asked
        now = time.monotonic()
        if now - since >= _ASK_AGAIN:
            found = await self.writer.client.get(CRDS, "datasets.data.fluid.io")
            answer = DIALECT_LABEL in found.metadata.labels
            if not answer:
                log.warning("datasets are left to Fluid, whose kinds are installed here")
            self._asked = now, answer
        return answer

    def _see(self, key: Key) -> Seen | None:
        namespace, name = key
        dataset: Dataset | None = self.caches[DATASETS].get(namespace, name)
        if dataset is None:
            return None
        where = f"{namespace}/{name}"
        found = ((res, self.caches[res].get(namespace, name)) for res in RUNTIME_KINDS)
        mounting = self._mounting(dataset, where)
        pods = [one for one in mounting if one.status.phase not in _OVER]
        claim = self.caches[CLAIMS].get(namespace, name)
        volume = self.caches[VOLUMES].get("", volume_name(dataset))
        processes, refused = self._processes(where)
        nodes = self.caches[NODES]
        return Seen(
            dataset,
            [_of_kind(one, res) for res, one in found if one is not None],
            self._caches_of(dataset, where),
            self.caches[DATA_LOADS].by_index(DATASET_INDEX, where),
            processes,
            refused,
            self._operations(namespace),
            self._carrying(namespace, processes),
            self._owner(dataset),
            self._owner_shares(dataset),
            self.open_to_all,
            {one.metadata.name: one.metadata.labels for one in nodes if can_cache(one)},
            None,
            self._shares(namespace, name),
            frozenset(one.spec.node_name for one in pods if one.spec.node_name),
            _jobs(pods),
            [one.metadata.name for one in pods],
            self._quota(namespace),
            secrets.token_hex(32),
            None if claim is None else to_builtins(claim),
            None if volume is None else to_builtins(volume),
            without_cache(nodes),
        )

    def _mounting(self, dataset: Dataset, where: str) -> list[ClaimingPod]:
        """Return the pods that claim a dataset, also by a dataset that refers to it."""
        claims = [where]
        for other in self.caches[DATASETS].by_index(REFERENCE_INDEX, where):
            meta = other.metadata
            if may_read(dataset, meta.namespace, open_to_all=self.open_to_all):
                claims.append(f"{meta.namespace}/{meta.name}")
        pods = self.caches[CLAIMING_PODS]
        return [one for claim in claims for one in pods.by_index(CLAIM_INDEX, claim)]

    def _caches_of(self, dataset: Dataset, where: str) -> list[DatasetCache]:
        """Return the caches that a dataset owns, by name."""
        uid = dataset.metadata.uid
        owned = (
            one
            for one in self.caches[DATASET_CACHES].by_index(DATASET_INDEX, where)
            if any(owner.uid == uid for owner in one.metadata.owner_references)
        )
        return sorted(owned, key=lambda one: str(one.metadata.name))

    def _processes(self, where: str) -> tuple[list[DataProcess], dict[str, OperationStatus]]:
        """Return the operations on a dataset that are pods; statuses of those that cannot be."""
        found = list(self.caches[DATA_PROCESSES].by_index(DATASET_INDEX, where))
        refused: dict[str, OperationStatus] = {}
        for resource in (DATA_MIGRATES, DATA_BACKUPS):
            for one in self.caches[resource].by_index(DATASET_INDEX, where):
                try:
                    carried = operations.process(one, self.caches[DATASETS].get)
                    with_own_image(carried.spec.processor["job"]["podSpec"])
                    found.append(carried)
                except Problem as problem:
                    text = str(problem)
                    told = Condition(type="Failed", status="True", reason="NotServed", message=text)
                    status = OperationStatus(phase="Failed", conditions=[told])
                    refused[f"{resource.kind}/{one.metadata.name}"] = status
        return found, refused

    def _operations(self, namespace: str) -> dict[str, str]:
        return {
            f"{resource.kind}/{one.metadata.name}": one.status.phase
            for resource in (DATA_LOADS, *PROCESSES)
            for one in self.caches[resource]
            if one.metadata.namespace == namespace
        }

    def _carrying(self, namespace: str, processes: Iterable[DataProcess]) -> dict[str, Carried]:
        """Return the pods of operations by name; that of a migration may mount nothing."""
        names = (pod_name(one) for one in processes)
        found = (self.caches[CLAIMING_PODS].get(namespace, name) for name in names)
        pods = [one for one in found if one is not None]
        return {
            one.metadata.name: Carried(one.metadata.name, one.metadata.uid, one.status.phase)
            for one in pods
        }

    def _quota(self, namespace: str) -> str:
        found = self.caches[NAMESPACES].get("", namespace)
        return found.metadata.annotations.get(QUOTA_ANNOTATION, "") if found is not None else ""

    def _shares(self, namespace: str, name: str) -> dict[str, str]:
        key = share_label(namespace, name)
        labelled = ((one.metadata.name, one.metadata.labels) for one in self.caches[NODES])
        return {node: labels[key] for node, labels in labelled if key in labels}

    def _owner_shares(self, dataset: Dataset) -> dict[str, str]:
        found = (where.partition("/") for where in refers_to(dataset))
        return next((self._shares(namespace, name) for namespace, _, name in found), {})

    def _owner(self, dataset: Dataset) -> Dataset | None:
        for where in refers_to(dataset):
            namespace, _, name = where.partition("/")
            found: Dataset | None = self.caches[DATASETS].get(namespace, name)
            return found
        return None

    async def _tell(self, seen: Seen, decision: Decision, now: str) -> None:
        dataset = seen.dataset
        meta = dataset.metadata
        if decision.remark is not None:
            about = reference(DATASETS, meta)
            reason, message = decision.remark
            self.writer.recorder.event(about, "Warning", reason, message)
        for load in seen.loads:
            if (status := decision.loads.get(load.metadata.name)) is not None:
                status = with_ignored(load, status, now)
                await write_status(self.writer.client, DATA_LOADS, load, status)
        for resource in PROCESSES:
            kind: Resource[Any] = resource
            for process in self.caches[kind].by_index(
                DATASET_INDEX, f"{meta.namespace}/{meta.name}"
            ):
                status = decision.processes.get(f"{kind.kind}/{process.metadata.name}")
                if status is not None:
                    status = with_ignored(process, status, now)
                    await write_status(self.writer.client, kind, process, status)
        if decision.status is not None:
            await write_status(self.writer.client, DATASETS, dataset, decision.status)
        if decision.runtime_status is not None and seen.runtimes:
            runtime = seen.runtimes[0]
            named = next(one for one in RUNTIME_KINDS if one.kind == runtime.kind)
            await write_status(self.writer.client, named, runtime, decision.runtime_status)


def _jobs(pods: Iterable[ClaimingPod]) -> dict[str, list[str]]:
    """Return the jobs of *pods* by node."""
    found: dict[str, set[str]] = {}
    for pod in pods:
        if pod.spec.node_name:
            found.setdefault(pod.spec.node_name, set()).add(job_of(pod))
    return {node: sorted(jobs) for node, jobs in found.items()}


def can_cache(node: Any) -> bool:
    """Tell whether *node* starts a data cache when a dataset wants one."""
    labels: Mapping[str, str] = node.metadata.labels
    process = labels.get(NODE_KIND_LABEL) == "process"
    return labels.get(CAN_CACHE_LABEL, "true" if process else "") == "true"


def without_cache(nodes: Iterable[Any]) -> frozenset[str]:
    """Return the names of *nodes* on which pods could run, and whose pods see no datasets.

    Nodes with a kubelet are such where others keep datasets: a cluster without data caches has
    none to send pods to.
    """
    known = [*nodes]
    kinds = ("process", "") if any(map(can_cache, known)) else ("process",)
    return frozenset(
        one.metadata.name
        for one in known
        if one.metadata.labels.get(NODE_KIND_LABEL, "") in kinds and not can_cache(one)
    )


def _of_kind(runtime: Runtime, resource: Resource[Runtime]) -> Runtime:
    """Return *runtime* with its kind, which items of a list do not have."""
    return structs.replace(runtime, kind=resource.kind)
