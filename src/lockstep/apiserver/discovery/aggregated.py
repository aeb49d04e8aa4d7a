"""Discovery in its aggregated form: everything in one document."""

from __future__ import annotations

from collections.abc import Iterable

from lockstep.api.wire import Json
from lockstep.apiserver.builtin import Kind
from lockstep.apiserver.builtin.subresources import Subresource, subresources_of
from lockstep.apiserver.discovery.groups import by_group


def group_discovery(kinds: Iterable[Kind], *, legacy: bool, version: str = "v2") -> Json:
    """Return the ``APIGroupDiscoveryList`` of ``/api`` (with *legacy*) or of ``/apis``.

    The *version* is that of ``apidiscovery.k8s.io`` that was asked for: v2 or v2beta1.
    """
    items = [
        {
            "metadata": {"name": group} if group else {},
            "versions": [_version(name, served) for name, served in versions.items()],
        }
        for group, versions in by_group(kinds).items()
        if legacy == (group == "")
    ]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": items,
    }


def _version(name: str, kinds: list[Kind]) -> Json:
    return {
        "version": name,
        "resources": [_resource(kind) for kind in kinds],
        "freshness": "Current",
    }


def _resource(kind: Kind) -> Json:
    entry: Json = {
        "resource": kind.plural,
        "responseKind": _response_kind(kind, kind.kind),
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    if kind.subresources:
        entry["subresources"] = [_subresource(kind, n, sub) for n, sub in subresources_of(kind)]
    return entry


def _subresource(kind: Kind, name: str, sub: Subresource) -> Json:
    answers = {"group": sub.group, "version": sub.version, "kind": sub.kind}
    return {
        "subresource": name,
        "responseKind": answers if sub.group else _response_kind(kind, sub.kind or kind.kind),
        "verbs": list(sub.verbs),
    }


def _response_kind(kind: Kind, name: str) -> Json:
    # Built-in resources leave group and version to the document around them; CRDs name them.
    if kind.schema_name:
        return {"group": "", "version": "", "kind": name}
    return {"group": kind.group, "version": kind.version, "kind": name}
