"""Clusters drawn in a few lines of text, pods and gangs in one, for tables of placement cases.

A line is a leaf: ``spine/leaf: node node ...``; ``-`` stands for a label that is missing. A node is
``name:GPUS``, with ``-N`` for GPUs in use, ``!key`` for a NoSchedule taint, ``%key`` for a
PreferNoSchedule one, ``~`` for cordoned and ``?`` for not ready. A gang is
``name: 4x8 leaf`` (pods x GPUs, required tier), ``4x8 ~leaf`` (preferred), groups joined by ``+``
(``head=1xcpu4 + worker=4x8``), an elastic range as ``2..4x8``, the last of
them spares as ``2..4x8^1``.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from lockstep.api.core import Node, Pod
from lockstep.api.gang import Gang
from lockstep.api.names import HELD_ANNOTATION
from lockstep.api.queue import Queue
from lockstep.api.wire import convert
from lockstep.scheduler.core.state.cluster import Cluster

NODE = re.compile(
    r"(?P<name>[\w-]+):(?P<gpus>\d+)(-(?P<used>\d+))?(!(?P<taint>[\w./-]+))?(%(?P<soft>[\w-]+))?"
    r"(?P<cordoned>~)?(?P<unready>\?)?"
)
GROUP = re.compile(
    r"((?P<name>[\w-]+)=)?(?P<min>\d+)(\.\.(?P<desired>\d+))?x(cpu(?P<cpu>\d+)|(?P<gpus>\d+))"
    r"(\^(?P<spares>\d+))?(@(?P<tier>~?\w+))?"
)


def node(name: str, *, gpus: int = 8, cpu: int = 96, pods: int = 110, **more: Any) -> Node:
    """Build a node; *more* may hold labels, taints, soft ones, cordoned, ready and the like."""
    labels = {"kubernetes.io/hostname": name, **more.get("labels", {})}
    taints = [{"key": key, "effect": "NoSchedule"} for key in more.get("taints", ())]
    taints += [{"key": key, "effect": "PreferNoSchedule"} for key in more.get("soft", ())]
    capacity: dict[str, Any] = {"cpu": cpu, "memory": "1Ti", "pods": pods}
    if gpus:
        capacity["nvidia.com/gpu"] = gpus
    capacity |= more.get("extended", {})
    annotations = {}
    if "devices" in more:
        annotations["lockstep.dev/devices"] = json.dumps(more["devices"])
    if "numa_nodes" in more:
        annotations["lockstep.dev/numa-nodes"] = json.dumps(more["numa_nodes"])
    return convert(
        {
            "metadata": {"name": name, "labels": labels, "annotations": annotations},
            "spec": {"unschedulable": bool(more.get("cordoned")), "taints": taints},
            "status": {
                "allocatable": capacity,
                "conditions": [{"type": "Ready", "status": str(bool(more.get("ready", True)))}],
            },
        },
        Node,
    )


def pod(
    name: str,
    *,
    gpus: int = 0,
    cpu: str | int = 0,
    on: str = "",
    held: str = "",
    gang: str = "",
    group: str = "",
    **more: Any,
) -> Pod:
    """Build a pod; *more* may hold spec fields, phase, priority, created and gates."""
    requests = {"nvidia.com/gpu": gpus, "cpu": cpu, **more.pop("requests", {})}
    labels = dict(more.pop("labels", {}))
    labels |= {"lockstep.dev/gang": gang} if gang else {}
    labels |= {"lockstep.dev/gang-group": group} if group else {}
    resources = {"requests": {k: v for k, v in requests.items() if v}}
    container = {"name": "main", "resources": resources, "ports": more.pop("ports", [])}
    meta = {
        "name": name,
        "namespace": "default",
        "uid": more.pop("uid", f"uid-{name}"),
        "labels": labels,
        "annotations": ({"lockstep.dev/gpus": held} if held else {}) | more.pop("annotations", {}),
        "creationTimestamp": more.pop("created", "2026-01-01T00:00:00Z"),
        "deletionTimestamp": "2026-01-01T01:00:00Z" if more.pop("terminating", False) else None,
    }
    status = {"phase": more.pop("phase", "Pending")}
    spec = {
        "schedulerName": more.pop("scheduler", "lockstep"),
        "nodeName": on,
        "containers": [container],
        "schedulingGates": [{"name": gate} for gate in more.pop("gates", ())],
        **more,
    }
    return convert({"metadata": meta, "spec": spec, "status": status}, Pod)


def gang(name: str, *, created: str = "2026-01-01T00:00:00Z", held: str = "", **spec: Any) -> Gang:
    """Build a gang from its spec's fields; *held* says why it is not to start."""
    meta: dict[str, Any] = {"name": name, "namespace": "default", "creationTimestamp": created}
    meta["annotations"] = {HELD_ANNOTATION: held} if held else {}
    return convert({"metadata": meta, "spec": spec}, Gang)


def queue(name: str, **spec: Any) -> Queue:
    """Build a queue from its spec's fields."""
    return convert({"metadata": {"name": name}, "spec": spec}, Queue)


@dataclass
class Drawn:
    """A gang as drawn, with its pods."""

    gang: Gang
    pods: list[Pod]


def draw_gang(text: str, *, created: str = "2026-01-01T00:00:00Z", **more: Any) -> Drawn:
    """Read a gang and its pods from one line."""
    name, _, rest = text.partition(":")
    rest, wish = rest.strip(), {}
    head, _, last = rest.rpartition(" ")
    if re.fullmatch(r"~?[a-z]+", last):
        rest, wish = head, _wish(last)
    groups, pods = [], []
    for part in rest.split("+"):
        found = GROUP.fullmatch(part.strip())
        assert found, f"no group: {part!r}"
        group = found["name"] or ""
        desired = int(found["desired"] or found["min"])
        groups.append(
            {"name": group or "all", "min": int(found["min"]), "desired": desired}
            | ({"topology": _wish(found["tier"])} if found["tier"] else {})
            | ({"spares": int(found["spares"])} if found["spares"] else {})
        )
        stem = f"{name}-{group}" if group else name
        pods += [
            pod(
                f"{stem}-{i}",
                gpus=int(found["gpus"] or 0),
                cpu=int(found["cpu"] or 0),
                gang=name,
                group=group or "all",
            )
            for i in range(desired)
        ]
    spec = {"groups": groups, "topology": wish or None, **more}
    return Drawn(gang(name, created=created, **spec), pods)


def _wish(text: str) -> dict[str, str]:
    return {"preferred": text[1:]} if text.startswith("~") else {"required": text}


def draw(cluster: Cluster, text: str) -> Cluster:
    """Add the drawn nodes (and pods for the GPUs in use) to a cluster."""
    for line in text.strip().splitlines():
        where, _, nodes = line.partition(": ")
        pairs = zip(("spine", "leaf"), where.strip().split("/"), strict=True)
        labels = {key: value for key, value in pairs if value != "-"}
        for token in nodes.split():
            found = NODE.fullmatch(token)
            assert found, f"no node: {token!r}"
            cluster.set_node(
                node(
                    found["name"],
                    gpus=int(found["gpus"]),
                    labels=labels,
                    taints=[found["taint"]] if found["taint"] else [],
                    soft=[found["soft"]] if found["soft"] else [],
                    cordoned=found["cordoned"],
                    ready=not found["unready"],
                )
            )
            used = int(found["used"] or 0)
            if used:
                held = ",".join(str(i) for i in range(used))
                cluster.set_pod(
                    pod(f"hold-{found['name']}", gpus=used, on=found["name"], held=held)
                )
    return cluster


def add(cluster: Cluster, drawn: Drawn) -> None:
    """Add a drawn gang and its pods."""
    cluster.set_gang(drawn.gang)
    for one in drawn.pods:
        cluster.set_pod(one)


def places(cluster: Cluster, prefix: str = "") -> dict[str, str]:
    """Return the node of every placed pod whose name has the prefix."""
    return {
        name: member.node
        for (_, name), member in sorted(cluster.pods.items())
        if member.node and name.startswith(prefix)
    }
