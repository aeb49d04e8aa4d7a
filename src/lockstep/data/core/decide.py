"""What a dataset needs next, from all that is seen of it."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from lockstep.api.core import CLAIMS, NODES, SECRETS, VOLUMES
from lockstep.api.dataset_cache import (
    CACHE_NODE_LABEL,
    DATASET_CACHES,
    EVERYWHERE,
    NO_CACHE,
    OWN_CACHE_ANNOTATION,
    CachePeer,
    DatasetCache,
    DatasetCacheSpec,
    SecretKey,
    cache_name,
    label_of,
    share_label,
)
from lockstep.api.merge import difference
from lockstep.api.meta import owner_reference
from lockstep.api.names import API_VERSION
from lockstep.api.wire import Json, to_builtins
from lockstep.compat.fluid.objects import DATASETS, Runtime, RuntimeStatus
from lockstep.compat.fluid.translate import Problem, Wanted, quota_of, translate
from lockstep.data.core import loads, objects, placement, processes, runs, sharing
from lockstep.data.core.dataset_state import Decision, Seen
from lockstep.data.core.status import dataset_status
from lockstep.runtime.actions import Action, Change, Create, Delete

FINALIZER: Final = "lockstep.dev/data"
"""Keeps a dataset until its volume, which has no owner, is gone."""


def decide(seen: Seen, now: str) -> Decision:
    """Return what to do for the dataset in *seen* at the time *now* (RFC 3339)."""
    if seen.dataset.metadata.deletion_timestamp is not None:
        return _end(seen, now)
    try:
        shared = sharing.reference(seen.dataset)
    except sharing.Unreadable as problem:
        status = dataset_status(seen, "Failed", "NotHonoured", str(problem), now)
        return Decision(status=status, loads=loads.statuses(seen, bound=False, now=now))
    if shared is not None:
        return _refer(seen, shared, now)
    runtime = _runtime(seen)
    if runtime is None:
        status = dataset_status(seen, "NotBound", "NoRuntime", _needs_runtime(seen), now)
        return Decision(status=status, loads=loads.statuses(seen, bound=False, now=now))
    try:
        places = placement.allowed(seen.dataset, seen.nodes)
        wanted = translate(seen.dataset, runtime)
        quota = quota_of(seen.quota)
    except Problem as problem:
        status = dataset_status(seen, "Failed", "NotHonoured", str(problem), now)
        told = loads.statuses(seen, bound=False, now=now)
        return Decision(
            status=status, loads=told, remark=("NotHonoured", str(problem)), runtime_status=None
        )
    if seen.dataset.metadata.annotations.get(OWN_CACHE_ANNOTATION) == EVERYWHERE:
        wanted = dataclasses.replace(wanted, replicas=max(1, len(places)))
    # What a node said before it lost its cache is waited for by none.
    caches = [one for one in seen.caches if one.spec.node not in seen.without]
    return _serve(dataclasses.replace(seen, places=places, caches=caches), wanted, quota, now)


def _runtime(seen: Seen) -> Runtime | None:
    """Return the runtime of the dataset; one with defaults where it says that it needs none."""
    if seen.runtimes:
        return seen.runtimes[0]
    meta = seen.dataset.metadata
    if meta.annotations.get(OWN_CACHE_ANNOTATION) in ("true", EVERYWHERE):
        return Runtime(metadata=meta)
    return None


def _refer(seen: Seen, shared: sharing.Reference, now: str) -> Decision:
    """Bind a dataset to the cache of the one that it stands for, without that one's secrets."""
    owner, namespace = seen.owner, seen.dataset.metadata.namespace
    where = f"{shared.namespace}/{shared.name}"
    # Whether another namespace has a dataset is not told to those that may not read it.
    if owner is None or not sharing.may_read(owner, namespace, open_to_all=seen.open_to_all):
        text = (
            f"there is no dataset {where} that {namespace} may read; its owner lists namespaces in "
            f"the annotation {sharing.SHARED_WITH}"
        )
        return Decision(status=dataset_status(seen, "NotBound", "NotShared", text, now))
    if owner.status.phase != "Bound":
        text = f"dataset {where} is not bound yet"
        return Decision(status=dataset_status(seen, "NotBound", "Waiting", text, now))
    plain = dataset_status(seen, "Bound", "Ready", "", now)
    status = msgspec.structs.replace(
        plain,
        ufs_total=owner.status.ufs_total,
        file_num=owner.status.file_num,
        cache_states=owner.status.cache_states,
        dataset_ref=[where],
    )
    actions, told = _processes(seen, True, now)
    actions = [*_guard(seen), *_bind(seen), *_label(seen, dict(seen.owner_shares)), *actions]
    again = loads.again(seen, now, synced=False)
    return Decision(actions, status, processes=told, again=again)


def _processes(seen: Seen, bound: bool, now: str) -> tuple[list[Action], dict[str, Any]]:
    actions, told = list[Action](), dict[str, Any](seen.refused)
    for one in seen.processes:
        if one.status.phase not in runs.OVER or (runs.recurs(one) and not runs.unserved(one)):
            waits = loads.waits(seen, one.spec.run_after)
            key = f"{one.kind}/{one.metadata.name}"
            more, told[key] = processes.step(one, seen.pods, bound, waits, now)
            actions += more
    return actions, told


def _serve(seen: Seen, wanted: Wanted, quota: int, now: str) -> Decision:
    actions: list[Action] = list(_guard(seen))
    if _lacks_token(seen):
        namespace = seen.dataset.metadata.namespace
        actions.append(Create(SECRETS, objects.token(seen.dataset, seen.new_token), namespace))
    reload = loads.reload(seen, now, synced=wanted.auto_sync)
    version = _version(seen, reload)
    chosen = nodes(seen, wanted)
    targets = loads.targets(seen, chosen)
    for node in chosen:
        spec = _cache_spec(seen, wanted, node, version, reload)
        peers, told_to = _peers(seen, chosen, version), targets.get(node, ())
        spec = msgspec.structs.replace(
            spec, quota=quota, targets=_targets(seen, node, told_to), peers=peers
        )
        actions += _cache(seen, spec)
    if version:
        actions += _bind(seen)
    shares = {one.spec.node: _share(one) for one in seen.caches if version}
    actions += _label(seen, shares | dict.fromkeys(seen.without, NO_CACHE))
    more, told = _processes(seen, bool(version), now)
    actions += more
    phase, reason, message = _phase(seen, version)
    ready = sum(one.status.phase == "Ready" for one in seen.caches)
    runtime = RuntimeStatus(
        worker_phase="Ready" if ready and ready == len(chosen) else "PartialReady",
        fuse_phase="Ready",
        current_worker_number_scheduled=len(chosen),
        desired_worker_number_scheduled=wanted.replicas,
        selector=f"lockstep.dev/dataset={seen.dataset.metadata.name}",
    )
    return Decision(
        actions,
        dataset_status(seen, phase, reason, message, now, ignored=wanted.ignored),
        runtime,
        loads=loads.statuses(seen, bound=bool(version), now=now),
        processes=told,
        again=loads.again(seen, now, synced=wanted.auto_sync),
    )


def _cache_spec(
    seen: Seen, wanted: Wanted, node: str, version: str, reload: str
) -> DatasetCacheSpec:
    """Return the spec of a node's cache, as far as the other nodes do not matter."""
    return DatasetCacheSpec(
        node=node,
        dataset=seen.dataset.metadata.name,
        mounts=wanted.mounts,
        tiers=wanted.tiers,
        version=version,
        reload=reload,
        reading=node in seen.readers,
        jobs=list(seen.jobs.get(node, ())),
        pin=wanted.pin,
        rate=loads.rate(seen),
        timeout=wanted.timeout,
        token=SecretKey(name=objects.token_name(seen.dataset), key=objects.TOKEN_KEY),
    )


def nodes(seen: Seen, wanted: Wanted) -> list[str]:
    """Return the nodes that cache the dataset: those that do, those that read, then others.

    Others are chosen by the dataset's and the node's name together, so that many datasets spread.
    """
    usable = set(seen.nodes if seen.places is None else seen.places)
    kept = [one.spec.node for one in seen.caches if one.spec.node in usable]
    found = list(dict.fromkeys([*kept, *sorted(seen.readers & usable)]))
    others = sorted(usable - set(found), key=lambda node: _weight(seen, node))
    return found + others[: max(0, wanted.replicas - len(found))]


def _weight(seen: Seen, node: str) -> bytes:
    text = f"{seen.dataset.metadata.namespace}/{seen.dataset.metadata.name}@{node}"
    return hashlib.sha256(text.encode()).digest()


def _version(seen: Seen, wanted: str) -> str:
    """Return the version to bind: the one that is, or what a listing found that was asked for."""
    bound = next((one.spec.version for one in seen.caches if one.spec.version), "")
    listed = [one.status.listed for one in seen.caches if one.status.reload == wanted]
    found = [one for one in listed if one]
    return bound if bound in found or not found else found[0]


def _targets(seen: Seen, node: str, asked: Iterable[str]) -> list[str]:
    """Return what is to be on *node*; what was asked for stays asked for."""
    kept = [path for one in seen.caches if one.spec.node == node for path in one.spec.targets]
    reads = ["/"] if node in seen.readers else []
    return sorted({*kept, *asked, *reads})


def _share(cache: DatasetCache) -> str:
    """Return how much of the dataset a node has, in steps that are not written too often."""
    status = cache.status
    if status.whole or not status.bytes:
        return "100" if status.whole else "0"
    return str(min(99, 25 * int(4 * status.cached_bytes / status.bytes)))


def _label(seen: Seen, shares: dict[str, str]) -> Iterable[Action]:
    """Yield what tells the scheduler how much of the dataset each node has."""
    meta = seen.dataset.metadata
    key = share_label(meta.namespace, meta.name)
    for node in sorted({*seen.shares, *shares}):
        wanted = shares.get(node)
        there = node in seen.nodes or node in seen.without
        if wanted != seen.shares.get(node) and there:
            yield Change(NODES, node, {"metadata": {"labels": {key: wanted}}})


def _lacks_token(seen: Seen) -> bool:
    """Tell whether the Secret that the nodes show each other is not there yet, or not any more."""
    if all(one.spec.token is None for one in seen.caches):
        return True
    name = objects.token_name(seen.dataset)
    return any(
        one.status.reason == "SecretMissing" and name in one.status.message for one in seen.caches
    )


def _peers(seen: Seen, nodes: Iterable[str], version: str) -> list[CachePeer]:
    """Return the nodes of the dataset, and where each listens."""
    known = {one.spec.node: one.status for one in seen.caches}
    return [
        CachePeer(
            node=node,
            address=known[node].address if node in known else "",
            certificate=known[node].certificate if node in known else "",
            whole=node in known and known[node].whole and known[node].version == version,
        )
        for node in sorted(nodes)
    ]


def _cache(seen: Seen, spec: DatasetCacheSpec) -> Iterable[Action]:
    name, namespace = cache_name(spec.dataset, spec.node), seen.dataset.metadata.namespace
    there = next((one for one in seen.caches if one.metadata.name == name), None)
    if there is None:
        body = {
            "apiVersion": API_VERSION,
            "kind": "DatasetCache",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": {CACHE_NODE_LABEL: label_of(spec.node)},
                "ownerReferences": [owner_reference(seen.dataset)],
            },
            "spec": to_builtins(spec),
        }
        yield Create(DATASET_CACHES, body, namespace)
    elif patch := difference(to_builtins(there.spec), to_builtins(spec)):
        yield Change(DATASET_CACHES, name, {"spec": patch}, namespace)


def _guard(seen: Seen) -> Iterable[Action]:
    """Yield what keeps the dataset from going before its volume."""
    meta = seen.dataset.metadata
    if FINALIZER not in meta.finalizers:
        patch = {
            "resourceVersion": meta.resource_version,
            "finalizers": [*meta.finalizers, FINALIZER],
        }
        yield Change(DATASETS, meta.name, {"metadata": patch}, meta.namespace)


def _bind(seen: Seen) -> Iterable[Action]:
    """Yield what gives the dataset its volume and claim, bound to each other.

    Servers with a controller of volumes bind them themselves; the embedded one has none.
    """
    dataset = seen.dataset
    meta = dataset.metadata
    if seen.volume is None:
        yield Create(VOLUMES, objects.volume(dataset))
    elif (seen.volume.get("status") or {}).get("phase") != "Bound":
        patch = {"status": {"phase": "Bound"}}
        yield Change(VOLUMES, objects.volume_name(dataset), patch, subresource="status")
    if seen.claim is None:
        yield Create(CLAIMS, objects.claim(dataset), meta.namespace)
    elif (seen.claim.get("status") or {}).get("phase") != "Bound" and _ours(seen, seen.claim):
        spec = seen.claim.get("spec") or {}
        bound: Json = {
            "status": {
                "phase": "Bound",
                "accessModes": spec.get("accessModes"),
                "capacity": (spec.get("resources") or {}).get("requests"),
            }
        }
        yield Change(CLAIMS, meta.name, bound, meta.namespace, "status")


def _ours(seen: Seen, obj: Json) -> bool:
    owners = (obj.get("metadata") or {}).get("ownerReferences") or []
    return any(one.get("uid") == seen.dataset.metadata.uid for one in owners)


def _phase(seen: Seen, version: str) -> tuple[str, str, str]:
    if seen.claim is not None and not _ours(seen, seen.claim):
        text = (
            f"a PersistentVolumeClaim {seen.dataset.metadata.name} is there that is not the "
            "dataset's; remove it, or give the dataset another name"
        )
        return "Failed", "ClaimTaken", text
    failed = [one for one in seen.caches if one.status.phase == "Failed"]
    told = f"{failed[0].spec.node}: {failed[0].status.message}" if failed else ""
    if version and not failed:
        partly = [one for one in seen.caches if one.status.reason]
        told = f"{partly[0].spec.node}: {partly[0].status.message}" if partly else ""
        return "Bound", partly[0].status.reason if partly else "Ready", told
    if version:
        return "Bound", failed[0].status.reason, told
    if failed:
        return "NotBound", failed[0].status.reason, told
    if not seen.nodes:
        return "NotBound", "NoNode", "no node here can cache data"
    if not seen.places:
        return "NotBound", "NoNode", "no node that can cache data fits spec.nodeAffinity.required"
    return "NotBound", "Listing", "the source is being listed"


def _needs_runtime(seen: Seen) -> str:
    name = seen.dataset.metadata.name
    return f"no runtime named {name} is there; create one, such as an AlluxioRuntime"


def _end(seen: Seen, now: str) -> Decision:
    """Let a dataset go once no pod mounts it."""
    if seen.mounted_by:
        text = f"it goes once no pod mounts it; {', '.join(sorted(seen.mounted_by)[:5])} do"
        return Decision(status=dataset_status(seen, "Bound", "InUse", text, now))
    meta = seen.dataset.metadata
    actions: list[Action] = []
    if seen.claim is not None and _ours(seen, seen.claim):
        uid = seen.claim["metadata"]["uid"]
        actions.append(Delete(CLAIMS, meta.name, uid, meta.namespace))
    if seen.volume is not None and _for(seen, seen.volume):
        name, uid = objects.volume_name(seen.dataset), seen.volume["metadata"]["uid"]
        actions.append(Delete(VOLUMES, name, uid))
    actions += _label(seen, {})
    actions += [Delete.of(DATASET_CACHES, one.metadata) for one in seen.caches]
    if FINALIZER in meta.finalizers:
        rest = [one for one in meta.finalizers if one != FINALIZER]
        patch = {"resourceVersion": meta.resource_version, "finalizers": rest}
        actions.append(Change(DATASETS, meta.name, {"metadata": patch}, meta.namespace))
    return Decision(actions)


def _for(seen: Seen, volume: Json) -> bool:
    csi = (volume.get("spec") or {}).get("csi") or {}
    return bool(csi.get("volumeAttributes") == objects.attributes(seen.dataset))
