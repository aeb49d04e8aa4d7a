"""Pods go where their data is, if they can; those that must wait for it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.drawn import gang, node, pod

from lockstep.api.core import Pod
from lockstep.api.dataset_cache import NO_CACHE, share_label
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.explain.diagnosis import explain
from lockstep.scheduler.core.state.cluster import Cluster

KEY = share_label("default", "images")


def reader(name: str, **more: Any) -> Pod:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "images"}}
    return pod(name, gpus=1, volumes=[volume], **more)


def cluster_of(**shares: str | None) -> Cluster:
    cluster = Cluster()
    for name, share in shares.items():
        cluster.set_node(node(name, gpus=2, labels={KEY: share} if share else {}))
    return cluster


def place(cluster: Cluster, one: Pod) -> str:
    cluster.set_pod(one)
    Decider(cluster).decide(0.0)
    return cluster.pods["default", one.metadata.name].node


@pytest.mark.parametrize(
    ("shares", "where"),
    [
        ({"a": None, "b": "100", "c": "50"}, "b"),
        ({"a": "75", "b": "50", "c": "0"}, "a"),
        ({"a": "0", "b": "0", "c": "25"}, "c"),
    ],
)
def test_a_pod_goes_where_most_of_its_data_is(shares: dict[str, str | None], where: str) -> None:
    assert place(cluster_of(**shares), reader("r")) == where


def test_a_gang_goes_where_its_data_is() -> None:
    cluster = cluster_of(a=None, b=None, c="100", d="100")
    cluster.set_gang(gang("g", minMember=4))
    for rank in range(4):
        cluster.set_pod(reader(f"g-{rank}", gang="g"))
    Decider(cluster).decide(0.0)
    found = {cluster.pods["default", f"g-{rank}"].node for rank in range(4)}
    assert found == {"c", "d"}


def test_no_pod_waits_for_data() -> None:
    cluster = cluster_of(a=None, b="100")
    cluster.set_node(node("b", gpus=2, labels={KEY: "100"}, cordoned=True))
    assert place(cluster, reader("r")) == "a"


def test_a_pod_that_requires_its_data_waits_with_words() -> None:
    cluster = cluster_of(a=None, b=None)
    must = {"fluid.io/dataset.images.sched": "required"}
    cluster.set_pod(reader("r", labels=must))
    decider = Decider(cluster)
    (key,) = decider.decide(0.0).failed
    assert cluster.pods["default", "r"].node == ""
    said = explain(cluster, cluster.workloads[key])
    assert KEY in str(said)
    cluster.set_node(node("b", gpus=2, labels={KEY: "0"}))
    decider.decide(1.0)
    assert cluster.pods["default", "r"].node == "b"


def test_what_a_user_prefers_counts_more() -> None:
    cluster = cluster_of(a="100", b=None)
    cluster.set_node(node("b", gpus=2, labels={"disk": "fast"}))
    expression = {"key": "disk", "operator": "In", "values": ["fast"]}
    term = {"weight": 50, "preference": {"matchExpressions": [expression]}}
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}
    assert place(cluster, reader("r", affinity=affinity)) == "b"


@pytest.mark.parametrize("labels", [{}, {"fluid.io/dataset.images.sched": "required"}])
def test_no_pod_goes_to_a_node_without_a_data_cache(labels: dict[str, str]) -> None:
    assert place(cluster_of(a=NO_CACHE), reader("r", labels=labels)) == ""
    assert place(cluster_of(a=NO_CACHE, b="0"), reader("r", labels=labels)) == "b"
