"""KFP's own compiled examples, run on a process node; needs a checkout of kubeflow/pipelines.

`LOCKSTEP_KFP_EXAMPLES` names its directory ``test_data/sdk_compiled_pipelines/valid``. Steps run
in a copy of the environment with the SDK, whatever version of it they were compiled with.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.pipelines import Pipelines
from tools.kfp import build

from lockstep.cli import pipeline_file
from lockstep.cli.failure import BadInput

EXAMPLES = Path(os.environ.get("LOCKSTEP_KFP_EXAMPLES", ""))
PLACES = ("python:", "registry.access.redhat.com/ubi9/python-311", "public.ecr.aws/")
SHELLS = ("alpine", "ghcr.io/containerd/busybox", "library/bash")
AT_ONCE, LONGEST, BAR = 6, 400.0, 0.95
MORE: dict[str, Any] = {"STRING": "word", "LIST": ["a", "b"], "STRUCT": {"a": 1}, "BOOLEAN": True}


@dataclass
class Example:
    """One file, and what became of it."""

    name: str
    documents: list[Any]
    left_out: str = ""
    """Why it needs more than a process node has."""
    said: str = ""
    phase: str = ""

    @property
    def as_wished(self) -> bool:
        """Whether it came to the end that it is meant to have."""
        wished = "Failed" if self.name.startswith("failing/") else "Succeeded"
        return self.phase == wished


def examples() -> Iterator[Example]:
    """Yield the examples, and of each whether it needs a cloud."""
    for file in sorted(EXAMPLES.rglob("*.yaml")):
        text = re.sub(r"kfp==[\w.]+", "kfp", file.read_text())
        documents = [one for one in yaml.safe_load_all(text) if one]
        name = str(file.relative_to(EXAMPLES))
        yield Example(name, documents, _needs(documents[0], text))


def _needs(tree: Any, text: str) -> str:
    """Return what a pipeline needs that a process node has not; empty where nothing."""
    executors = (tree.get("deploymentSpec") or {}).get("executors") or {}
    containers = [one["container"] for one in executors.values() if "container" in one]
    for one in containers:
        if not one["image"].startswith((*PLACES, *SHELLS)):
            return f"the image {one['image'].partition('@')[0]}"
        if "accelerator" in (one.get("resources") or {}):
            return "a GPU"
    for word in ("gs://", "bigquery", "google-cloud"):
        if word in text:
            return f"a cloud ({word})"
    return ""


def _arguments(tree: Any, place: Path) -> list[str]:
    """Return values for what a pipeline must be given."""
    given = (tree["root"].get("inputDefinitions") or {}).get("parameters") or {}
    found = []
    for name, one in given.items():
        if "defaultValue" in one or one.get("isOptional"):
            continue
        value = MORE.get(one["parameterType"], 3)
        if name.endswith("_path"):
            value = str(place / name)
        found.append(f"{name}={value if isinstance(value, str) else json.dumps(value)}")
    return found


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipelines]:
    """A control plane whose steps on ``python:*`` run in a copy of the SDK's environment."""
    place = tmp_path_factory.mktemp("kfp-examples")
    made = build.find()
    if not EXAMPLES.is_dir() or not os.environ.get("LOCKSTEP_KFP_EXAMPLES") or made is None:
        pytest.skip("needs LOCKSTEP_KFP_EXAMPLES, and `make kfp`")
    copy = place / "sdk"
    shutil.copytree(made, copy, symlinks=True)
    path = f"{copy}/bin:/usr/local/bin:/usr/bin:/bin"
    shells = [f"{one}*" for one in SHELLS]
    entries = [
        {"image": f"{image}*", "command": ["{python}"], "env": {"PATH": path, "HOME": str(place)}}
        for image in (*PLACES, *shells)
    ]
    table = place / "images.yaml"
    table.write_text(yaml.safe_dump(entries))
    world = Pipelines(place, table)
    yield world
    world.close()


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_kfps_own_examples_come_to_their_ends(cluster: Pipelines, tmp_path: Path) -> None:
    found = list(examples())
    local = [one for one in found if not one.left_out]
    begun: dict[str, tuple[Example, float]] = {}
    waiting = list(enumerate(local))
    while waiting or begun:
        while waiting and len(begun) < AT_ONCE:
            number, one = waiting.pop(0)
            if _start(cluster, one, f"kfp-{number}", tmp_path):
                begun[f"kfp-{number}"] = one, time.monotonic()
        for name, (one, since) in list(begun.items()):
            status = cluster.status(name)
            one.phase, one.said = status.get("phase", ""), status.get("message", "")
            if status.get("completionTime") or time.monotonic() - since > LONGEST:
                del begun[name]
        time.sleep(0.2)
    for one in found:
        end = f"left out: {one.left_out}" if one.left_out else f"{one.phase}: {one.said}"
        print(f"{'ok' if one.as_wished else '--'} {one.name} {end[:300]}", file=sys.stderr)
    share = sum(one.as_wished for one in local) / len(local)
    print(f"{len(local)} of {len(found)} need no cloud; {share:.3f} end as wished", file=sys.stderr)
    assert share >= BAR


def _start(cluster: Pipelines, one: Example, name: str, place: Path) -> bool:
    """Start an example; where it is refused, note why."""
    file = place / f"{name}.yaml"
    file.write_text(yaml.safe_dump_all(one.documents))
    wanted = {"root": "s3://runs/p", "storageSecret": "store", "maxWait": "60s"}
    try:
        run = pipeline_file.read(file, _arguments(one.documents[0], place), name, wanted)
    except BadInput as refused:
        one.phase, one.said = "Refused", str(refused)
        return False
    cluster.submit(run)
    return True
