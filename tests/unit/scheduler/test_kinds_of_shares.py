"""Shares that are held otherwise, or are offline, and nodes that give their GPUs in one way."""

from __future__ import annotations

import msgspec
import pytest
from tests.support.drawn import node
from tests.support.share_clusters import CARDS, cluster_of, decide, share

from lockstep.api.core import Pod
from lockstep.api.names import GPU_CLASS_ANNOTATION, GPU_ISOLATION_ANNOTATION, GPU_MODE_LABEL
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.explain.diagnosis import explain
from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.core.state.cluster import Cluster


def kind(name: str, compute: int, *, by: str = "", offline: bool = False) -> Pod:
    """A pod with a share that is held by a mechanism, or is offline."""
    said = {GPU_ISOLATION_ANNOTATION: by} if by else {}
    said |= {GPU_CLASS_ANNOTATION: "offline"} if offline else {}
    pod = share(name, compute)
    meta = pod.metadata
    fresh = msgspec.structs.replace(meta, annotations={**meta.annotations, **said})
    return msgspec.structs.replace(pod, metadata=fresh)


def why(cluster: Cluster, name: str) -> str:
    verdict = explain(cluster, cluster.workloads[WorkloadKey("Pod", "default", name)])
    return verdict.message


def on_cards(cluster: Cluster, *pods: Pod) -> list[int]:
    return [cards[0] for _, cards in decide(cluster, *pods)]


def one_node(count: int = CARDS) -> Cluster:
    cluster = Cluster()
    cluster.set_node(
        node("n", gpus=count, devices=[{"index": i, "memory": 1000} for i in range(count)])
    )
    return cluster


@pytest.mark.parametrize(
    ("mechanisms", "wanted"),
    [
        (["", "lease"], [0, 0]),
        (["", "mps"], [0, 1]),
        (["mps", "mps", "timeslice", ""], [0, 0, 1, 2]),
        (["", "mps", "lease", "mps"], [0, 1, 0, 1]),
    ],
)
def test_shares_on_a_card_are_held_alike(mechanisms, wanted):
    pods = [kind(f"p{number}", 20, by=by) for number, by in enumerate(mechanisms)]
    assert on_cards(one_node(), *pods) == wanted


def test_a_share_waits_with_a_reason_behind_cards_held_otherwise():
    cluster = one_node(1)
    assert on_cards(cluster, kind("first", 20)) == [0]
    cluster.set_pod(kind("late", 20, by="mps"))
    decider = Decider(cluster)
    decider.decide(0.0)
    assert cluster.pods["default", "late"].node == ""
    assert "1 node with room on GPUs alone whose shares are held otherwise" in why(cluster, "late")
    cluster.remove_pod("default", "first")
    decider.decide(100.0)
    assert cluster.pods["default", "late"].node == "n"


def test_offline_goes_to_online_and_online_keeps_apart():
    pods = [
        kind("on-1", 40),
        kind("off-1", 20, offline=True),
        kind("on-2", 40),
        kind("off-2", 20, offline=True),
        kind("on-3", 20),
    ]
    assert on_cards(one_node(2), *pods) == [0, 0, 1, 0, 0]


def test_online_keeps_apart_over_nodes():
    cluster = cluster_of("a", "b")
    pods = [kind(f"on-{number}", 30) for number in range(5)]
    found = decide(cluster, kind("off", 10, offline=True), *pods)
    assert len(set(found[1:])) == 5, "each is on a card of its own"


def labelled(mode: str) -> Cluster:
    devices = [{"index": i, "memory": 1000} for i in range(CARDS)]
    cluster = Cluster()
    cluster.set_node(node("n", gpus=CARDS, devices=devices, labels={GPU_MODE_LABEL: mode}))
    return cluster


@pytest.mark.parametrize(
    ("mode", "whole", "part"),
    [("whole", True, False), ("shared", False, True), ("mixed", True, True)],
)
def test_a_node_gives_its_gpus_as_its_label_says(mode, whole, part):
    cluster = labelled(mode)
    whole_pod = msgspec.convert(
        {
            "metadata": {"name": "whole", "namespace": "default", "uid": "whole"},
            "spec": {
                "schedulerName": "lockstep",
                "containers": [{"resources": {"limits": {"nvidia.com/gpu": 1}}}],
            },
        },
        Pod,
    )
    cluster.set_pod(share("part", 20))
    cluster.set_pod(whole_pod)
    Decider(cluster).decide(0.0)
    placed = {name: bool(cluster.pods["default", name].node) for name in ("whole", "part")}
    assert placed == {"whole": whole, "part": part}
    for name, asked in (("whole", "whole GPUs"), ("part", "shares of GPUs")):
        if not placed[name]:
            assert f"closed to {asked} by {GPU_MODE_LABEL}={mode}" in why(cluster, name)
