"""Discovery in its first form: one document for the groups, and one for each version."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable

from lockstep.api.wire import Json
from lockstep.apiserver.builtin import Kind
from lockstep.apiserver.builtin.subresources import Subresource, subresources_of
from lockstep.apiserver.discovery.groups import by_group


def api_versions(address: str) -> Json:
    """Return the answer to ``/api``; clients reach the server at *address*, as ``host:port``."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def api_group_list(kinds: Iterable[Kind]) -> Json:
    """Return the answer to ``/apis``."""
    groups = [_group(group, list(versions)) for group, versions in by_group(kinds).items() if group]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def api_group(kinds: Iterable[Kind], group: str) -> Json | None:
    """Return the answer to ``/apis/GROUP``, or nothing where no such group is served."""
    versions = by_group(kinds).get(group)
    if not versions:
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(group, list(versions))}


def api_resource_list(kinds: Iterable[Kind], group: str, version: str) -> Json | None:
    """Return the answer to ``/apis/GROUP/VERSION``, or nothing where that is not served."""
    served = by_group(kinds).get(group, {}).get(version)
    if not served:
        return None
    resources = [entry for kind in served for entry in _entries(kind)]
    answer: Json = {"kind": "APIResourceList"}
    # The core group's answer is older than the habit of naming the version.
    if group:
        answer["apiVersion"] = "v1"
    return {**answer, "groupVersion": served[0].api_version, "resources": resources}


def _group(group: str, versions: list[str]) -> Json:
    listed = [{"groupVersion": f"{group}/{v}", "version": v} for v in versions]
    return {"name": group, "versions": listed, "preferredVersion": listed[0]}


def _entries(kind: Kind) -> list[Json]:
    entry: Json = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    if "list" in kind.verbs:
        entry["storageVersionHash"] = _storage_version_hash(kind)
    return [entry, *(_sub_entry(kind, name, sub) for name, sub in subresources_of(kind))]


def _sub_entry(kind: Kind, name: str, sub: Subresource) -> Json:
    entry: Json = {
        "name": f"{kind.plural}/{name}",
        "singularName": "",
        "namespaced": kind.namespaced,
        "kind": sub.kind or kind.kind,
        "verbs": list(sub.verbs),
    }
    if sub.group:
        entry |= {"group": sub.group, "version": sub.version}
    return entry


# Of these Kubernetes stores another version than the newest.
_STORED = {
    ("autoscaling", "HorizontalPodAutoscaler"): "v2",
    ("apiextensions.k8s.io", "CustomResourceDefinition"): "v1beta1",
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): "v1beta1",
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"): "v1beta1",
}


def _storage_version_hash(kind: Kind) -> str:
    # Events are stored in the core group's form, whichever group they are asked from.
    group = kind.storage[0] if kind.storage[1] else kind.group
    version = _STORED.get((group, kind.kind), kind.version)
    digest = hashlib.sha256(f"{group}/{version}/{kind.kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()
