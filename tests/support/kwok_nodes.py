"""Nodes for kwok, which lets pods on them run."""

from __future__ import annotations

from typing import Any

from tests.support.apiserver import ApiServer
from tests.support.waiting import eventually_sync


def add_kwok_nodes(server: ApiServer, count: int) -> list[str]:
    """Create nodes and return their names once they are ready."""
    names = [f"kwok-{i}" for i in range(count)]
    for name in names:
        made = server.request("POST", "/api/v1/nodes", _node(name))
        assert made.status == 201, made.body
    for name in names:
        eventually_sync(lambda name=name: _is_ready(server, name), what=f"{name} is ready")
    return names


def _node(name: str) -> dict[str, Any]:
    offer = {"cpu": "32", "memory": "256Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": offer, "allocatable": offer},
    }


def _is_ready(server: ApiServer, name: str) -> bool:
    node = server.request("GET", f"/api/v1/nodes/{name}").json
    conditions = {c["type"]: c["status"] for c in node["status"].get("conditions", ())}
    return conditions.get("Ready") == "True" and not node["spec"].get("taints")
