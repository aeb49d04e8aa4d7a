"""LocalModelCaches: models that are on their nodes before a service asks for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from lockstep.api.core import AnyObject
from lockstep.api.dataset_cache import EVERYWHERE, OWN_CACHE_ANNOTATION, DatasetCache
from lockstep.api.names import SYSTEM_NAMESPACE
from lockstep.api.wire import Json
from lockstep.compat.fluid.objects import DATA_LOADS, DATASETS, Dataset
from lockstep.compat.kserve import storage
from lockstep.runtime.actions import Action, Create, Delete

SHARED_WITH: Final = "data.lockstep.dev/shared-with"
_PREFIX: Final = "local-model-"
_STATES: Final = {
    "Pending": "NodeDownloadPending",
    "Loading": "NodeDownloading",
    "Ready": "NodeDownloaded",
    "Failed": "NodeDownloadError",
}


def place_of(cache: AnyObject) -> tuple[str, str]:
    """Return the namespace and the name of the Dataset that holds the model of *cache*."""
    return cache.metadata.namespace or SYSTEM_NAMESPACE, _PREFIX + cache.metadata.name


def uri_of(cache: AnyObject) -> str:
    """Return where the model of *cache* comes from."""
    return str(cache.spec.get("sourceModelUri") or "").rstrip("/")


def source(uri: str, namespace: str, caches: Iterable[AnyObject]) -> str:
    """Return where a service of *namespace* reads the model at *uri*.

    That is the Dataset of a LocalModelCache that holds the model or a directory above it, as
    ``dataset://NAMESPACE/NAME/PATH``; else the *uri* itself.
    """
    for one in sorted(caches, key=lambda one: -len(uri_of(one))):
        held = uri_of(one)
        if one.metadata.namespace in ("", namespace) and held and f"{uri}/".startswith(f"{held}/"):
            path = uri.removeprefix(held).strip("/")
            return "/".join(("dataset:/", *place_of(one), *([path] if path else [])))
    return uri


@dataclass(frozen=True, slots=True)
class SeenLocalModel:
    """A LocalModelCache of the cluster or of one namespace, and what is there of it."""

    object: AnyObject
    groups: Mapping[str, AnyObject] = field(default_factory=dict)
    """LocalModelNodeGroups by name."""
    dataset: Dataset | None = None
    caches: Iterable[DatasetCache] = ()
    """What each node has of it."""
    loaded: bool = False
    """Whether its DataLoad is there."""
    services: Iterable[tuple[str, str]] = ()
    """Namespaces and names of the services that use it."""


def decide_local(seen: SeenLocalModel) -> tuple[Json, list[Action]]:
    """Return the status of a LocalModelCache, and what is to be done for it."""
    obj, uri = seen.object, uri_of(seen.object)
    scheme = uri.partition("://")[0]
    if scheme not in storage.CACHED:
        text = f"spec.sourceModelUri: {uri!r}; known are {', '.join(storage.CACHED)}"
        return {**_counts(seen), "message": text}, []
    affinity = _affinity(seen)
    if isinstance(affinity, str):
        return {**_counts(seen), "message": affinity}, []
    namespace, name = place_of(obj)
    actions: list[Action] = []
    spec = {**storage.dataset(storage.Model(name, uri, _key(obj))), **affinity}
    if seen.dataset is None:
        shared = {} if obj.metadata.namespace else {SHARED_WITH: "*"}
        about = {**_about(obj), "annotations": {OWN_CACHE_ANNOTATION: EVERYWHERE, **shared}}
        actions.append(Create(DATASETS, {"metadata": about, "spec": spec}))
    elif [one.mount_point for one in seen.dataset.spec.mounts] != [uri]:
        # Another model: its files are not those of the Dataset that is there.
        actions.append(Delete(DATASETS, name, seen.dataset.metadata.uid))
    if not seen.loaded:
        load = {"dataset": {"name": name, "namespace": namespace}}
        actions.append(Create(DATA_LOADS, {"metadata": _about(obj), "spec": load}))
    return {**_counts(seen), "message": _trouble(seen.dataset)}, actions


def _key(obj: AnyObject) -> str:
    return str((obj.spec.get("storage") or {}).get("key") or "")


def _about(obj: AnyObject) -> Json:
    namespace, name = place_of(obj)
    owner = {
        "apiVersion": obj.api_version,
        "kind": obj.kind,
        "name": obj.metadata.name,
        "uid": obj.metadata.uid,
        "controller": True,
    }
    return {"namespace": namespace, "name": name, "ownerReferences": [owner]}


def _affinity(seen: SeenLocalModel) -> Json | str:
    """Return on which nodes the model is to be, as a Dataset says it; or what is wrong."""
    terms: list[Json] = []
    for name in seen.object.spec.get("nodeGroups") or []:
        group = seen.groups.get(str(name))
        if group is None:
            there = ", ".join(sorted(seen.groups)) or "none"
            return f"spec.nodeGroups: there is no LocalModelNodeGroup {name}; there are: {there}"
        volume = group.spec.get("persistentVolumeSpec") or {}
        required = (volume.get("nodeAffinity") or {}).get("required") or {}
        found = required.get("nodeSelectorTerms") or []
        if not found:
            return {}
        terms += found
    return {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}} if terms else {}


def _counts(seen: SeenLocalModel) -> Json:
    states = {
        one.spec.node: "NodeDownloaded"
        if one.status.whole
        else _STATES.get(one.status.phase, "NodeDownloadPending")
        for one in seen.caches
    }
    return {
        "nodeStatus": dict(sorted(states.items())),
        "copies": {
            "total": len(states),
            "available": sum(one == "NodeDownloaded" for one in states.values()),
            "failed": sum(one == "NodeDownloadError" for one in states.values()),
        },
        "inferenceServices": [
            {"namespace": namespace, "name": name} for namespace, name in sorted(seen.services)
        ],
    }


def _trouble(dataset: Dataset | None) -> str:
    found = dataset.status.conditions if dataset is not None else []
    return next((one.message for one in found if one.type == "Ready"), "")
