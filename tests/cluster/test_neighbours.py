"""Other schedulers and device plugins: they are named, and what they gave away is counted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.support import cluster_cards
from tests.support.on_cluster import OnCluster
from tests.support.stub_gpus import StubGpus

Json = dict[str, Any]
PLUGIN, SCHEDULER = "nvidia-device-plugin-daemonset", "volcano-scheduler"


def workload(kind: str, name: str, image: str, **spec: Any) -> Json:
    """Return what another system's installer would leave; here it does nothing."""
    labels = {"app": name}
    pod = {"containers": [{"name": "main", "image": image}]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": template, **spec},
    }


@pytest.fixture
def others(cluster: OnCluster) -> Iterator[OnCluster]:
    """A cluster that has the names of another device plugin and of another scheduler."""
    cluster.apply(
        workload("DaemonSet", PLUGIN, cluster.idle_image),
        workload("Deployment", SCHEDULER, cluster.idle_image, replicas=1),
    )
    yield cluster
    cluster.kubectl("delete", f"daemonset/{PLUGIN}", f"deployment/{SCHEDULER}")


DRY = ("cluster", "install", "--dry-run")


@pytest.mark.parametrize("words", [DRY, (*DRY, "-o", "json"), ("doctor",)], ids=" ".join)
def test_others_are_named_with_what_to_do(others: OnCluster, words: tuple[str, ...]) -> None:
    done = others.lockstep(*words)
    for name, kind in ((PLUGIN, "DaemonSet"), (SCHEDULER, "Deployment")):
        assert f"{kind} {others.space}/{name}" in done.stdout, done.stderr
    assert f"delete daemonset {PLUGIN}" in done.stdout
    assert "--serve NAME" in done.stdout


def test_cards_that_another_scheduler_gave_are_not_given(
    cluster: OnCluster, cards: dict[str, StubGpus]
) -> None:
    image = cluster.own_image()
    taken, *free = sorted(cards)
    main = {
        "name": "main",
        "image": cluster.idle_image,
        "resources": {"limits": {"nvidia.com/gpu": 8}},
    }
    meta = {"name": "theirs"}
    spec = {"nodeSelector": {"kubernetes.io/hostname": taken}, "containers": [main]}
    cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})

    def phase(name: str) -> str:
        return str(cluster.get("pod", name).get("status", {}).get("phase", ""))

    cluster.wait(lambda: phase("theirs") == "Running", 60, "kube-scheduler placed its pod")
    cluster.apply(cluster_cards.gang("three", image, 3, 8), cluster_cards.gang("two", image, 2, 8))

    def on() -> set[str]:
        pods = cluster.pods("lockstep.dev/job=two")
        return {p["spec"]["nodeName"] for p in pods if p["status"]["phase"] == "Running"}

    cluster.wait(lambda: on() == set(free), 120, "the gang of two runs on the other nodes")
    assert not any(p["spec"].get("nodeName") for p in cluster.pods("lockstep.dev/job=three"))
    told = cluster.lockstep("explain", "three").stdout
    assert "nvidia.com/gpu" in told or "GPU" in told
