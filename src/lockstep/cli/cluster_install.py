"""Installs Lockstep on an existing cluster, node by node as each is, and takes it off again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from lockstep.api.core import NODES, AnyObject, Node, Taint
from lockstep.api.dataset_cache import CAN_CACHE_LABEL
from lockstep.api.queue import QUEUES
from lockstep.api.resource import Resource
from lockstep.api.wire import Json, to_builtins
from lockstep.cli.connect import Session
from lockstep.cli.served_kinds import find_resource
from lockstep.devices.core.profiles import (
    PROFILE_LABEL,
    RDMA_LABEL,
    TAINTED,
    TAINTS,
    Profile,
    profile,
)
from lockstep.kube.client import Patch
from lockstep.kube.errors import AlreadyExists, NotFound

MANAGER: Final = "lockstep-install"
STORAGE_CLASSES: Final = Resource(
    "storage.k8s.io", "v1", "storageclasses", "StorageClass", False, AnyObject
)
DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
DEFAULT_QUEUE: Final = "default"
KEPT: Final = ("CustomResourceDefinition", "Namespace", "PersistentVolumeClaim")
"""Kinds that stay when Lockstep is taken off: objects of users, and the record of usage."""
QUEUE_TRIES: Final = 20
FEWEST: Final = 2
SECONDS: Final = 0.2
PEERS: Final = 4
PATIENCE: Final = 30.0
"""Seconds for an agent that was just installed to answer."""


def everything(image: str | None, *, keep_records: bool = True) -> list[Json]:
    """Return all objects of the manifest in the order in which they are applied.

    Without *keep_records*, for a cluster that has no default class of storage, the record of usage
    lies in its pod and goes with it.
    """
    import yaml

    from lockstep.cli.manifests import manifest

    objects = [one for one in yaml.safe_load_all(manifest(image)) if one]
    return objects if keep_records else list(_unrecorded(objects))


def _unrecorded(objects: Iterable[Json]) -> Iterator[Json]:
    """Yield *objects* without the claim of the record: pods have an empty directory instead."""
    for obj in objects:
        if obj["kind"] == "PersistentVolumeClaim":
            continue
        if obj["kind"] == "Deployment":
            pod = obj["spec"]["template"]["spec"]
            for volume in pod.get("volumes", ()):
                if volume.pop("persistentVolumeClaim", None) is not None:
                    volume["emptyDir"] = {}
                    pod.pop("affinity", None)
        yield obj


async def install(session: Session, image: str | None, taint: bool = False) -> dict[str, Profile]:
    """Apply everything, label the nodes, and return what each of them is; safe to repeat.

    With *taint* nodes with cards are kept for pods that ask for these.
    """
    keep = await default_class(session)
    for obj in everything(image, keep_records=keep):
        await _apply(session, obj)
    await _default_queue(session)
    found = await profiles(session)
    for name, one in found.items():
        body = {"metadata": {"labels": one.labels}}
        await session.client.patch(NODES, name, body)
    if taint:
        for node in (await session.client.list(NODES)).items:
            kind = found[node.metadata.name].kind if node.metadata.name in found else "cpu"
            await _keep_off(session, node, TAINTS.get(kind, ""))
    return found


async def _apply(session: Session, obj: Json) -> None:
    res = await find_resource(session, obj["apiVersion"], obj["kind"])
    meta = obj["metadata"]
    await session.client.patch(
        res,
        meta["name"],
        obj,
        meta.get("namespace"),
        how=Patch.APPLY,
        field_manager=MANAGER,
        force=True,
    )


async def default_class(session: Session) -> bool:
    """Tell whether the cluster has a default class of storage."""
    classes = (await session.client.list(STORAGE_CLASSES)).items
    return any(one.metadata.annotations.get(DEFAULT_CLASS) == "true" for one in classes)


async def _default_queue(session: Session) -> None:
    """Make the queue of jobs that name none, once; its kind may be a moment in coming."""
    for last in (False,) * QUEUE_TRIES + (True,):
        try:
            await session.client.create(QUEUES, {"metadata": {"name": DEFAULT_QUEUE}, "spec": {}})
        except AlreadyExists:
            return
        except NotFound:
            if last:
                raise
            await asyncio.sleep(0.5)
        else:
            return


async def _keep_off(session: Session, node: Node, key: str) -> bool:
    """Give a node our taint of *key*, none where that is empty; return whether it had another."""
    others = [one for one in node.spec.taints if one.value != TAINTED]
    ours = [Taint(key=key, value=TAINTED, effect="NoSchedule")] if key else []
    if any(one.key == key for one in others) or [*others, *ours] == node.spec.taints:
        return False
    body = {
        "metadata": {"resourceVersion": node.metadata.resource_version},
        "spec": {"taints": to_builtins([*others, *ours])},
    }
    await session.client.patch(NODES, node.metadata.name, body)
    return True


async def check(session: Session, found: Mapping[str, Profile]) -> Json | None:
    """Measure the network between the nodes with RDMA; None where there are fewer than two."""
    from lockstep.cli.network_check import Wish, measured

    names = tuple(sorted(name for name, one in found.items() if one.rdma))
    if len(names) < FEWEST:
        return None
    return await measured(session, Wish(names, (), SECONDS, PEERS, PATIENCE))


async def profiles(session: Session) -> dict[str, Profile]:
    """Return what each node of the cluster is."""
    import json

    raw = json.loads(await session.client.get_raw("/api/v1/nodes"))
    return {
        one["metadata"]["name"]: profile(
            one["metadata"].get("labels") or {}, one.get("status", {}).get("capacity") or {}
        )
        for one in raw["items"]
    }


async def remove(session: Session) -> list[str]:
    """Delete what was installed, but for the kinds and the record of usage; return what."""
    gone = []
    for obj in reversed(everything(None)):
        if obj["kind"] in KEPT:
            continue
        res = await find_resource(session, obj["apiVersion"], obj["kind"])
        meta = obj["metadata"]
        try:
            await session.client.delete(res, meta["name"], meta.get("namespace"))
        except NotFound:
            continue
        gone.append(f"{obj['kind'].lower()}/{meta['name']}")
    labels = dict.fromkeys((PROFILE_LABEL, RDMA_LABEL, CAN_CACHE_LABEL))
    for node in (await session.client.list(NODES)).items:
        if await _keep_off(session, node, ""):
            gone.append(f"taint of node/{node.metadata.name}")
        if any(name in node.metadata.labels for name in labels):
            await session.client.patch(NODES, node.metadata.name, {"metadata": {"labels": labels}})
            gone.append(f"labels of node/{node.metadata.name}")
    return gone
