"""Spot nodes, which their cloud may take back: by which labels they are told, and how pods choose.

*Example:* a job of 2 to 6 workers with ``spot: AboveMin`` has the group ``worker`` of 2, which keep
off spot nodes, and the group ``worker-spot`` of 4, which stand on nothing else.
"""

from __future__ import annotations

from typing import Final, Literal

from lockstep.api.wire import Json

SpotUse = Literal["Allowed", "AboveMin", "Never"]

SPOT_LABELS: Final = {
    "lockstep.dev/spot": "true",
    "karpenter.sh/capacity-type": "spot",
    "eks.amazonaws.com/capacityType": "SPOT",
    "cloud.google.com/gke-spot": "true",
    "cloud.google.com/gke-preemptible": "true",
    "kubernetes.azure.com/scalesetpriority": "spot",
}
"""By which labels clouds say that a node may be taken back."""

SPOT_SUFFIX: Final = "-spot"
"""Ends the name of the group of those members of a role that stand on spot nodes."""

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def keep(spec: Json, *, on_spot: bool) -> None:
    """Let a pod *spec* have spot nodes alone, or none of them, beside what it says already.

    Terms of a node affinity are alternatives: each is taken together with the demand.
    """
    affinity = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    required = affinity.setdefault(_REQUIRED, {})
    before = required.get("nodeSelectorTerms") or [{}]
    required["nodeSelectorTerms"] = [
        {**term, "matchExpressions": [*(term.get("matchExpressions") or []), *more]}
        for term in before
        for more in (_on() if on_spot else _off())
    ]


def selectable(spec: object) -> bool:
    """Return whether a pod *spec* holds no node affinity, or one with terms as they should be."""
    found: object = spec
    for name in ("affinity", "nodeAffinity", _REQUIRED, "nodeSelectorTerms"):
        if not isinstance(found, dict) or name not in found:
            return isinstance(found, dict)
        found = found[name]
    terms = found if isinstance(found, list) else [None]
    return all(
        isinstance(term, dict) and isinstance(term.get("matchExpressions") or [], list)
        for term in terms
    )


def _on() -> list[list[Json]]:
    return [[_label(key, "In", value)] for key, value in SPOT_LABELS.items()]


def _off() -> list[list[Json]]:
    return [[_label(key, "NotIn", value) for key, value in SPOT_LABELS.items()]]


def _label(key: str, operator: str, value: str) -> Json:
    return {"key": key, "operator": operator, "values": [value]}
