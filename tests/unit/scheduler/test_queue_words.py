"""What is said of a gang that its queue keeps waiting, and whether the remedy helps."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.drawn import gang, node, pod, queue
from tests.support.queued import WIDE, cluster_with, gpus, placed, submit

from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.explain.diagnosis import explain
from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.core.state.cluster import Cluster


def waits(cluster: Cluster, name: str) -> tuple[str, str, str]:
    verdict = explain(cluster, cluster.workloads[WorkloadKey("Gang", "default", name)])
    return verdict.reason, verdict.message, verdict.remedy


def test_words_say_which_limit_binds_and_by_how_much():
    cluster = cluster_with(WIDE, {"org": {"limit": gpus(24)}, "q": {"parent": "org"}})
    submit(cluster, "a: 2x8", "q")
    submit(cluster, "b: 2x8", "q", 1)
    decider = Decider(cluster)
    assert [k.name for k in decider.decide(0.0).failed] == ["b"]
    assert waits(cluster, "b") == (
        "OverQuota",
        "needs 16 GPUs; queue org uses 16 of the 24 GPUs of its limit: 8 GPUs short; "
        "held by gang a (16 GPUs)",
        "8 GPUs given back in queue org, or a limit of 32 GPUs there",
    )


@pytest.mark.parametrize(
    ("change", "starts"),
    [({"limit": gpus(31)}, False), ({"limit": gpus(32)}, True), ({}, True)],
)
def test_what_the_words_say_would_help_helps(change: dict[str, Any], starts: bool):
    cluster = cluster_with(WIDE, {"q": {"limit": gpus(24)}})
    submit(cluster, "a: 2x8", "q")
    submit(cluster, "b: 2x8", "q", 1)
    decider = Decider(cluster)
    decider.decide(0.0)
    cluster.set_queue(queue("q", **change))
    assert bool(decider.decide(1.0).placements) == starts


@pytest.mark.parametrize(
    ("used", "asked", "most"), [("", "3x8", 2), ("a: 1x8", "3x8", 1), ("a: 2x8", "3x8", 0)]
)
def test_the_stated_most_to_ask_for_is_admitted_exactly(used: str, asked: str, most: int):
    def tried(size: str) -> tuple[Cluster, bool]:
        cluster = cluster_with(WIDE, {"q": {"limit": gpus(16)}})
        if used:
            submit(cluster, used, "q")
        Decider(cluster).decide(0.0)
        submit(cluster, f"b: {size}", "q", 1)
        return cluster, bool(Decider(cluster).decide(1.0).placements)

    said = waits(tried(asked)[0], "b")[2]
    assert said.startswith(f"at most {8 * most} GPUs asked for, or a limit of ") == bool(most)
    assert ("asked for" in said) == bool(most)
    assert [tried(f"{pods}x8")[1] for pods in (1, 2)] == [most >= 1, most >= 2]


MODELS = {"nvidia.com/gpu.product": "A"}, {"nvidia.com/gpu.product": "B"}


@pytest.mark.parametrize("most", [16, 8])
@pytest.mark.parametrize(
    ("barred", "asked", "remedy", "change"),
    [
        pytest.param(
            {"taints": ["maint"]},
            "b: 2x8",
            "the use of the nodes tainted maint:NoSchedule",
            {},
            id="the use of nodes",
        ),
        pytest.param({}, "b: 2x8 leaf", "no required tier", "b: 2x8", id="no required tier"),
    ],
)
def test_a_remedy_heeds_the_limit_on_a_model(
    most: int, barred: dict[str, Any], asked: str, remedy: str, change: str
):
    a, b = MODELS
    cluster = Cluster()
    for name, leaf in (("n0", "x"), ("n1", "y")):
        cluster.set_node(node(name, labels={**a, "spine": "s", "leaf": leaf}, **barred))
    cluster.set_node(node("n2", labels={**b, "spine": "s", "leaf": "z"}))
    cluster.set_queue(queue("q", limit={"nvidia.com/gpu/A": most, "nvidia.com/gpu/B": 0}))
    submit(cluster, asked, "q")
    decider = Decider(cluster)
    decider.decide(0.0)
    assert (remedy in waits(cluster, "b")[2]) == (most == 16)
    for name, leaf in (("n0", "x"), ("n1", "y")):
        cluster.set_node(node(name, labels={**a, "spine": "s", "leaf": leaf}))
    if change:
        submit(cluster, change, "q")
    assert bool(decider.decide(1.0).placements) == (most == 16)


@pytest.mark.parametrize(("most", "helps"), [(16, True), (8, False)])
def test_ending_others_helps_only_within_a_model_limit(most: int, helps: bool):
    cluster = Cluster()
    for name, model in (("n0", "A"), ("n1", "A"), ("n2", "B")):
        cluster.set_node(node(name, labels={"nvidia.com/gpu.product": model}))
        cluster.set_pod(pod(f"p-{name}", gpus=8, on=name, phase="Running"))
    limit = {"nvidia.com/gpu/A": most, "nvidia.com/gpu/B": 0}
    cluster.set_queue(queue("q", limit=limit))
    submit(cluster, "b: 2x8", "q")
    decider = Decider(cluster)
    decider.decide(0.0)
    _, said, remedy = waits(cluster, "b")
    assert (remedy == "room in the cluster when others end") == helps
    over = "even empty, the cluster would not hold it within its queue's limits"
    assert (over in said) == (not helps)
    for name in ("n0", "n1", "n2"):
        cluster.remove_pod("default", f"p-{name}")
    assert bool(decider.decide(1.0).placements) == helps


def test_reasons_name_requests_above_the_limit_and_unlent_quota():
    cluster = cluster_with(WIDE, {"q": {"limit": gpus(8)}, "r": {}, "s": {"guaranteed": gpus(24)}})
    submit(cluster, "a: 2x8", "q")
    Decider(cluster).decide(0.0)
    assert waits(cluster, "a")[2] == ("at most 8 GPUs asked for, or a limit of 16 GPUs in queue q")
    cluster.set_queue(queue("s", guaranteed=gpus(24), lending="Never"))
    submit(cluster, "b: 2x8", "r")
    Decider(cluster).decide(0.0)
    assert waits(cluster, "b")[1] == (
        "needs 16 GPUs; the cluster has 32 GPUs, 24 of them in use or kept by queues that do not "
        "lend them: 8 GPUs short"
    )


def test_room_and_quota_together():
    """Nothing is admitted that cannot be placed: a sum that fits does not hold quota."""
    cluster = cluster_with("s/x: a:4 b:4\n s/y: c:8", {"q": {"limit": gpus(8)}})
    submit(cluster, "big: 2x4 leaf", "q")
    submit(cluster, "small: 1x8", "q", 1)
    cluster.set_pod(pod("other", gpus=1, on="a", held="0", scheduler="theirs"))
    cluster.set_pod(pod("more", gpus=5, on="c", held="0,1,2,3,4", scheduler="theirs"))
    decider = Decider(cluster)
    decider.decide(0.0)
    assert placed(cluster) - {"other", "more"} == set()
    assert waits(cluster, "big")[0] == "NotEnoughRoom"
    cluster.remove_pod("default", "more")
    decider.decide(0.0)
    assert "small" in placed(cluster) or "big" in placed(cluster)


def test_words_count_the_member_that_has_room():
    """Of members that differ the least is asked for, but that one may have no room."""
    cluster = cluster_with(WIDE, {"q": {"limit": gpus(4)}})
    cluster.set_gang(gang("m", groups=[{"name": "all", "min": 1, "desired": 2}], queue="q"))
    for name, asks in (("m-0", {"cpu": 200}), ("m-1", {"gpus": 8})):
        cluster.set_pod(pod(name, gang="m", group="all", **asks))
    Decider(cluster).decide(0.0)
    assert waits(cluster, "m")[1] == (
        "needs 8 GPUs; queue q uses 0 of the 4 GPUs of its limit: 4 GPUs short"
    )
