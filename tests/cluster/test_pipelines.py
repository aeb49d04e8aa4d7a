"""An Argo Workflow as it is: its steps are pods, its artefacts lie in S3 between them."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml
from tests.support.cluster_store import SECRET, USER, pod, python, store
from tests.support.on_cluster import OnCluster
from tests.support.pipelines import ARGO
from tools.s3 import build as s3

from lockstep.compat import dialects

Json = dict[str, Any]
BUCKETS = "import pathlib; pathlib.Path('/buckets/runs').mkdir()"
LIST = """
import os, obstore
from obstore.store import S3Store
store = S3Store("runs", client_options={"allow_http": True})
for page in obstore.list(store):
    print(*(one["path"] for one in page), sep="\\n", flush=True)
print("end")
"""


@pytest.fixture
def stored(cluster: OnCluster) -> OnCluster:
    """The cluster with Argo's kinds, and a store in the story's namespace."""
    program = s3.find()
    if program is None:
        pytest.skip("no versitygw: run `make s3`")
    cluster.apply(*dialects.manifests(["argo"]), *store(cluster.own_image(), program, BUCKETS))
    variables = {
        "AWS_ACCESS_KEY_ID": USER,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_ENDPOINT_URL": f"http://store.{cluster.space}.svc:7070",
        "AWS_REGION": "us-east-1",
    }
    meta = {"name": "variables"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": variables}
    cluster.apply(secret)
    cluster.kubectl("wait", "pod/store", "--for=condition=Ready", "--timeout=240s")
    return cluster


def diamond(image: str) -> Json:
    """Return the workflow with images that the cluster's registry has."""
    text = re.sub(
        r'"?(alpine:3.6|python:alpine3.6)"?', f'"{image}"', (ARGO / "diamond.yaml").read_text()
    )
    tree: Json = yaml.safe_load(text)
    tree["metadata"] = {
        "name": "gem",
        "annotations": {
            "lockstep.dev/artifact-root": "s3://runs/argo",
            "lockstep.dev/artifact-secret": "variables",
        },
    }
    return tree


def phase(cluster: OnCluster, kind: str, name: str) -> str:
    return str(cluster.get(kind, name).get("status", {}).get("phase", ""))


@pytest.mark.timeout(900)
def test_workflow_hands_an_artefact_on_through_the_store(stored: OnCluster) -> None:
    stored.apply(diamond(stored.own_image()))
    workflow = "workflows.argoproj.io"
    over = ("Succeeded", "Failed", "Error")
    stored.wait(lambda: phase(stored, workflow, "gem") in over, 420, "the workflow is over")
    status = stored.get(workflow, "gem")["status"]
    assert status["phase"] == "Succeeded", json.dumps(status)[:2000]
    said = stored.lockstep("pipeline", "logs", "gem", "read").stdout
    assert said == "hello world\n3\n"
    listing = python(stored.own_image(), LIST)
    listing["envFrom"] = [{"secretRef": {"name": "variables"}}]
    stored.apply(pod("listing", {"containers": [listing]}))
    stored.wait(lambda: "end" in stored.logs("listing"), 120, "the store says what it has")
    assert "argo/" in stored.logs("listing"), "the artefact lies in the store"
