"""Which of the Trainer's kinds are served."""

from __future__ import annotations

from typing import Final

from lockstep.compat.foreign_kinds import ForeignKind

GROUP: Final = "trainer.kubeflow.org"
VERSION: Final = "v1alpha1"

JOB: Final = ForeignKind(
    GROUP,
    VERSION,
    "TrainJob",
    "trainjobs",
    columns=(
        ("State", "string", '.status.conditions[?(@.status=="True")].type'),
        ("Runtime", "string", ".spec.runtimeRef.name"),
    ),
)
CLUSTER_RUNTIME: Final = ForeignKind(
    GROUP, VERSION, "ClusterTrainingRuntime", "clustertrainingruntimes", namespaced=False
)
RUNTIME: Final = ForeignKind(GROUP, VERSION, "TrainingRuntime", "trainingruntimes")

KINDS: Final[tuple[ForeignKind, ...]] = (JOB, CLUSTER_RUNTIME, RUNTIME)
