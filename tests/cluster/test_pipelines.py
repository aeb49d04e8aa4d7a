"""An Argo Workflow and a pipeline of KFP: steps are pods, artefacts lie in S3 between them."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.cluster_store import SECRET, USER, pod, python, store
from tests.support.on_cluster import OnCluster
from tests.support.pipelines import ARGO, KFP
from tests.support.waiting import stretched
from tools.cluster import images
from tools.kfp import build as kfp
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


@pytest.fixture
def squares(stored: OnCluster, tmp_path: Path) -> Path:
    """A pipeline that the SDK compiled, with an image that the cluster's registry has."""
    stored.apply(*dialects.manifests(["kfp"]))
    image = images.kfp()
    stored.cluster.push(image)
    text = re.sub(r"image: \S+", f"image: {image.reference}", (KFP / "squares.yaml").read_text())
    made = tmp_path / "squares.yaml"
    made.write_text(text)
    return made


@pytest.mark.timeout(900)
def test_the_kfp_client_runs_a_pipeline_to_its_end(stored: OnCluster, squares: Path) -> None:
    sdk = kfp.find()
    if sdk is None:
        pytest.skip("no kfp SDK: run `make kfp`")
    serve = ("pipeline", "serve", "--port", "0", "--root", "s3://runs/kfp")
    with stored.running(*serve, "--storage-secret", "variables") as server:
        assert server.stdout is not None
        host = server.stdout.readline().split()[1]
        command = [str(sdk / "bin/python"), "-W", "ignore", str(KFP / "client.py"), host]
        done = subprocess.run(
            [*command, str(squares), json.dumps({"rows": 4})],
            capture_output=True,
            text=True,
            timeout=stretched(240),
            check=False,
        )
    assert done.returncode == 0, done.stderr[-2000:]
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["state"] == "SUCCEEDED"
    assert said["tasks"] == {"main": "SUCCEEDED", "make": "SUCCEEDED", "total": "SUCCEEDED"}
    run = stored.get("pipelineruns.lockstep.dev", said["id"])
    assert run["status"]["outputs"] == {"Output": 14}
