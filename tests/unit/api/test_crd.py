"""CRDs say what the structs say, and deploy/ holds what they say now."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from lockstep.api import crd
from lockstep.api.presentation import PRESENTATIONS
from lockstep.api.quantity import NOT_NEGATIVE

FRAMEWORKS = [
    *("byteps", "deepspeed", "flink", "horovod", "jax", "megatron", "mpi", "mxnet", "paddle"),
    *("plain", "pytorch", "ray", "spark", "tensorflow", "trino", "xgboost"),
]
DEPLOYED = Path(__file__).parents[3] / "deploy/chart/lockstep/files/crds.yaml"


def at(kind: str, path: str) -> dict[str, Any]:
    node = crd.schema(kind)
    for step in path.split("."):
        node = node["items"] if step == "[]" else node["properties"][step]
    return node


@pytest.mark.parametrize(
    ("kind", "path", "expected"),
    [
        (
            "TrainingJob",
            "spec.framework",
            {"enum": FRAMEWORKS},
        ),
        ("TrainingJob", "spec.roles", {"minItems": 1, "x-kubernetes-list-map-keys": ["name"]}),
        ("TrainingJob", "spec.roles.[].replicas", {"type": "integer", "minimum": 1, "default": 1}),
        ("TrainingJob", "spec.roles.[].template", {"x-kubernetes-preserve-unknown-fields": True}),
        ("TrainingJob", "spec.queue", {"default": "default"}),
        ("Gang", "spec.strategy", {"enum": ["Binpack", "Fragmentation", "Spread"]}),
        ("Queue", "spec.lending", {"enum": ["Always", "Never"], "default": "Always"}),
        ("Gang", "spec.minMember", {"type": "integer", "minimum": 1}),
        (
            "Queue",
            "spec.guaranteed",
            {
                "additionalProperties": {
                    "x-kubernetes-int-or-string": True,
                    "pattern": NOT_NEGATIVE,
                    "minimum": 0,
                }
            },
        ),
        ("Topology", "spec.tiers.[].name", {"type": "string", "minLength": 1}),
        ("Gang", "status.conditions", {"x-kubernetes-list-map-keys": ["type"]}),
        ("Queue", "status.used", {"additionalProperties": {"x-kubernetes-int-or-string": True}}),
    ],
)
def test_a_field_carries_its_type_bounds_and_default(
    kind: str, path: str, expected: dict[str, Any]
) -> None:
    assert expected.items() <= at(kind, path).items()


def test_every_field_of_a_spec_is_described_or_structured() -> None:
    for shown in PRESENTATIONS:
        fields = crd.schema(shown.resource.kind)["properties"]
        for name, field in fields.get("spec", {}).get("properties", {}).items():
            assert "description" in field, f"{shown.resource.kind}.spec.{name}"


@pytest.mark.parametrize("kind", ["Topology", "NodePolicy"])
def test_tiers_belong_to_one_applier_for_their_order_counts(kind: str) -> None:
    assert "x-kubernetes-list-type" not in at(kind, "spec.tiers")


def test_required_fields_are_those_without_a_default() -> None:
    assert at("TrainingJob", "spec")["required"] == ["framework", "roles"]
    assert at("Topology", "spec")["required"] == ["tiers"]
    assert "required" not in at("Gang", "spec")


def test_kinds_with_a_status_have_the_subresource() -> None:
    statuses = {
        m["spec"]["names"]["kind"]: "status" in m["spec"]["versions"][0].get("subresources", {})
        for m in crd.manifests()
    }
    without = [kind for kind, has_status in statuses.items() if not has_status]
    assert set(without) == {
        "Route",
        "Topology",
        "NodePolicy",
        "Environment",
        "PriceList",
        "ModelVersion",
        "DeviceUsage",
        "HealthPolicy",
    }


def test_the_deployed_manifest_is_up_to_date() -> None:
    assert list(yaml.safe_load_all(DEPLOYED.read_text())) == crd.manifests(), (
        "run `make manifests` and commit deploy/"
    )
