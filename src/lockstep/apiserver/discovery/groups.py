"""The order in which groups and versions are shown, which is the order in which clients look."""

from __future__ import annotations

import re
from collections.abc import Iterable

from lockstep.api.names import GROUP
from lockstep.apiserver.builtin import Kind

# Clients take the first group that has a resource of a name, so the order is part of the API.
_ORDER = (
    "",
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
    # Kinds of other operators have names of ours: `kubectl get trainingjob` means ours.
    GROUP,
)
_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_STABILITY = {"alpha": 0, "beta": 1, None: 2}


def by_group(kinds: Iterable[Kind]) -> dict[str, dict[str, list[Kind]]]:
    """Return *kinds* by group and version, all in the order in which they are shown."""
    groups: dict[str, dict[str, list[Kind]]] = {}
    for kind in sorted(kinds, key=lambda k: k.plural):
        groups.setdefault(kind.group, {}).setdefault(kind.version, []).append(kind)
    return {
        group: dict(sorted(groups[group].items(), key=lambda v: _version_key(v[0])))
        for group in sorted(groups, key=_group_key)
    }


def _group_key(group: str) -> tuple[int, str]:
    return (_ORDER.index(group) if group in _ORDER else len(_ORDER), group)


def _version_key(version: str) -> tuple[int, int, int, int, str]:
    """Order stable before beta before alpha before others, and newer before older."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (1, 0, 0, 0, version)
    major, stability, minor = match.groups()
    return (0, -_STABILITY[stability], -int(major), -int(minor or 0), version)
