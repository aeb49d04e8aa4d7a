"""Lockstep on a real API server as the manifest installs it, its parts with their own accounts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from tools.deploy.generate import IN_CHART, MANIFEST

from lockstep.api.permissions.parts import PERMISSIONS
from lockstep.api.permissions.rules import OWN
from lockstep.apiserver.auth.pki import Pki
from lockstep.kube.crds import ensure_crds

if TYPE_CHECKING:
    from tests.support.apiserver import ApiServer

Json = dict[str, Any]

RBAC = "rbac.authorization.k8s.io"
TOKEN_SECONDS = 24 * 3600
_PLURALS = {
    "NetworkPolicy": "networkpolicies",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
}
_CLUSTER_WIDE = {
    "Namespace",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleBinding",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "CSIDriver",
    "MutatingWebhookConfiguration",
}


_OF_PODS = "MutatingWebhookConfiguration"
"""Calls a pod of the installation. No pods run here: every pod with a share would be refused."""


def install(server: ApiServer) -> None:
    """Apply the manifest without its webhook, and the rights of simulated nodes."""
    manifest = [o for o in yaml.safe_load_all(MANIFEST.read_text()) if o["kind"] != _OF_PODS]
    for obj in [*manifest, *account("simulate-nodes")]:
        done = server.request(
            "PATCH",
            f"{path(obj)}?fieldManager=installer&force=true",
            json.dumps(obj).encode(),
            content_type="application/apply-patch+yaml",
        )
        assert done.status in (200, 201), done.body
    asyncio.run(_wait_for_kinds(server))


def write_tokens(server: ApiServer) -> None:
    """Write each part a kubeconfig with a token of its account, and nothing else."""
    for part in IN_CHART:
        accounts = f"/api/v1/namespaces/{PERMISSIONS[part].home}/serviceaccounts"
        spec = {"spec": {"expirationSeconds": TOKEN_SECONDS}}
        made = server.request("POST", f"{accounts}/lockstep-{part}/token", spec)
        assert made.status == 201, made.body
        target = server.data / "kubeconfigs" / f"{part}.kubeconfig"
        write_token(target, server, made.json["status"]["token"])


def write_token(target: Path, server: ApiServer, token: str) -> None:
    """Write a kubeconfig that shows *token*."""
    ca = str(Pki(server.data / "pki").ca)
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server.url, "certificate-authority": ca}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(config))


def account(part: str) -> Iterator[Json]:
    """Yield a part's account and its rights as the chart makes them."""
    name, may = f"lockstep-{part}", PERMISSIONS[part]
    yield _object("v1", "ServiceAccount", name, may.home)
    yield {**_object(f"{RBAC}/v1", "ClusterRole", name), "rules": list(may.cluster)}
    yield _binding("ClusterRole", name, may.home)
    for namespace, rules in may.namespaced.items():
        space = may.home if namespace == OWN else namespace
        yield {**_object(f"{RBAC}/v1", "Role", name, space), "rules": list(rules)}
        yield _binding("Role", name, may.home, space)


def path(obj: Json) -> str:
    """Return the path of an object of the manifest."""
    version, kind = obj["apiVersion"], obj["kind"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    meta = obj["metadata"]
    space = "" if kind in _CLUSTER_WIDE else f"/namespaces/{meta['namespace']}"
    return f"{root}{space}/{_PLURALS.get(kind, kind.lower() + 's')}/{meta['name']}"


async def _wait_for_kinds(server: ApiServer) -> None:
    async with server.client() as client:
        await ensure_crds(client)


def _object(version: str, kind: str, name: str, namespace: str = "") -> Json:
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": version, "kind": kind, "metadata": meta}


def _binding(role: str, name: str, home: str, namespace: str = "") -> Json:
    kind = "RoleBinding" if namespace else "ClusterRoleBinding"
    return {
        **_object(f"{RBAC}/v1", kind, name, namespace),
        "roleRef": {"apiGroup": RBAC, "kind": role, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": home}],
    }
