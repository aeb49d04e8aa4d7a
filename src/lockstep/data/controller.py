"""The shell around the core: reads the caches, carries out the actions, writes the statuses."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from lockstep.api import timestamp
from lockstep.api.core import CRDS, NAMESPACES, NODES, ObjectReference
from lockstep.api.dataset_cache import (
    CAN_CACHE_LABEL,
    DATASET_CACHES,
    QUOTA_ANNOTATION,
    share_label,
)
from lockstep.api.merge import difference
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
from lockstep.data.core.decide import decide
from lockstep.data.core.objects import CLAIMS, VOLUMES, volume_name
from lockstep.data.core.processes import pod_name
from lockstep.data.core.sharing import may_read, refers_to
from lockstep.data.core.world import Action, Create, Decision, Patch, Seen
from lockstep.kube.client import Client
from lockstep.kube.controller import Key
from lockstep.kube.errors import AlreadyExists, Conflict, NotFound
from lockstep.kube.events import Recorder
from lockstep.kube.informer import Informer

log = logging.getLogger(__name__)

DATASET_INDEX: Final = "dataset"
"""DatasetCaches and DataLoads by the dataset that they are about: ``NAMESPACE/NAME``."""
REFERENCE_INDEX: Final = "reference"
"""Datasets by the dataset that they stand for: ``NAMESPACE/NAME``."""
PROCESSES: Final = (DATA_PROCESSES, DATA_MIGRATES, DATA_BACKUPS)
"""Operations that are pods."""
_AGAIN: Final = 0.1
_ASK_AGAIN: Final = 60.0
"""Seconds for which it is remembered whose kind ``Dataset`` is."""
_OVER: Final = ("Succeeded", "Failed")


@dataclass
class DatasetController:
    """Brings each dataset to what its spec, its runtime, its warm-ups and its readers ask for."""

    client: Client
    caches: Mapping[Resource[Any], Informer[Any]]
    recorder: Recorder
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
        decision = decide(seen, timestamp.show(self.clock()))
        try:
            for action in decision.actions:
                await self._carry_out(action)
            await self._tell(seen, decision)
        except (Conflict, NotFound) as error:
            log.debug("%s: %s", key, error)
            return _AGAIN
        return decision.again

    async def _ours(self) -> bool:
        """Tell whether datasets are for this controller: where Fluid is installed they are not."""
        since, answer = self._asked
        now = time.monotonic()
        if now - since >= _ASK_AGAIN:
            found = await self.client.get(CRDS, "datasets.data.fluid.io")
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
        claims = [where]
        for other in self.caches[DATASETS].by_index(REFERENCE_INDEX, where):
            meta = other.metadata
            if may_read(dataset, meta.namespace, open_to_all=self.open_to_all):
                claims.append(f"{meta.namespace}/{meta.name}")
        found = ((res, self.caches[res].get(namespace, name)) for res in RUNTIME_KINDS)
        mounting = [
            one
            for claim in claims
            for one in self.caches[CLAIMING_PODS].by_index(CLAIM_INDEX, claim)
        ]
        pods = [one for one in mounting if one.status.phase not in _OVER]
        claim = self.caches[CLAIMS].get(namespace, name)
        volume = self.caches[VOLUMES].get("", volume_name(dataset))
        uid = dataset.metadata.uid
        processes, refused = self._processes(where)
        return Seen(
            dataset,
            [_of_kind(one, res) for res, one in found if one is not None],
            sorted(
                (
                    one
                    for one in self.caches[DATASET_CACHES].by_index(DATASET_INDEX, where)
                    if any(owner.uid == uid for owner in one.metadata.owner_references)
                ),
                key=lambda one: str(one.metadata.name),
            ),
            self.caches[DATA_LOADS].by_index(DATASET_INDEX, where),
            processes,
            refused,
            self._operations(namespace),
            {
                one.metadata.name: one.status.phase
                for one in (*mounting, *self._carrying(namespace, processes))
            },
            self._owner(dataset),
            self._owner_shares(dataset),
            self.open_to_all,
            {
                one.metadata.name: one.metadata.labels
                for one in self.caches[NODES]
                if can_cache(one)
            },
            None,
            self._shares(namespace, name),
            frozenset(one.spec.node_name for one in pods if one.spec.node_name),
            _jobs(pods),
            [one.metadata.name for one in pods],
            self._quota(namespace),
            secrets.token_hex(32),
            None if claim is None else to_builtins(claim),
            None if volume is None else to_builtins(volume),
        )

    def _processes(self, where: str) -> tuple[list[DataProcess], dict[str, OperationStatus]]:
        """Return the operations on a dataset that are pods; statuses of those that cannot be."""
        found = list(self.caches[DATA_PROCESSES].by_index(DATASET_INDEX, where))
        refused: dict[str, OperationStatus] = {}
        for resource in (DATA_MIGRATES, DATA_BACKUPS):
            for one in self.caches[resource].by_index(DATASET_INDEX, where):
                try:
                    found.append(operations.process(one, self.caches[DATASETS].get))
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

    def _carrying(self, namespace: str, processes: Iterable[DataProcess]) -> Iterable[ClaimingPod]:
        """Yield the pods of operations; that of a migration may mount nothing."""
        for one in processes:
            pod = self.caches[CLAIMING_PODS].get(namespace, pod_name(one))
            if pod is not None:
                yield pod

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

    async def _carry_out(self, action: Action) -> None:
        namespace = action.namespace or None
        try:
            if isinstance(action, Create):
                await self.client.create(action.resource, action.body, namespace)
            elif isinstance(action, Patch):
                await self.client.patch(
                    action.resource,
                    action.name,
                    action.patch,
                    namespace,
                    subresource=action.subresource or None,
                )
            else:
                await self.client.delete(action.resource, action.name, namespace, uid=action.uid)
        except AlreadyExists:
            return  # made a moment ago, and not in the cache yet
        except NotFound:
            if isinstance(action, Patch):
                raise

    async def _tell(self, seen: Seen, decision: Decision) -> None:
        dataset = seen.dataset
        meta = dataset.metadata
        if decision.remark is not None:
            about = ObjectReference(
                api_version=dataset.api_version,
                kind=dataset.kind,
                namespace=meta.namespace,
                name=meta.name,
                uid=meta.uid,
            )
            reason, message = decision.remark
            self.recorder.event(about, "Warning", reason, message)
        for load in seen.loads:
            if (status := decision.loads.get(load.metadata.name)) is not None:
                await self._write(DATA_LOADS, load, status)
        for resource in PROCESSES:
            for process in self.caches[resource].by_index(
                DATASET_INDEX, f"{meta.namespace}/{meta.name}"
            ):
                status = decision.processes.get(f"{resource.kind}/{process.metadata.name}")
                if status is not None:
                    await self._write(resource, process, status)
        if decision.status is not None:
            await self._write(DATASETS, dataset, decision.status)
        if decision.runtime_status is not None and seen.runtimes:
            runtime = seen.runtimes[0]
            kind = next(one for one in RUNTIME_KINDS if one.kind == runtime.kind)
            await self._write(kind, runtime, decision.runtime_status)

    async def _write(self, resource: Resource[Any], obj: Any, status: Any) -> None:
        if patch := difference(to_builtins(obj.status), to_builtins(status)):
            meta = obj.metadata
            body = {"metadata": {"resourceVersion": meta.resource_version}, "status": patch}
            await self.client.patch(resource, meta.name, body, meta.namespace, subresource="status")


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
    return labels.get(NODE_KIND_LABEL) == "process" or labels.get(CAN_CACHE_LABEL) == "true"


def _of_kind(runtime: Runtime, resource: Resource[Runtime]) -> Runtime:
    """Return *runtime* with its kind, which items of a list do not have."""
    import msgspec

    return msgspec.structs.replace(runtime, kind=resource.kind)
