"""What is there from the first start on."""

from __future__ import annotations

import asyncio
from typing import Any

from lockstep.apiserver.auth import bootstrap as roles
from lockstep.apiserver.auth.rbac import GROUP
from lockstep.apiserver.objects import Objects, WriteOptions
from lockstep.apiserver.store import Key

Json = dict[str, Any]

NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")

_OPTIONS = WriteOptions(manager="lockstep-apiserver", validation="Ignore")


async def create_missing(objects: Objects) -> None:
    """Create the namespaces, roles and bindings that every cluster has, where they are missing.

    A role that is there gets the rules that it lacks, and keeps those that it has: somebody may
    have added some on purpose.
    """
    wanted: list[tuple[str, str, Json]] = [
        ("", "namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for name in NAMESPACES
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


def _with(role: Json, rules: list[Json]) -> Json:
    return {**role, "rules": [*(role.get("rules") or ()), *rules]}
