"""A control plane that runs pipelines: with the kfp SDK for its steps, and an S3 server."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.control_plane import ControlPlane
from tests.support.s3 import S3, SECRET, USER, Bucket
from tools.kfp import build

KFP = Path(__file__).parent / "kfp"
ARGO = Path(__file__).parent / "argo"
RUNS = "apis/lockstep.dev/v1alpha1/namespaces/default/pipelineruns"


def images(place: Path) -> Path:
    """Write the table by which steps on ``python:*`` run in the environment with the SDK."""
    made = build.find()
    if made is None:
        pytest.skip("no environment with the kfp SDK: run `make kfp`")
    entries = [
        {
            "image": image,
            "command": ["{python}"],
            "env": {"PATH": f"{where}:/usr/local/bin:/usr/bin:/bin"},
        }
        for image, where in (("python:*", made / "bin"), ("digits/*", Path(sys.executable).parent))
    ]
    table = place / "images.yaml"
    table.write_text(yaml.safe_dump(entries))
    return table


def _secret(name: str, data: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "stringData": data,
    }


class Pipelines:
    """``lockstep up`` and the store that its runs keep artefacts in."""

    def __init__(self, place: Path, table: Path | None = None) -> None:
        self.table = table or images(place)
        self.store = S3(place / "s3")
        self.bucket: Bucket = self.store.bucket("runs")
        self.plane = ControlPlane(place / "up", "--images", str(self.table)).start()
        variables = {
            "AWS_ACCESS_KEY_ID": USER,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_ENDPOINT_URL": self.store.url,
            "AWS_REGION": "us-east-1",
        }
        served = {
            "type": "s3",
            "access_key_id": USER,
            "secret_access_key": SECRET,
            "endpoint_url": self.store.url,
            "region": "us-east-1",
        }
        self.submit(
            _secret("store", variables), _secret("storage-config", {"default": json.dumps(served)})
        )

    def submit(self, *objects: dict[str, Any]) -> None:
        """Create objects."""
        self.plane.ok("submit", "-f", "-", stdin=yaml.safe_dump_all(objects))

    def run(self, file: Path, *arguments: str, wait: float = 90) -> str:
        """Run a pipeline to its end, which must be a good one; return the run's name."""
        where = ("--root", "s3://runs/p", "--storage-secret", "store")
        waiting = ("--wait", "--timeout", str(wait))
        words = ("pipeline", "run", str(file), *where, *waiting, *arguments)
        said = self.plane.run(*words, timeout=wait + 60)
        name = said.stdout.split()[0].partition("/")[2] if said.stdout else "-"
        if said.returncode:
            about = self.plane.run("pipeline", "describe", name).stdout
            events = self.plane.run("list", "events").stdout
            raise AssertionError(f"{said.stdout}{said.stderr}\n{about}\n{events}")
        return name

    def status(self, name: str) -> dict[str, Any]:
        """Return the status of a run."""
        found: dict[str, Any] = self.plane.read(f"{RUNS}/{name}").get("status", {})
        return found

    def pods(self, name: str) -> list[str]:
        """Return the names of the pods that a run has made."""
        items = self.plane.read("api/v1/namespaces/default/pods")["items"]
        label = "lockstep.dev/pipeline-run"
        return [o["metadata"]["name"] for o in items if o["metadata"]["labels"].get(label) == name]

    def close(self) -> None:
        """End everything."""
        self.plane.stop()
        self.store.close()
