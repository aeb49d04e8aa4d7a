"""Which of Kueue's kinds are served."""

from __future__ import annotations

from typing import Final

from lockstep.compat.foreign_kinds import ForeignKind

GROUP: Final = "kueue.x-k8s.io"
VERSION: Final = "v1beta1"
ALSO: Final = ("v1beta2",)
_PENDING: Final = ("Pending Workloads", "integer", ".status.pendingWorkloads")
_ADMITTED: Final = ("Admitted Workloads", "integer", ".status.admittedWorkloads")

CLUSTER_QUEUE: Final = ForeignKind(
    GROUP,
    VERSION,
    "ClusterQueue",
    "clusterqueues",
    namespaced=False,
    more_versions=ALSO,
    short_names=("cq",),
    columns=(("Cohort", "string", ".spec.cohort"), _PENDING, _ADMITTED),
)
COHORT: Final = ForeignKind(
    GROUP, VERSION, "Cohort", "cohorts", namespaced=False, more_versions=ALSO
)
FLAVOR: Final = ForeignKind(
    GROUP,
    VERSION,
    "ResourceFlavor",
    "resourceflavors",
    namespaced=False,
    more_versions=ALSO,
    short_names=("rf",),
)
LOCAL_QUEUE: Final = ForeignKind(
    GROUP,
    VERSION,
    "LocalQueue",
    "localqueues",
    more_versions=ALSO,
    short_names=("lq",),
    columns=(("ClusterQueue", "string", ".spec.clusterQueue"), _PENDING, _ADMITTED),
)

KINDS: Final[tuple[ForeignKind, ...]] = (CLUSTER_QUEUE, COHORT, FLAVOR, LOCAL_QUEUE)
