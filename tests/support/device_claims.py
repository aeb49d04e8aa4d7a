"""Slices, classes, claims and pods with claims, as the scheduler's state takes them in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lockstep.api.claims import DRIVER, DeviceClass, ResourceClaim, ResourceSlice
from lockstep.api.core import Node, Pod
from lockstep.api.wire import convert
from lockstep.scheduler.core.state.cluster import Cluster

Json = dict[str, Any]


def device(name: str, capacity: Mapping[str, str] | None = None, **attributes: Any) -> Json:
    """Return a device; a name with ``__`` stands for a qualified one."""
    forms = {bool: "bool", int: "int", str: "string"}
    found = {
        key.replace("__", "/").replace("_k8s_io", ".kubernetes.io"): {forms[type(value)]: value}
        for key, value in attributes.items()
    }
    return {
        "name": name,
        "attributes": found,
        "capacity": {key: {"value": value} for key, value in (capacity or {}).items()},
    }


def slice_of(driver: str, pool: str, devices: Sequence[Json], **spec: Any) -> ResourceSlice:
    where = {} if {"allNodes", "nodeSelector"} & spec.keys() else {"nodeName": pool}
    whole = {"driver": driver, "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1}}
    name = {"name": f"{driver}-{pool}"}
    return convert(
        {"metadata": name, "spec": {**whole, **where, "devices": list(devices), **spec}},
        ResourceSlice,
    )


def class_of(name: str, expression: str = "") -> DeviceClass:
    text = expression or f"device.driver == '{name}'"
    spec = {"selectors": [{"cel": {"expression": text}}]}
    return convert({"metadata": {"name": name}, "spec": spec}, DeviceClass)


def request(name: str = "r", klass: str = DRIVER, *selectors: str, **more: Any) -> Json:
    texts = [{"cel": {"expression": one}} for one in selectors]
    return {"name": name, "exactly": {"deviceClassName": klass, "selectors": texts, **more}}


def claim_of(name: str, *requests: Json, constraints: Sequence[Json] = ()) -> ResourceClaim:
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    devices = {"requests": list(requests), "constraints": list(constraints)}
    return convert({"metadata": meta, "spec": {"devices": devices}}, ResourceClaim)


def pod_with(name: str, *claims: str, node: str = "", gpus: int = 0, **meta: Any) -> Pod:
    limits = {"nvidia.com/gpu": gpus} if gpus else {}
    spec: Json = {
        "schedulerName": "lockstep",
        "nodeName": node,
        "containers": [{"name": "main", "resources": {"limits": limits}}],
        "resourceClaims": [{"name": one, "resourceClaimName": one} for one in claims],
    }
    whole = {"name": name, "namespace": "default", "uid": f"uid-{name}", **meta}
    return convert({"metadata": whole, "spec": spec}, Pod)


def cards(count: int, **attributes: Any) -> list[Json]:
    return [device(f"gpu-{i}", index=i, **attributes) for i in range(count)]


def add_node(cluster: Cluster, name: str, gpus: int, devices: Sequence[Json] = ()) -> None:
    """Add a node with so many cards, and the slice of our driver for them."""
    amounts = {"cpu": "8", "memory": "64Gi", "pods": "64", "nvidia.com/gpu": str(gpus)}
    stated = {"lockstep.dev/devices": "[" + ",".join(f'{{"index":{i}}}' for i in range(gpus)) + "]"}
    meta = {"name": name, "uid": name, "annotations": stated}
    cluster.set_node(convert({"metadata": meta, "status": {"allocatable": amounts}}, Node))
    cluster.device_claims.set_slice(slice_of(DRIVER, name, devices or cards(gpus)))
