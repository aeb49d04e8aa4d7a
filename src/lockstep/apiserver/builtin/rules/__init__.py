"""Validation of the built-in kinds: what Kubernetes checks beyond the types of fields.

The wording is that of Kubernetes v1.36. What is checked is what users run into; fields of parts
that nothing here acts upon (Windows, cloud volumes, security contexts) pass as they are.
"""

from __future__ import annotations

from lockstep.api.wire import Json
from lockstep.apiserver.builtin.rules import crds, others, pods, services, statuses, workloads
from lockstep.apiserver.builtin.rules.metadata import validate_metadata
from lockstep.apiserver.builtin.rules.names import (
    Check,
    dns_label,
    dns_subdomain,
    path_segment,
)
from lockstep.apiserver.schema.causes import Cause, invalid

__all__ = ["validate", "validate_metadata"]


_RULES = {
    "Pod": pods.pod,
    **workloads.RULES,
    **services.RULES,
    **others.RULES,
    **crds.RULES,
    **statuses.RULES,
}
# Kinds whose names are not subdomains.
_NAMES: dict[str, Check] = {
    "Namespace": dns_label,
    "Service": dns_label,
    "StatefulSet": dns_label,
    "Role": path_segment,
    "ClusterRole": path_segment,
    "RoleBinding": path_segment,
    "ClusterRoleBinding": path_segment,
    "APIService": path_segment,
}


_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")


def validate(kind: str, namespaced: bool, new: Json, old: Json | None) -> list[Cause]:
    """Return what is wrong with *new*, an object of *kind*, which replaces *old* where given."""
    causes = [
        *validate_metadata(
            new.get("metadata") or {},
            None if old is None else old.get("metadata") or {},
            namespaced=namespaced,
            name=_NAMES.get(kind, dns_subdomain),
        )
    ]
    for position, name in enumerate((new.get("metadata") or {}).get("finalizers") or ()):
        if "/" not in name and name not in _FINALIZERS and name not in _known(old):
            text = "name is neither a standard finalizer name nor is it fully qualified"
            causes.append(invalid(f"metadata.finalizers[{position}]", name, text))
    rules = _RULES.get(kind)
    if old is not None:
        # Kubernetes looks at the metadata of an update twice, and says so twice.
        causes = causes * 2
    return [*causes, *rules(new, old)] if rules else causes


def _known(old: Json | None) -> list[str]:
    return ((old or {}).get("metadata") or {}).get("finalizers") or []
