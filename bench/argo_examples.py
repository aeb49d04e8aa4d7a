"""Argo's own examples: how many are translated, and how many run here to their outputs.

``ARGO_EXAMPLES`` names the directory ``examples`` of a copy of github.com/argoproj/argo-workflows.
Their images stand for programs of this machine; argosay and cowsay are stand-ins.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from tests.support import argo_examples
from tests.support.argo_examples import Example
from tests.support.control_plane import ControlPlane
from tests.support.s3 import S3, SECRET, USER

from bench.figure import Figure, NotMeasured
from lockstep.api.pipeline import PipelineRunSpec
from lockstep.api.wire import convert
from lockstep.compat.argo.config_maps import filled
from lockstep.compat.argo.translate import spec
from lockstep.compat.translation import Refused
from lockstep.pipelines.core.check import problems

SLOW = True
BAR = 0.8
BAR_WITH_REFUSALS = 0.95
WORKFLOWS = "apis/argoproj.io/v1alpha1/namespaces/default/workflows"


def run() -> list[Figure]:
    root = argo_examples.directory()
    if root is None:
        raise NotMeasured(f"no examples: {argo_examples.VARIABLE} names no directory")
    everything = argo_examples.examples(root)
    refused = {one.name: why for one in everything if (why := refusal(one, root))}
    local = [one for one in everything if not one.cloud()]
    wanted = [one for one in local if one.name not in refused]
    Console(stderr=True).print(f"{len(wanted)} of {len(everything)} are to run", style="dim")
    # Volumes of the examples lie in /tmp, where the node must not have its own files.
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        ends = play(root, wanted, Path(directory))
    good = sum(not why for why in ends.values())
    console = Console()
    for title, words in (
        ("refused", refused),
        ("apart", {one.name: one.cloud() for one in everything if one.cloud()}),
        ("not run to outputs", {name: why for name, why in ends.items() if why}),
    ):
        for name, why in sorted(words.items()):
            console.print(f"{title}: {name}: {why}", markup=False, highlight=False)
    console.print(f"{good} of {len(local)} that need nothing of others ran to their outputs")
    translated = len(everything) - len(refused)
    return [
        Figure("Argo's examples translated", translated, f"of {len(everything)}"),
        Figure(
            "Argo's examples that need no cloud, run to their outputs",
            good / len(local),
            f"of {len(local)}",
            limit=BAR,
        ),
        Figure(
            "Argo's examples that need no cloud, run to their outputs or refused by name",
            (good + sum(one.name in refused for one in local)) / len(local),
            f"of {len(local)}",
            limit=BAR_WITH_REFUSALS,
        ),
    ]


def refusal(example: Example, root: Path) -> str:
    """Return why an example is refused; empty where it is not."""
    known = {
        (tree["kind"] == "ClusterWorkflowTemplate", tree["metadata"]["name"]): tree["spec"]
        for tree in argo_examples.surroundings(root)
        if tree["kind"].endswith("WorkflowTemplate")
    }
    held = {
        tree["metadata"]["name"]: tree["data"]
        for tree in argo_examples.surroundings(root)
        if tree["kind"] == "ConfigMap"
    }

    def lookup(name: str, cluster: bool) -> dict[str, Any] | None:
        return known.get((cluster, name))

    try:
        made = spec(filled(example.tree["spec"], held), lookup, example.tree["metadata"])
        return "; ".join(str(one) for one in problems(convert(made, PipelineRunSpec)))
    except Refused as error:
        return str(error)


def play(root: Path, wanted: list[Example], place: Path) -> dict[str, str]:
    """Run examples on a control plane of their own; return why each came to no outputs."""
    store = S3(place / "s3")
    store.bucket("runs")
    store.bucket("my-bucket")
    table = argo_examples.table(place / "table")
    plane = ControlPlane(place / "up", "--images", str(table)).start()
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "store"},
        "stringData": {
            "AWS_ACCESS_KEY_ID": USER,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_ENDPOINT_URL": store.url,
            "AWS_REGION": "us-east-1",
        },
    }
    noted = {
        "lockstep.dev/artifact-root": "s3://runs/argo",
        "lockstep.dev/artifact-secret": "store",
    }

    def submit(*trees: dict[str, Any]) -> None:
        plane.ok("submit", "-f", "-", stdin=yaml.safe_dump_all(trees))

    def statuses() -> dict[str, dict[str, Any]]:
        items = plane.read(WORKFLOWS)["items"]
        return {one["metadata"]["name"]: one.get("status") or {} for one in items}

    try:
        submit(secret, *argo_examples.surroundings(root), *argo_examples.volume(place))
        return argo_examples.play(
            wanted,
            lambda some: submit(*(argo_examples.prepared(one, noted) for one in some)),
            statuses,
            lambda name: print(plane.run("pipeline", "resume", name).stderr, end=""),
        )
    finally:
        plane.stop()
        store.close()
