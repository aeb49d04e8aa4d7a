"""TrainedModels: models of a service that come and go while its replicas run."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from lockstep.api.core import AnyObject
from lockstep.api.wire import Json
from lockstep.compat.kserve import storage
from lockstep.compat.kserve.problem import Problem

FILE: Final = "models.json"
_DIRECTORY: Final = "/mnt/configs"
_VOLUME: Final = "model-config"
SCHEMES: Final = ("s3", "http", "https")
"""What replicas fetch by themselves."""


def config_name(service: str) -> str:
    """Return the name of the ConfigMap that lists the models of *service*, as KServe calls it."""
    return f"modelconfig-{service}-0"


def take(pod: Json, container: Json, model: Json, service: str) -> None:
    """Let a replica without a model of its own serve those that the ConfigMap lists."""
    stated = model.get("storageUri") or (model.get("storage") or {}).get("path")
    mounts = container.get("volumeMounts", [])
    if stated or any(one.get("mountPath") == storage.MODELS for one in mounts):
        return
    listed = {"name": config_name(service), "optional": True}
    pod["volumes"] = [*pod.get("volumes", []), {"name": _VOLUME, "configMap": listed}]
    mount = {"name": _VOLUME, "mountPath": _DIRECTORY, "readOnly": True}
    container["volumeMounts"] = [*mounts, mount]
    told = [
        {"name": "LOCKSTEP_MODEL_CONFIG", "value": f"{_DIRECTORY}/{FILE}"},
        storage.settings(str((model.get("storage") or {}).get("key") or "")),
    ]
    container["env"] = [*told, *container.get("env", [])]
    ready = {"path": "/v2/health/ready", "port": 8080}
    container.setdefault("readinessProbe", {"httpGet": ready, "periodSeconds": 1})


def parent(obj: AnyObject) -> str:
    """Return the service whose replicas are to serve *obj*."""
    return str(obj.spec.get("inferenceService") or "")


def checked(obj: AnyObject) -> str:
    """Return where the model of *obj* comes from.

    Raises:
        Problem: when a replica cannot fetch it.
    """
    model = obj.spec.get("model") or {}
    uri = str(model.get("storageUri") or "")
    if uri.partition("://")[0] not in SCHEMES:
        raise Problem("spec.model.storageUri", uri, f"known are {', '.join(SCHEMES)}")
    return uri


def listing(models: Iterable[tuple[str, Json]]) -> str:
    """Return the file that lists *models*, each its name and ``spec.model``."""
    shown = [{"modelName": name, "modelSpec": spec} for name, spec in sorted(models)]
    return json.dumps(shown, sort_keys=True)
