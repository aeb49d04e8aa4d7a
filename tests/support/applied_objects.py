"""Objects as they are applied and updated, with those who own their fields."""

from __future__ import annotations

import copy
from typing import Any

from lockstep.apiserver.patch import Writer, builtin, track

Json = dict[str, Any]
CONFIG_MAP = builtin("io.k8s.api.core.v1.ConfigMap")
POD = builtin("io.k8s.api.core.v1.Pod")
NOW, LATER = 1_800_000_000.9, 1_800_000_060.0
NOW_TEXT, LATER_TEXT = "2027-01-15T08:00:00Z", "2027-01-15T08:01:00Z"


def by(manager: str, now: float = NOW, version: str = "v1", subresource: str = "") -> Writer:
    return Writer(manager, version, now, subresource)


def config(data: Json | None = None, **more: Any) -> Json:
    obj: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, **more}
    return obj if data is None else {**obj, "data": data}


def pod(*containers: Json, **spec: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "x"},
        "spec": {"containers": list(containers), **spec},
    }


def without_managers(obj: Json) -> Json:
    metadata = {k: v for k, v in obj["metadata"].items() if k != "managedFields"}
    return {**obj, "metadata": metadata}


def owners(obj: Json) -> dict[str, Any]:
    """Return the fields of each manager: ``name`` for appliers, ``name (Update)`` for others."""
    found = {}
    for entry in obj["metadata"].get("managedFields", ()):
        suffix = "" if entry["operation"] == "Apply" else " (Update)"
        found[entry["manager"] + suffix] = entry["fieldsV1"]
    return found


def created(obj: Json, manager: str = "creator", kind: Any = CONFIG_MAP) -> Json:
    new = copy.deepcopy(obj)
    track(None, new, kind, by(manager, version=obj["apiVersion"]))
    return new


def updated(old: Json, new: Json, manager: str, kind: Any = CONFIG_MAP, **more: Any) -> Json:
    new = copy.deepcopy(new)
    track(old, new, kind, by(manager, version=old["apiVersion"], **more))
    return new
