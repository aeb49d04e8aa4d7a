"""HorizontalPodAutoscalers in their two versions."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.apiserver.autoscaling import to_v1, to_v2

Json = dict[str, Any]
TARGET = {"kind": "Deployment", "name": "web"}
MEMORY = {
    "type": "Resource",
    "resource": {
        "name": "memory",
        "target": {"type": "AverageValue", "averageValue": "1Gi"},
    },
}


def cpu(use: int) -> Json:
    target = {"type": "Utilization", "averageUtilization": use}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def scaler(spec: Json, status: Json | None = None, annotations: Json | None = None) -> Json:
    meta: Json = {"name": "web"}
    if annotations:
        meta["annotations"] = annotations
    whole = {"scaleTargetRef": TARGET, "maxReplicas": 9, **spec}
    seen = {"currentReplicas": 2, "desiredReplicas": 3, **(status or {})}
    return {"kind": "HorizontalPodAutoscaler", "metadata": meta, "spec": whole, "status": seen}


STORED = [
    scaler({"metrics": [cpu(50)]}),
    scaler({"metrics": [MEMORY, cpu(50)]}, annotations={"a": "b"}),
    scaler({"metrics": [MEMORY], "minReplicas": 2}),
    scaler(
        {"metrics": [cpu(70)], "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}}},
        {"conditions": [{"type": "AbleToScale", "status": "True"}]},
    ),
]


@pytest.mark.parametrize("stored", STORED)
def test_an_autoscaler_survives_the_older_version(stored: Json) -> None:
    assert to_v2(to_v1(stored)) == stored


def test_the_older_version_says_the_use_of_cpu() -> None:
    current = [{"type": "Resource", "resource": {"name": "cpu", "current": {}}}]
    current[0]["resource"]["current"]["averageUtilization"] = 35  # type: ignore[index]
    old = to_v1(scaler({"metrics": [cpu(50)]}, {"currentMetrics": current}))
    assert old["spec"]["targetCPUUtilizationPercentage"] == 50
    assert old["status"]["currentCPUUtilizationPercentage"] == 35
    assert "metrics" not in old["spec"]


def test_an_autoscaler_without_a_target_aims_at_80_percent() -> None:
    assert to_v2(scaler({}))["spec"]["metrics"] == [cpu(80)]


def test_an_annotation_that_is_no_json_is_passed_over() -> None:
    broken = scaler({}, annotations={"autoscaling.alpha.kubernetes.io/metrics": "{"})
    assert to_v2(broken)["spec"]["metrics"] == [cpu(80)]
