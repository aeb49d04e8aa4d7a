"""The example: from data to answers over HTTP, on the embedded control plane."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from tests.support.pipelines import Pipelines
from tests.support.waiting import eventually_sync, stretched

DIGITS = Path(__file__).parents[3] / "examples" / "pipelines" / "digits"
SERVICES = "apis/serving.kserve.io/v1beta1/namespaces/default/inferenceservices"
VERSIONS = "apis/lockstep.dev/v1alpha1/namespaces/default/modelversions"

pytest.importorskip("torch", reason="needs the train extra")
pytest.importorskip("sklearn", reason="needs the serve extra")


def release(world: Pipelines) -> str:
    given = ("-p", "models=s3://runs/models", "-p", f"code={DIGITS}")
    return world.run(DIGITS / "pipeline.yaml", *given, wait=200)


def ask_by_name(world: Pipelines, name: str) -> int:
    """Serve a model by *name*; return how many answers one question has."""
    small = {"requests": {"cpu": "100m", "memory": "256Mi"}}
    model = {"modelFormat": {"name": "sklearn"}, "storageUri": name, "resources": small}
    world.submit(
        {
            "apiVersion": "serving.kserve.io/v1beta1",
            "kind": "InferenceService",
            "metadata": {"name": "by-name"},
            "spec": {"predictor": {"minReplicas": 1, "model": model}},
        }
    )

    def ready() -> bool:
        status = world.plane.read(f"{SERVICES}/by-name").get("status") or {}
        found = {one["type"]: one["status"] for one in status.get("conditions") or []}
        return found.get("Ready") == "True"

    eventually_sync(ready, 90.0, "the service by name is ready")
    url = world.plane.read(f"{SERVICES}/by-name")["status"]["url"]
    blank = json.dumps({"instances": [[0.0] * 64]}).encode()
    asked = f"{url}/v1/models/by-name:predict"
    with urllib.request.urlopen(asked, blank, timeout=stretched(60)) as answer:  # noqa: S310
        return len(json.load(answer)["predictions"])


def versions(world: Pipelines) -> list[dict[str, Any]]:
    """Return the versions of the example's model; tests beside this one make others."""
    found = world.plane.read(VERSIONS)["items"]
    return [one for one in found if one["spec"]["model"] == "digits"]


@pytest.mark.torch
def test_data_becomes_a_model_in_service(world: Pipelines) -> None:
    name = release(world)
    status = world.status(name)
    assert status["outputs"]["released"] is True
    assert status["outputs"]["accuracy"] > 0.9
    (version,) = versions(world)
    assert version["spec"]["stage"] == "Production"
    assert version["spec"]["run"] == name
    assert version["spec"]["metrics"] == {"accuracy": status["outputs"]["accuracy"]}

    service = world.plane.read(f"{SERVICES}/digits")
    assert service["spec"]["predictor"]["model"]["storageUri"] == version["spec"]["uri"]
    url = f"{service['status']['url']}/v1/models/digits:predict"
    blank = json.dumps({"instances": [[0.0] * 64]}).encode()
    with urllib.request.urlopen(url, blank, timeout=stretched(60)) as answer:  # noqa: S310
        assert len(json.load(answer)["predictions"]) == 1

    # A service may name the model and its stage in place of where its files lie.
    assert ask_by_name(world, "model://digits/production") == 1

    # The same again is no better, so nothing is registered and the service stays as it is.
    again = world.status(release(world))
    assert again["outputs"]["released"] is False
    assert again["steps"]["main.data"]["keptFrom"] == f"{name}/main.data"
    assert again["steps"]["main.register"]["phase"] == "Skipped"
    assert len(versions(world)) == 1
    kept = world.plane.read(f"{SERVICES}/digits")
    assert kept["metadata"]["generation"] == service["metadata"]["generation"]
