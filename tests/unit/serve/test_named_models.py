"""Models that a service names in place of a URI."""

from __future__ import annotations

import pytest

from lockstep.api.model_version import ModelVersion
from lockstep.api.wire import convert
from lockstep.compat.kserve.objects import InferenceService
from lockstep.compat.kserve.problem import Problem
from lockstep.compat.kserve.storage import provide
from lockstep.serve.core.named_models import with_model


def version(number: str, stage: str, namespace: str = "n") -> ModelVersion:
    spec = {"model": "digits", "version": number, "uri": f"s3://m/{number}", "stage": stage}
    meta = {"name": f"digits-{number}", "namespace": namespace}
    meta["creationTimestamp"] = f"2026-01-0{number}T00:00:00Z"
    return convert({"metadata": meta, "spec": spec}, ModelVersion)


MODELS = [
    version("1", "Production"),
    version("2", "Production"),
    version("3", "Candidate"),
    version("4", "Production", "other"),
]


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("s3://m/plain", "s3://m/plain"),
        ("model://digits/1", "s3://m/1"),
        ("model://digits/production", "s3://m/2"),
        ("model://digits/candidate", "s3://m/3"),
        ("model://digits/4", "model://digits/4"),
        ("model://others/1", "model://others/1"),
    ],
)
def test_a_name_stands_for_its_versions_or_stages_uri(uri: str, expected: str) -> None:
    model = {"modelFormat": {"name": "sklearn"}, "storageUri": uri}
    body = {"metadata": {"name": "s", "namespace": "n"}, "spec": {"predictor": {"model": model}}}
    found = with_model(convert(body, InferenceService), MODELS)
    assert found.spec.predictor["model"]["storageUri"] == expected


def test_a_name_that_stands_for_nothing_is_refused() -> None:
    with pytest.raises(Problem, match="no ModelVersion"):
        provide("model://digits/9")
