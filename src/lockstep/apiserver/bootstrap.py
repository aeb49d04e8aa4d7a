"""What is there from the first start on."""

from __future__ import annotations

import asyncio
from functools import partial

from lockstep.api.wire import Json
from lockstep.apiserver.addresses import API_SERVER
from lockstep.apiserver.auth import bootstrap as roles
from lockstep.apiserver.auth.rbac import GROUP
from lockstep.apiserver.builtin.rules.others import SYSTEM_PRIORITIES
from lockstep.apiserver.objects import Objects, WriteOptions
from lockstep.apiserver.store import Key

NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")

CRITICAL = {
    "system-cluster-critical": (
        "must run in the cluster, but can be moved to another node if necessary."
    ),
    "system-node-critical": "must not be moved from their current node.",
}
"""Priorities of what a cluster cannot do without."""

_OPTIONS = WriteOptions(manager="kube-apiserver", validation="Ignore")


async def create_missing(objects: Objects) -> None:
    """Create the namespaces, roles and bindings that every cluster has, where they are missing.

    A role that is there gets the rules that it lacks, and keeps those that it has: an administrator
    may have added some on purpose.
    """
    wanted: list[tuple[str, str, Json]] = [
        ("", "namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for name in NAMESPACES
    ]
    wanted += [
        ("scheduling.k8s.io", "priorityclasses", _priority(*one)) for one in CRITICAL.items()
    ]
    wanted += [(GROUP, plural, obj) for plural, obj in roles.objects()]
    await asyncio.gather(*(_create(objects, *each) for each in wanted))


async def _create(objects: Objects, group: str, plural: str, obj: Json) -> None:
    served = objects.catalog.find(group, "v1", plural)
    if served is None:
        return
    name, namespace = obj["metadata"]["name"], obj["metadata"].get("namespace", "")
    found = objects.store.newest(Key(served.storage, namespace, name))
    if found is None:
        await objects.create(served, namespace, obj, _OPTIONS)
    elif plural == "clusterroles" and "aggregationRule" not in obj:
        lacking = roles.lacking_rules(found.object(), obj)
        if lacking:
            await objects.change(served, "", name, lambda role: _with(role, lacking), _OPTIONS)


async def publish(objects: Objects, host: str, port: int) -> None:
    """Let the service ``kubernetes`` lead to the server itself, at *host* and *port*."""
    for group, plural, obj in _own_service(host, port):
        served = objects.catalog.find(group, "v1", plural)
        if served is None:
            continue
        if objects.store.newest(Key(served.storage, "default", "kubernetes")) is None:
            await objects.create(served, "default", obj, _OPTIONS)
        else:
            renew = partial(_renewed, wanted=obj)
            await objects.change(served, "default", "kubernetes", renew, _OPTIONS)


def _renewed(obj: Json, *, wanted: Json) -> Json:
    return {**obj, **wanted, "metadata": obj["metadata"]}


def _own_service(host: str, port: int) -> list[tuple[str, str, Json]]:
    listed = {"name": "https", "port": port, "protocol": "TCP"}
    service = {
        **_object("v1", "Service", {"component": "apiserver", "provider": "kubernetes"}),
        "spec": {
            "clusterIP": API_SERVER,
            "ports": [{"name": "https", "port": 443, "targetPort": port}],
        },
    }
    endpoints = {
        **_object("v1", "Endpoints", {"endpointslice.kubernetes.io/skip-mirror": "true"}),
        "subsets": [{"addresses": [{"ip": host}], "ports": [listed]}],
    }
    slice_ = {
        **_object(
            "discovery.k8s.io/v1", "EndpointSlice", {"kubernetes.io/service-name": "kubernetes"}
        ),
        "addressType": "IPv6" if ":" in host else "IPv4",
        "endpoints": [{"addresses": [host], "conditions": {"ready": True}}],
        "ports": [listed],
    }
    return [
        ("", "services", service),
        ("", "endpoints", endpoints),
        ("discovery.k8s.io", "endpointslices", slice_),
    ]


def _object(version: str, kind: str, labels: dict[str, str]) -> Json:
    meta = {"name": "kubernetes", "namespace": "default", "labels": labels}
    return {"apiVersion": version, "kind": kind, "metadata": meta}


def _priority(name: str, what: str) -> Json:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": SYSTEM_PRIORITIES[name],
        "description": f"Used for system critical pods that {what}",
    }


def _with(role: Json, rules: list[Json]) -> Json:
    return {**role, "rules": [*(role.get("rules") or ()), *rules]}
