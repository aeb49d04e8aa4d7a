"""Which of Kueue's kinds are served."""

from __future__ import annotations

from typing import Final

from lockstep.compat.foreign_kinds import ForeignKind, family

GROUP: Final = "kueue.x-k8s.io"
VERSION: Final = "v1beta1"
_kind = family(GROUP, VERSION)
ALSO: Final = ("v1beta2",)
_PENDING: Final = ("Pending Workloads", "integer", ".status.pendingWorkloads")
_ADMITTED: Final = ("Admitted Workloads", "integer", ".status.admittedWorkloads")

CLUSTER_QUEUE: Final = _kind(
    "ClusterQueue",
    "clusterqueues",
    namespaced=False,
    more_versions=ALSO,
    short_names=("cq",),
    columns=(("Cohort", "string", ".spec.cohort"), _PENDING, _ADMITTED),
)
COHORT: Final = _kind("Cohort", "cohorts", namespaced=False, more_versions=ALSO)
FLAVOR: Final = _kind(
    "ResourceFlavor", "resourceflavors", namespaced=False, more_versions=ALSO, short_names=("rf",)
)
LOCAL_QUEUE: Final = _kind(
    "LocalQueue",
    "localqueues",
    more_versions=ALSO,
    short_names=("lq",),
    columns=(("ClusterQueue", "string", ".spec.clusterQueue"), _PENDING, _ADMITTED),
)

WORKLOAD: Final = _kind(
    "Workload",
    "workloads",
    more_versions=ALSO,
    short_names=("wl", "kwl"),
    columns=(
        ("Queue", "string", ".spec.queueName"),
        ("Reserved in", "string", ".status.admission.clusterQueue"),
        ("Admitted", "string", '.status.conditions[?(@.type=="Admitted")].status'),
        ("Finished", "string", '.status.conditions[?(@.type=="Finished")].status'),
    ),
)
"""Written by Lockstep, for each job that names a queue."""

KINDS: Final[tuple[ForeignKind, ...]] = (CLUSTER_QUEUE, COHORT, FLAVOR, LOCAL_QUEUE, WORKLOAD)
