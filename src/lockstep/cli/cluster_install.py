"""Installs Lockstep on an existing cluster, node by node as each is, and takes it off again."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

from lockstep.api.core import NODES, Node, Taint
from lockstep.api.names import SYSTEM_NAMESPACE
from lockstep.api.permissions.parts import PERMISSIONS
from lockstep.api.permissions.rules import METRICS
from lockstep.api.wire import to_builtins
from lockstep.cli.connect import Session
from lockstep.cli.sending import find_resource
from lockstep.devices.core.profiles import (
    AGENT_LABEL,
    PROFILE_LABEL,
    RDMA_LABEL,
    TAINTED,
    TAINTS,
    Profile,
    profile,
)
from lockstep.kube.client import Patch
from lockstep.kube.errors import NotFound

Json = dict[str, Any]
MANAGER: Final = "lockstep-install"
AGENT: Final = "lockstep-agent"
KUBELET: Final = "/var/lib/kubelet"
FEWEST: Final = 2
SECONDS: Final = 0.2
PEERS: Final = 4
PATIENCE: Final = 30.0
"""Seconds for an agent that was just installed to answer."""


def everything(image: str | None) -> list[Json]:
    """Return all objects in the order in which they are applied, the agent's last."""
    import yaml

    from lockstep import __version__

    own = image or f"lockstep:{__version__}"
    text = (files("lockstep.cli") / "cluster.yaml").read_text()
    text = text.replace(f"image: lockstep:{__version__}\n", f"image: {own}\n")
    objects = [one for one in yaml.safe_load_all(text) if one]
    return [*objects, *agent(own)]


def agent(image: str) -> list[Json]:
    """Return the node agent's account, rights and DaemonSet."""
    rights = PERMISSIONS["agent"]
    meta = {"name": AGENT, "labels": {"app.kubernetes.io/part-of": "lockstep"}}
    subject = {"kind": "ServiceAccount", "name": AGENT, "namespace": SYSTEM_NAMESPACE}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": AGENT}
    rbac = "rbac.authorization.k8s.io/v1"
    return [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {**meta, "namespace": SYSTEM_NAMESPACE},
        },
        {
            "apiVersion": rbac,
            "kind": "ClusterRole",
            "metadata": meta,
            "rules": [*rights.cluster, *METRICS],
        },
        {
            "apiVersion": rbac,
            "kind": "ClusterRoleBinding",
            "metadata": meta,
            "roleRef": role,
            "subjects": [subject],
        },
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {**meta, "namespace": SYSTEM_NAMESPACE},
            "spec": _daemons(image),
        },
    ]


def _daemons(image: str) -> Json:
    """Return the agent's DaemonSet: only where there is something for it to do."""
    chosen = {"app.kubernetes.io/name": AGENT}
    name = {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    container = {
        "name": "agent",
        "image": image,
        "args": ["agent", "--node", "$(NODE)", "--kubelet", KUBELET],
        "env": [name],
        # It opens the cards' device files and changes addresses of the node's NICs.
        "securityContext": {"privileged": True},
        "volumeMounts": [{"name": "kubelet", "mountPath": KUBELET}],
        "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}},
    }
    pod = {
        "serviceAccountName": AGENT,
        "hostNetwork": True,
        "nodeSelector": {AGENT_LABEL: "true"},
        "tolerations": [{"operator": "Exists"}],
        "priorityClassName": "system-node-critical",
        "containers": [container],
        "volumes": [{"name": "kubelet", "hostPath": {"path": KUBELET}}],
    }
    template = {"metadata": {"labels": chosen}, "spec": pod}
    return {"selector": {"matchLabels": chosen}, "template": template}


async def install(session: Session, image: str | None, taint: bool = False) -> dict[str, Profile]:
    """Apply everything, label the nodes, and return what each of them is; safe to repeat.

    With *taint* nodes with cards are kept for pods that ask for these.
    """
    for obj in everything(image):
        res = await find_resource(session, obj["apiVersion"], obj["kind"])
        meta = obj["metadata"]
        await session.client.patch(
            res,
            meta["name"],
            obj,
            meta.get("namespace"),
            how=Patch.APPLY,
            field_manager=MANAGER,
            force=True,
        )
    found = await profiles(session)
    for name, one in found.items():
        body = {"metadata": {"labels": one.labels}}
        await session.client.patch(NODES, name, body)
    if taint:
        for node in (await session.client.list(NODES)).items:
            kind = found[node.metadata.name].kind if node.metadata.name in found else "cpu"
            await _keep_off(session, node, TAINTS.get(kind, ""))
    return found


async def _keep_off(session: Session, node: Node, key: str) -> bool:
    """Give a node our taint of *key*, none where that is empty; return whether it had another."""
    others = [one for one in node.spec.taints if one.value != TAINTED]
    ours = [Taint(key=key, value=TAINTED, effect="NoSchedule")] if key else []
    if any(one.key == key for one in others) or [*others, *ours] == node.spec.taints:
        return False
    body = {
        "metadata": {"resourceVersion": node.metadata.resource_version},
        "spec": {"taints": to_builtins([*others, *ours])},
    }
    await session.client.patch(NODES, node.metadata.name, body)
    return True


async def check(session: Session, found: Mapping[str, Profile]) -> Json | None:
    """Measure the network between the nodes with RDMA; None where there are fewer than two."""
    from lockstep.cli.network_check import Wish, measured

    names = tuple(sorted(name for name, one in found.items() if one.rdma))
    if len(names) < FEWEST:
        return None
    return await measured(session, Wish(names, (), SECONDS, PEERS, PATIENCE))


async def profiles(session: Session) -> dict[str, Profile]:
    """Return what each node of the cluster is."""
    import json

    raw = json.loads(await session.client.get_raw("/api/v1/nodes"))
    return {
        one["metadata"]["name"]: profile(
            one["metadata"].get("labels") or {}, one.get("status", {}).get("capacity") or {}
        )
        for one in raw["items"]
    }


async def remove(session: Session) -> list[str]:
    """Delete what was installed but for the kinds, whose objects are the users'; return what."""
    gone = []
    for obj in reversed(everything(None)):
        if obj["kind"] in ("CustomResourceDefinition", "Namespace"):
            continue
        res = await find_resource(session, obj["apiVersion"], obj["kind"])
        meta = obj["metadata"]
        try:
            await session.client.delete(res, meta["name"], meta.get("namespace"))
        except NotFound:
            continue
        gone.append(f"{obj['kind'].lower()}/{meta['name']}")
    labels = dict.fromkeys((PROFILE_LABEL, RDMA_LABEL, AGENT_LABEL))
    for node in (await session.client.list(NODES)).items:
        if await _keep_off(session, node, ""):
            gone.append(f"taint of node/{node.metadata.name}")
        if any(name in node.metadata.labels for name in labels):
            await session.client.patch(NODES, node.metadata.name, {"metadata": {"labels": labels}})
            gone.append(f"labels of node/{node.metadata.name}")
    return gone
