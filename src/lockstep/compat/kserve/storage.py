"""How a model comes into its pod: the one place that knows, whatever fetches it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from lockstep.compat.kserve.problem import Problem

Json = dict[str, Any]

MODELS: Final = "/mnt/models"
INITIALIZER: Final = "kserve/storage-initializer:latest"
_VOLUME: Final = "kserve-provision-location"
FETCHED: Final = ("s3", "http", "https", "gs", "hf")
"""Schemes that are fetched into the pod before its server starts."""


@dataclass(frozen=True, slots=True)
class Provision:
    """What a pod needs so that its model is at ``/mnt/models``."""

    volumes: list[Json] = field(default_factory=list)
    mounts: list[Json] = field(default_factory=list)
    init_containers: list[Json] = field(default_factory=list)


def provide(uri: str, secret_key: str = "") -> Provision:
    """Return how the model at *uri* gets into its pod.

    *secret_key* is the key in the Secret ``storage-config`` that says how to reach its store.

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
    if scheme not in FETCHED:
        raise Problem(where, uri, f"known are file, pvc, {', '.join(FETCHED)}")
    return Provision(
        [{"name": _VOLUME, "emptyDir": {}}],
        [_mount(read_only=True)],
        [_initializer(uri, secret_key)],
    )


def _mount(*, read_only: bool) -> Json:
    return {"name": _VOLUME, "mountPath": MODELS, "readOnly": read_only}


def _initializer(uri: str, secret_key: str) -> Json:
    ref = {"name": "storage-config", "key": secret_key or "default", "optional": True}
    return {
        "name": "storage-initializer",
        "image": INITIALIZER,
        "args": [uri, MODELS],
        "env": [{"name": "STORAGE_CONFIG", "valueFrom": {"secretKeyRef": ref}}],
        "volumeMounts": [_mount(read_only=False)],
        "securityContext": {"runAsNonRoot": True},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": {"requests": {"cpu": "100m", "memory": "100Mi"}},
    }
