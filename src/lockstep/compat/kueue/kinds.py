"""Which of Kueue's kinds are served."""

from __future__ import annotations

from typing import Final

from lockstep.api.core import AnyObject
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
ADMISSION_CHECK: Final = _kind(
    "AdmissionCheck", "admissionchecks", namespaced=False, more_versions=ALSO
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


class PriorityClass(AnyObject, frozen=True):
    """What a WorkloadPriorityClass says."""

    value: int = 0


TOPOLOGY: Final = _kind("Topology", "topologies", namespaced=False, more_versions=ALSO)
PRIORITY: Final = _kind(
    "WorkloadPriorityClass",
    "workloadpriorityclasses",
    namespaced=False,
    more_versions=ALSO,
    columns=(("Value", "integer", ".value"),),
    properties={
        "value": {"type": "integer", "format": "int32"},
        "description": {"type": "string"},
    },
    view=PriorityClass,
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

KINDS: Final[tuple[ForeignKind, ...]] = (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    COHORT,
    FLAVOR,
    LOCAL_QUEUE,
    PRIORITY,
    TOPOLOGY,
    WORKLOAD,
)
