"""Installs Lockstep on an existing cluster, node by node as each is, and takes it off again."""

from __future__ import annotations

from importlib.resources import files
from typing import Any, Final

from lockstep.api.core import NODES
from lockstep.api.names import SYSTEM_NAMESPACE
from lockstep.api.permissions import METRICS, PERMISSIONS
from lockstep.cli.connect import Session
from lockstep.cli.sending import find_resource
from lockstep.devices.core.profiles import AGENT_LABEL, PROFILE_LABEL, RDMA_LABEL, Profile, profile
from lockstep.kube.client import Patch
from lockstep.kube.errors import NotFound

Json = dict[str, Any]
MANAGER: Final = "lockstep-install"
AGENT: Final = "lockstep-agent"
KUBELET: Final = "/var/lib/kubelet"


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


async def install(session: Session, image: str | None) -> dict[str, Profile]:
    """Apply everything, label the nodes, and return what each of them is; safe to repeat."""
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
    return found


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
        if any(name in node.metadata.labels for name in labels):
            await session.client.patch(NODES, node.metadata.name, {"metadata": {"labels": labels}})
            gone.append(f"labels of node/{node.metadata.name}")
    return gone
