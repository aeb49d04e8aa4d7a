"""Who holds what a gang lacks, what is short of it, and who would have to leave."""

import pytest
from msgspec.structs import replace
from tests.support.drawn import add, draw, draw_gang, gang, node, pod

from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.explain.diagnosis import explain
from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.core.state.cluster import Cluster


def test_holders_in_other_namespaces_are_counted_and_not_named():
    cluster = draw(Cluster(), "s1/l1: a:8-2")
    theirs = pod("secret", gpus=3, on="a", held="2,3,4")
    elsewhere = replace(theirs.metadata, namespace="other")
    cluster.set_pod(replace(theirs, metadata=elsewhere))
    add(cluster, draw_gang("g: 1x8"))
    (key,) = Decider(cluster).decide(0.0).failed
    message = explain(cluster, cluster.workloads[key]).message
    assert "held by pod hold-a (2 GPUs) and other namespaces (3 GPUs)" in message
    assert "secret" not in message


HALF = {"lockstep.dev/gpu-compute": 50}


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        pytest.param({"gpus": 4}, "parts of 2 GPUs", id="whole GPUs"),
        pytest.param({"requests": {"lockstep.dev/gpu-compute": 80}}, "parts of 2 GPUs", id="share"),
        pytest.param({"cpu": 90}, "6 CPUs", id="CPUs alone"),
    ],
)
def test_share_holders_are_named_by_their_shared_cards(wanted, said):
    cluster = Cluster()
    cluster.set_node(node("a", gpus=4, devices=[{"index": n, "memory": 1000} for n in range(4)]))
    for number, card in enumerate((0, 0, 1)):
        there = {"on": "a", "held": str(card), "phase": "Running", "gang": "s"}
        cluster.set_pod(pod(f"s-{number}", cpu=2, requests=HALF, **there))
    cluster.set_gang(gang("s", minMember=3))
    cluster.set_pod(pod("w", cpu=2, gpus=2, on="a", held="2,3", phase="Running"))
    cluster.set_pod(pod("p", **wanted))
    (key,) = Decider(cluster).decide(0.0).failed
    message = explain(cluster, cluster.workloads[key]).message
    whole = "2 CPUs" if "cpu" in wanted else "2 GPUs"
    assert f"held by gang s ({said}) and pod w ({whole})" in message


@pytest.mark.parametrize(("free", "helps"), [(1, True), (0, False)])
def test_ending_others_helps_nothing_where_only_own_members_stand(free, helps):
    cluster = draw(Cluster(), f"s1/l1: a:{2 + free}")
    cluster.set_gang(gang("g", groups=[{"name": "w", "min": 2, "desired": 3}]))
    there = {"gang": "g", "group": "w", "on": "a", "phase": "Running"}
    for number in range(2):
        cluster.set_pod(pod(f"g-{number}", gpus=1, held=str(number), **there))
    if free:
        cluster.set_pod(pod("p", gpus=1, on="a", held="2", phase="Running"))
    cluster.set_pod(pod("g-2", gpus=1, gang="g", group="w"))
    (key,) = Decider(cluster).decide(0.0).failed
    verdict = explain(cluster, cluster.workloads[key])
    assert "its own members (2 GPUs)" in verdict.message
    assert ("when others end" in verdict.remedy) == helps
    assert ("even empty, " in verdict.message) == (not helps)


def test_of_what_is_short_nothing_is_told_that_is_not():
    cluster = draw(Cluster(), "s1/l1: a:8")
    add(cluster, draw_gang("g: head=1xcpu4 + worker=2x8"))
    (key,) = Decider(cluster).decide(0.0).failed
    assert (
        "has room for 2 of 3 now: 1 pod (8 GPUs) short"
        in explain(cluster, cluster.workloads[key]).message
    )


def test_wanted_members_are_not_counted_as_needed():
    cluster = draw(Cluster(), "s1/l1: a:8-4 b:8-4")
    add(cluster, draw_gang("g: head=1..3xcpu4 + worker=1x8"))
    (key,) = Decider(cluster).decide(0.0).failed
    message = explain(cluster, cluster.workloads[key]).message
    assert "needs 1 pod x 4 CPUs and 1 pod x 8 GPUs; the cluster has room for 1 of 2 now" in message


def test_reserved_room_is_told_apart_from_room_in_use():
    cluster = draw(Cluster(), "s1/l1: a:8 b:8")
    runtime = {"annotations": {"lockstep.dev/runtime": "3600"}}
    cluster.set_pod(pod("r", gpus=8, on="a", phase="Running", **runtime))
    decider = Decider(cluster)
    decider.decide(0.0)
    cluster.pods["default", "r"].since = 0.0
    add(cluster, draw_gang("first: 2x8"))
    add(cluster, draw_gang("g: 1x4"))
    decider.decide(1.0)
    assert cluster.reservations.room is not None
    message = explain(cluster, cluster.workloads[WorkloadKey("Gang", "default", "g")]).message
    assert "2 nodes with 8 of 16 GPUs in use and 8 kept for others" in message
