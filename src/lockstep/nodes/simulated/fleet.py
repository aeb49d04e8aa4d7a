"""The nodes of a specification as objects: names, places in the network, devices. Pure."""

from __future__ import annotations

import ipaddress
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import msgspec

from lockstep.api import names, timestamp
from lockstep.api.core import Node, Taint
from lockstep.api.devices import Device, NumaNode
from lockstep.api.timestamp import show
from lockstep.nodes.simulated.spec import MIB, NodeGroup

PODS_PER_NODE = 110
VERSION = "v1.37.0-lockstep"
NOT_READY_TAINT = "node.kubernetes.io/not-ready"
_NAMESPACE = uuid.UUID("6f1a1c53-2f0f-4c6b-9d5e-6c6f636b7374")
_FIRST_ADDRESS = int(ipaddress.IPv4Address("10.0.0.1"))
NIC_SPEED = 400
"""Gb/s."""


@dataclass(frozen=True, slots=True)
class SimulatedNode:
    """One node and its place."""

    name: str
    group: NodeGroup
    spine: str
    leaf: str
    address: str


def fleet(groups: Sequence[NodeGroup]) -> dict[str, SimulatedNode]:
    """Return the nodes of *groups* by name; no two groups share a leaf or a spine."""
    nodes = {}
    number = spines = 0
    for group in groups:
        for place in range(group.nodes):
            leaf, position = divmod(place, group.nodes_per_leaf)
            spine, leaf = divmod(leaf, group.leaves_per_spine)
            name = f"{group.name_prefix}-{spine}-{leaf}-{position}"
            nodes[name] = SimulatedNode(
                name=name,
                group=group,
                spine=f"spine-{spines + spine}",
                leaf=f"leaf-{spines + spine}-{leaf}",
                address=address(number),
            )
            number += 1
        spines += -(-group.nodes // (group.nodes_per_leaf * group.leaves_per_spine))
    return nodes


def address(number: int) -> str:
    """Return the address of the *number*-th node, from 0."""
    return str(ipaddress.IPv4Address(_FIRST_ADDRESS + number))


def arrives_in(node: Node, now: float) -> float:
    """Return the seconds until a node that was made for a pool is to be ready."""
    at = timestamp.read(node.metadata.annotations.get(names.ARRIVES_ANNOTATION))
    return 0.0 if at is None else max(0.0, at - now)


def node_object(node: SimulatedNode, now: float) -> dict[str, Any]:
    """Return the Node object to create for *node*."""
    return {
        "metadata": {"name": node.name, "labels": labels(node), "annotations": inventory(node)},
        "spec": {
            "providerID": f"simulated://{node.name}",
            "taints": [{"key": names.SIMULATED_TAINT, "effect": "NoSchedule"}],
        },
        "status": status(node, now),
    }


def taints(node: Node) -> list[Taint]:
    """Return the taints that a node in the server should have.

    What people put there stays. The taint that admission puts on new nodes goes, where there may
    be no controller to remove it, and the one that keeps real work off is there.
    """
    ours = Taint(key=names.SIMULATED_TAINT, effect="NoSchedule")
    if ours in node.spec.taints:
        return [taint for taint in node.spec.taints if taint.key != NOT_READY_TAINT]
    others = (NOT_READY_TAINT, names.SIMULATED_TAINT)
    return [*(taint for taint in node.spec.taints if taint.key not in others), ours]


def labels(node: SimulatedNode) -> dict[str, str]:
    """Return the labels of *node*."""
    found = {
        names.HOSTNAME_LABEL: node.name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        names.NODE_KIND_LABEL: "simulated",
        names.SPINE_LABEL: node.spine,
        names.LEAF_LABEL: node.leaf,
    }
    if node.group.gpus:
        found[names.GPU_MODEL_LABEL] = node.group.gpu_model
        found["nvidia.com/gpu.count"] = str(node.group.gpus)
        found["nvidia.com/gpu.memory"] = str(node.group.gpu_memory)
    return found


def inventory(node: SimulatedNode) -> dict[str, str]:
    """Return the annotations that state the devices and NUMA nodes of *node*."""
    return {
        names.DEVICES_ANNOTATION: msgspec.json.encode(list(_devices(node))).decode(),
        names.NUMA_NODES_ANNOTATION: _numa_nodes(node.group),
    }


@lru_cache(maxsize=64)
def _numa_nodes(group: NodeGroup) -> str:
    cpus, memory = 1000 * group.cpus // group.numa, group.memory // MIB // group.numa
    return msgspec.json.encode(
        [NumaNode(index=i, cpus=f"{cpus}m", memory=f"{memory}Mi") for i in range(group.numa)]
    ).decode()


def _devices(node: SimulatedNode) -> Iterator[Device]:
    group = node.group
    for index in range(group.gpus):
        yield _device(node, "gpu", index, group.gpus)
    for index in range(group.nics):
        yield _device(node, "nic", index, group.nics)


def _device(node: SimulatedNode, kind: Literal["gpu", "nic"], index: int, count: int) -> Device:
    group = node.group
    roots = max(1, -(-max(group.gpus, group.nics) // group.gpus_per_root))
    gpu = kind == "gpu"
    return Device(
        index=index,
        kind=kind,
        model=group.gpu_model if gpu else "ConnectX-7",
        memory=group.gpu_memory if gpu else 0,
        nvlink=(index // group.nvlink if group.nvlink else index) if gpu else 0,
        numa=index * group.numa // count,
        pcie=index * roots // count,
        rail=0 if gpu else index,
        speed=0 if gpu else NIC_SPEED,
        name="" if gpu else f"mlx5_{index}",
        uuid=f"{kind.upper()}-{uuid.uuid5(_NAMESPACE, f'{node.name}/{kind}/{index}')}",
    )


def status(node: SimulatedNode, now: float) -> dict[str, Any]:
    """Return the status of *node* when it is well."""
    offered = amounts(node.group)
    return {
        "capacity": offered,
        "allocatable": offered,
        "conditions": conditions(ready=True, why="the simulated node is ready", now=now, since=now),
        "addresses": [
            {"type": "InternalIP", "address": node.address},
            {"type": "Hostname", "address": node.name},
        ],
        "nodeInfo": _node_info(node.name),
    }


@lru_cache(maxsize=64)
def amounts(group: NodeGroup) -> dict[str, str]:
    """Return what a node of a group offers."""
    found = {
        names.CPU: str(group.cpus),
        names.MEMORY: f"{group.memory // MIB}Mi",
        names.PODS: str(PODS_PER_NODE),
        "ephemeral-storage": "1Ti",
    }
    if group.gpus:
        found[names.GPU] = str(group.gpus)
    if group.nics:
        found[names.NICS] = str(group.nics)
    return found


def conditions(*, ready: bool, why: str, now: float, since: float) -> list[dict[str, str]]:
    """Return a node's conditions; a node that is not *ready* is dead, so nothing is known."""
    times = {"lastHeartbeatTime": show(now), "lastTransitionTime": show(since)}
    found = [
        {
            "type": "Ready",
            "status": "True" if ready else "Unknown",
            "reason": "NodeReady" if ready else "NodeStatusUnknown",
            "message": why,
            **times,
        }
    ]
    for pressure in ("MemoryPressure", "DiskPressure", "PIDPressure"):
        found.append(
            {
                "type": pressure,
                "status": "False" if ready else "Unknown",
                "reason": "Simulated" if ready else "NodeStatusUnknown",
                "message": "simulated nodes are under no pressure" if ready else why,
                **times,
            }
        )
    return found


def _node_info(name: str) -> dict[str, str]:
    machine = uuid.uuid5(_NAMESPACE, name).hex
    return {
        "machineID": machine,
        "systemUUID": machine,
        "bootID": machine,
        "kernelVersion": "simulated",
        "osImage": "Lockstep simulated node",
        "containerRuntimeVersion": "simulated://1",
        "kubeletVersion": VERSION,
        "kubeProxyVersion": VERSION,
        "operatingSystem": "linux",
        "architecture": "amd64",
    }
