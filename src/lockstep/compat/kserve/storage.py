"""How a model comes into its pod, for each way of fetching it."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Final

from lockstep.api.wire import Json
from lockstep.compat.kserve.problem import Problem

MODELS: Final = "/mnt/models"
INITIALIZER: Final = "kserve/storage-initializer:latest"
_VOLUME: Final = "kserve-provision-location"
FETCHED: Final = ("s3", "http", "https", "gs", "hf")
"""Schemes that are fetched into the pod before its server starts."""
CACHED: Final = ("s3", "gs")
"""Of them, those that the node's data cache reads: once a node, peers before the store."""
MODEL_ANNOTATION: Final = "lockstep.dev/model"
"""On a replica: the Dataset that holds its model, as JSON of ``name``, ``uri`` and ``key``."""
_HUB: Final = ("HF_ENDPOINT", "HF_TOKEN")
_SECRET: Final = "storage-config"  # noqa: S105  the name of an object


@dataclass(frozen=True, slots=True)
class Provision:
    """What a pod needs so that its model is at ``/mnt/models``."""

    volumes: list[Json] = field(default_factory=list)
    mounts: list[Json] = field(default_factory=list)
    init_containers: list[Json] = field(default_factory=list)
    annotations: dict[str, str] = field(default_factory=dict)
    """What the pod says of the Dataset that holds its model."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model that nodes keep as a Dataset."""

    name: str
    """Name of the Dataset."""
    uri: str
    key: str = ""
    """Key in the Secret ``storage-config``; empty is its default."""


def model_of(annotations: dict[str, str]) -> Model | None:
    """Return the model whose Dataset the *annotations* of a replica name; none where none does."""
    try:
        found = json.loads(annotations.get(MODEL_ANNOTATION, "null"))
        return Model(str(found["name"]), str(found["uri"]), str(found.get("key", "")))
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def provide(uri: str, secret_key: str = "", *, cached: bool = False) -> Provision:
    """Return how the model at *uri* gets into its pod.

    *secret_key* is the key in the Secret ``storage-config`` that says how to reach its store.
    With *cached* it comes as a Dataset where the nodes' caches can read its store.

    Raises:
        Problem: when the URI is of no known kind.
    """
    where = "spec.predictor.model.storageUri"
    scheme, _, rest = uri.partition("://")
    if not uri.startswith(f"{scheme}://") or not rest:
        raise Problem(where, uri, "a URI such as s3://BUCKET/PATH or file:///PATH is needed")
    if scheme == "file":
        path = "/" + rest.lstrip("/")
        if ".." in path.split("/"):
            raise Problem(where, uri, "the path must not climb with '..'")
        volume = {"name": _VOLUME, "hostPath": {"path": path, "type": "Directory"}}
        return Provision([volume], [_mount(read_only=True)])
    if scheme == "pvc":
        claim, _, below = rest.partition("/")
        volume = {"name": _VOLUME, "persistentVolumeClaim": {"claimName": claim}}
        mount = _mount(read_only=True) | ({"subPath": below} if below else {})
        return Provision([volume], [mount])
    if scheme == "dataset":
        return _shared(uri, rest)
    if scheme == "model":
        words = "no ModelVersion of the namespace has that name, and that version or stage"
        raise Problem(where, uri, words)
    if cached and scheme in CACHED:
        return _cached(uri, secret_key)
    if scheme not in FETCHED:
        raise Problem(where, uri, f"known are file, pvc, dataset, model, {', '.join(FETCHED)}")
    return Provision(
        [{"name": _VOLUME, "emptyDir": {}}],
        [_mount(read_only=True)],
        [_initializer(uri, secret_key)],
    )


def initializers(provision: Provision, container: Json) -> list[Json]:
    """Return the init containers that fetch the model, told how the *container* reaches a hub."""
    hub = [one for one in container.get("env", []) if one.get("name") in _HUB]
    return [{**one, "env": [*one.get("env", []), *hub]} for one in provision.init_containers]


def _shared(uri: str, rest: str) -> Provision:
    """Return a Dataset's files: one of the own namespace, or another's as ``NAMESPACE/NAME``."""
    parts = rest.strip("/").split("/")
    if ".." in parts or not all(parts):
        where = "spec.predictor.model.storageUri"
        raise Problem(where, uri, "write dataset://NAME or dataset://NAMESPACE/NAME")
    if len(parts) == 1:
        return _claimed(parts[0])
    return _cached(uri, "")


def _cached(uri: str, secret_key: str) -> Provision:
    model = Model(model_name(uri, secret_key), uri, secret_key)
    told = {"name": model.name, "uri": uri, **({"key": secret_key} if secret_key else {})}
    found = _claimed(model.name)
    return Provision(found.volumes, found.mounts, [], {MODEL_ANNOTATION: json.dumps(told)})


def _claimed(claim: str) -> Provision:
    volume = {"name": _VOLUME, "persistentVolumeClaim": {"claimName": claim, "readOnly": True}}
    return Provision([volume], [_mount(read_only=True)])


def model_name(uri: str, secret_key: str = "") -> str:
    """Return the name of the Dataset that holds the model at *uri*: one for all who ask for it."""
    last = re.sub(r"[^a-z0-9]+", "-", uri.rstrip("/").rpartition("/")[2].lower()).strip("-")
    digest = hashlib.sha256(f"{uri} {secret_key}".encode()).hexdigest()[:10]
    return "-".join(one for one in ("model", last[:30].strip("-"), digest) if one)


def dataset(model: Model) -> Json:
    """Return the spec of the Dataset that holds *model*."""
    mount: Json = {"mountPoint": model.uri, "name": "model", "path": "/"}
    if not model.uri.startswith("dataset://"):
        ref = {"name": _SECRET, "key": model.key or "default", "optional": True}
        mount["encryptOptions"] = [{"name": _SECRET, "valueFrom": {"secretKeyRef": ref}}]
    return {"mounts": [mount]}


def names(uri: str, place: tuple[str, str]) -> bool:
    """Return whether *uri* leads into the Dataset at *place*, a namespace and a name."""
    return f"{uri}/".startswith(f"dataset://{place[0]}/{place[1]}/")


def _mount(*, read_only: bool) -> Json:
    return {"name": _VOLUME, "mountPath": MODELS, "readOnly": read_only}


def settings(secret_key: str) -> Json:
    """Return the variable that says how the store of models is reached."""
    ref = {"name": _SECRET, "key": secret_key or "default", "optional": True}
    return {"name": "STORAGE_CONFIG", "valueFrom": {"secretKeyRef": ref}}


def _initializer(uri: str, secret_key: str) -> Json:
    return {
        "name": "storage-initializer",
        "image": INITIALIZER,
        "args": [uri, MODELS],
        "env": [settings(secret_key)],
        "volumeMounts": [_mount(read_only=False)],
        "securityContext": {"runAsNonRoot": True},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": {"requests": {"cpu": "100m", "memory": "100Mi"}},
    }
