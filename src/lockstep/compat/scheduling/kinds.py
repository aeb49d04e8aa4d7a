"""Kubernetes' PodGroup and Workload, for servers that have none of their own.

Kubernetes 1.37 serves both as v1beta1, versions before it as alphas. What a Workload says its
PodGroups repeat, so that nothing is made of it.
"""

from __future__ import annotations

from typing import Final

from lockstep.compat.foreign_kinds import ForeignKind

_GROUP: Final = "scheduling.k8s.io"

PODGROUP: Final = ForeignKind(
    _GROUP,
    "v1beta1",
    "PodGroup",
    "podgroups",
    columns=(
        ("MinCount", "integer", ".spec.schedulingPolicy.gang.minCount"),
        (
            "Scheduled",
            "string",
            '.status.conditions[?(@.type=="PodGroupInitiallyScheduled")].status',
        ),
    ),
    more_versions=("v1alpha3", "v1alpha2"),
)
WORKLOAD: Final = ForeignKind(
    _GROUP, "v1beta1", "Workload", "workloads", more_versions=("v1alpha3", "v1alpha2")
)

KINDS: Final[tuple[ForeignKind, ...]] = (PODGROUP, WORKLOAD)
