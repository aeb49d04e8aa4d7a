"""Roles and bindings as tables of tests write them."""

from typing import Any

from hypothesis import strategies as st

from lockstep.apiserver.auth.identity import (
    authenticated,
)
from lockstep.apiserver.auth.rbac import Rbac
from lockstep.apiserver.auth.rules import Rule

Json = dict[str, Any]
JANE = authenticated("jane", ["dev"])


def role(name: str, *rules: Json, namespace: str = "", **more: Any) -> Json:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    metadata.update(more.pop("metadata", {}))
    kind = "Role" if namespace else "ClusterRole"
    return {"kind": kind, "metadata": metadata, "rules": list(rules), **more}


def binding(name: str, to: str, *subjects: str, namespace: str = "", kind: str = "") -> Json:
    listed = []
    for subject in subjects:
        subject_kind, _, subject_name = subject.partition(":")
        listed.append({"kind": subject_kind, "name": subject_name, "namespace": "ci"})
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    reference = {"kind": kind or "ClusterRole", "name": to}
    return {"metadata": metadata, "roleRef": reference, "subjects": listed}


def rbac_with(*objects: Json) -> Rbac:
    rbac = Rbac()
    for obj in objects:
        is_binding = "roleRef" in obj
        scope = "" if obj["metadata"].get("namespace") else "cluster"
        rbac.put(f"{scope}{'rolebindings' if is_binding else 'roles'}", obj)
    return rbac


def granting(rule: Json, namespace: str = "") -> Rbac:
    return rbac_with(role("r", rule), binding("b", "r", "User:jane", namespace=namespace))


def pods(*verbs: str, **more: Any) -> Json:
    return {"apiGroups": [""], "resources": ["pods"], "verbs": list(verbs), **more}


names = st.sampled_from(["a", "b", "*"])
some = st.frozensets(names, min_size=1, max_size=2)
rules = st.builds(Rule, some, some, some, st.frozensets(st.sampled_from(["x", "y"]), max_size=2))
