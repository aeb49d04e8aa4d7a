"""Which of the Trainer's kinds are served."""

from __future__ import annotations

from typing import Final

from lockstep.compat.foreign_kinds import ForeignKind, family

GROUP: Final = "trainer.kubeflow.org"
VERSION: Final = "v1alpha1"
_kind = family(GROUP, VERSION)

JOB: Final = _kind(
    "TrainJob",
    "trainjobs",
    columns=(
        ("State", "string", '.status.conditions[?(@.status=="True")].type'),
        ("Runtime", "string", ".spec.runtimeRef.name"),
    ),
)
CLUSTER_RUNTIME: Final = _kind(
    "ClusterTrainingRuntime", "clustertrainingruntimes", namespaced=False
)
RUNTIME: Final = _kind("TrainingRuntime", "trainingruntimes")

KINDS: Final[tuple[ForeignKind, ...]] = (JOB, CLUSTER_RUNTIME, RUNTIME)
