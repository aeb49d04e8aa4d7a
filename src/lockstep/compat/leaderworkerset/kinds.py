"""Which kinds of LeaderWorkerSet are served."""

from __future__ import annotations

from typing import Final

from lockstep.compat.foreign_kinds import ForeignKind

GROUP: Final = "leaderworkerset.x-k8s.io"

KINDS: Final[tuple[ForeignKind, ...]] = (
    ForeignKind(
        GROUP,
        "v1",
        "LeaderWorkerSet",
        "leaderworkersets",
        short_names=("lws",),
        columns=(
            ("Ready", "integer", ".status.readyReplicas"),
            ("Desired", "integer", ".spec.replicas"),
        ),
        scale={
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.hpaPodSelector",
        },
    ),
)

LEADER_WORKER_SETS: Final = KINDS[0].resource
