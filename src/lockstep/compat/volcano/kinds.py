"""Which of Volcano's kinds are served."""

from __future__ import annotations

from typing import Final

from lockstep.compat.foreign_kinds import ForeignKind
from lockstep.compat.podgroups import VOLCANO as PODGROUP

JOB: Final = ForeignKind(
    "batch.volcano.sh",
    "v1alpha1",
    "Job",
    "jobs",
    short_names=("vcjob", "vj"),
    columns=(
        ("Status", "string", ".status.state.phase"),
        ("minAvailable", "integer", ".status.minAvailable"),
        ("Runnings", "integer", ".status.running"),
        ("Queue", "string", ".spec.queue"),
    ),
)

QUEUE: Final = ForeignKind(
    "scheduling.volcano.sh",
    "v1beta1",
    "Queue",
    "queues",
    namespaced=False,
    short_names=("vq",),
    columns=(("State", "string", ".status.state"), ("Parent", "string", ".spec.parent")),
)

FLOW: Final = ForeignKind(
    "flow.volcano.sh",
    "v1alpha1",
    "JobFlow",
    "jobflows",
    short_names=("jf",),
    columns=(("Status", "string", ".status.state.phase"),),
)
TEMPLATE: Final = ForeignKind(
    "flow.volcano.sh", "v1alpha1", "JobTemplate", "jobtemplates", short_names=("jt",)
)

KINDS: Final[tuple[ForeignKind, ...]] = (JOB, PODGROUP, QUEUE, FLOW, TEMPLATE)
