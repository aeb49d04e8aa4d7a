"""HorizontalPodAutoscalers between ``autoscaling/v2``, in which they are stored, and ``v1``.

``v1`` knows the use of CPU alone. What else an autoscaler says travels in annotations, under the
names that Kubernetes has for them, so that a client of ``v1`` that writes back what it has read
loses nothing. Their values are JSON in the form of ``v2``.
"""

from __future__ import annotations

import json
from typing import Any, Final

from lockstep.api.wire import Json

_PREFIX: Final = "autoscaling.alpha.kubernetes.io"
# Part of the object, its field there, and the annotation that carries it.
_CARRIED: Final = (
    ("spec", "metrics", f"{_PREFIX}/metrics"),
    ("spec", "behavior", f"{_PREFIX}/behavior"),
    ("status", "currentMetrics", f"{_PREFIX}/current-metrics"),
    ("status", "conditions", f"{_PREFIX}/conditions"),
)
DEFAULT_USE: Final = 80
"""Percent of the CPU that pods ask for at which an autoscaler aims unless told otherwise."""


def to_v1(obj: Json) -> Json:
    """Return an autoscaler of ``v2`` in ``v1``."""
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    target, spec["metrics"] = _without_cpu(spec.get("metrics") or [])
    parts: dict[str, Json] = {"spec": spec, "status": status}
    annotations = _own_annotations(obj)
    for part, field, annotation in _CARRIED:
        if value := parts[part].pop(field, None):
            annotations[annotation] = json.dumps(value, separators=(",", ":"))
            if field == "currentMetrics" and (use := _use_of_cpu(value)) is not None:
                status["currentCPUUtilizationPercentage"] = use
    if target is not None:
        spec["targetCPUUtilizationPercentage"] = target
    # These two are always said in v1.
    status = {"currentReplicas": 0, "desiredReplicas": 0, **status}
    return {**_annotated(obj, annotations), "spec": spec, "status": status}


def to_v2(obj: Json) -> Json:
    """Return an autoscaler of ``v1`` in ``v2``."""
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    target = spec.pop("targetCPUUtilizationPercentage", None)
    status.pop("currentCPUUtilizationPercentage", None)
    parts: dict[str, Json] = {"spec": spec, "status": status}
    annotations = (obj.get("metadata") or {}).get("annotations") or {}
    for part, field, annotation in _CARRIED:
        if value := _read(annotations.get(annotation)):
            parts[part][field] = value
    metrics = [*(spec.get("metrics") or []), *([] if target is None else [_cpu(target)])]
    spec["metrics"] = metrics or [_cpu(DEFAULT_USE)]
    return {**_annotated(obj, _own_annotations(obj)), **parts}


def _cpu(percent: int) -> Json:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _without_cpu(metrics: list[Json]) -> tuple[int | None, list[Json]]:
    """Return the use of CPU that is aimed at, and the other metrics."""
    target, others = None, []
    for metric in metrics:
        resource = metric.get("resource") or {}
        use = (resource.get("target") or {}).get("averageUtilization")
        if metric.get("type") == "Resource" and resource.get("name") == "cpu" and use is not None:
            target = use
        else:
            others.append(metric)
    return target, others


def _use_of_cpu(current: list[Json]) -> int | None:
    for metric in current:
        resource = metric.get("resource") or {}
        if metric.get("type") == "Resource" and resource.get("name") == "cpu":
            use: int | None = (resource.get("current") or {}).get("averageUtilization")
            return use
    return None


def _read(text: str | None) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return None  # another client wrote it; Kubernetes passes over it as well


def _own_annotations(obj: Json) -> dict[str, str]:
    annotations = (obj.get("metadata") or {}).get("annotations") or {}
    carried = {annotation for _, _, annotation in _CARRIED}
    return {name: value for name, value in annotations.items() if name not in carried}


def _annotated(obj: Json, annotations: dict[str, str]) -> Json:
    metadata = {k: v for k, v in (obj.get("metadata") or {}).items() if k != "annotations"}
    if annotations:
        metadata["annotations"] = annotations
    return {**obj, "metadata": metadata}
