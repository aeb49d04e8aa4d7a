"""A team of users with one role in a namespace."""

from __future__ import annotations

from typing import Any

from tests.support.apiserver import ApiServer
from tests.support.console import apply, token

from lockstep.api.names import API_VERSION
from lockstep.api.permissions.people import PEOPLE

RBAC = "rbac.authorization.k8s.io"


def job(namespace: str, name: str) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "main", "image": "none", "command": ["true"]}]}}
    return {
        "apiVersion": API_VERSION,
        "kind": "TrainingJob",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"framework": "plain", "roles": [{"name": "worker", "template": template}]},
    }


def team(server: ApiServer, namespace: str, role: str) -> str:
    """Make a namespace with a job and an account that has a role there; return its token."""
    apply(server, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    meta = {"name": "member", "namespace": namespace}
    apply(server, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})
    rules = [*PEOPLE["view"], *(PEOPLE["edit"] if role == "edit" else ())]
    named = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": f"of-{role}"}}
    # Nobody adds these up into `view` and `edit` where kube-controller-manager does not run.
    apply(server, {**named, "rules": rules})
    apply(server, binding(namespace, f"of-{role}"))
    path = f"/apis/{API_VERSION}/namespaces/{namespace}/trainingjobs"
    assert server.request("POST", path, job(namespace, "own")).status in (201, 409)
    return token(server, namespace, "member")


def binding(namespace: str, role: str) -> dict[str, Any]:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "member", "namespace": namespace},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": "member", "namespace": namespace}],
    }
