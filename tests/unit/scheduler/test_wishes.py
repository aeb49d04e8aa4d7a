"""Which nodes gangs would rather have: those that fit are not all equal."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.drawn import add, draw_gang, gang, node, places, pod, queue

from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.state.cluster import Cluster

SOFT = "lockstep.dev/simulated"


def cluster(*, real: tuple[str, ...] = ("real",), cpu: int = 4, **more: Any) -> Cluster:
    """Two leaves of simulated nodes with GPUs, and small real ones without."""
    made = Cluster()
    for leaf in ("l1", "l2"):
        for i in range(2):
            where = {"spine": "s", "leaf": leaf}
            made.set_node(node(f"sim-{leaf}-{i}", labels=where, soft=[SOFT]))
    for name in real:
        made.set_node(node(name, gpus=0, cpu=cpu, **more))
    return made


CASES = [
    # what is shown, real nodes of 4 CPUs, the gang, where it goes
    ("fits on the real node exactly", ("real",), "g: 4xcpu1", {"real"}),
    ("one large pod fits on the real node", ("real",), "g: 1xcpu4", {"real"}),
    ("many more CPUs than the simulated nodes miss", ("real",), "g: 2xcpu2", {"real"}),
    ("real nodes together before one simulated", ("a", "b"), "g: 2xcpu3", {"a", "b"}),
    ("does not fit: whole on simulated nodes", ("real",), "g: 5xcpu1", {"sim-l1-0"}),
    ("pods with GPUs have no choice", ("real",), "g: 2x8", {"sim-l1-0", "sim-l1-1"}),
    (
        "a required tier that the real node is not in",
        ("real",),
        "g: 2xcpu1 leaf",
        {"sim-l1-0"},
    ),
    (
        "a preferred tier that it is not in is looked at first",
        ("a", "b"),
        "g: 2xcpu3 ~leaf",
        {"sim-l1-0"},
    ),
    (
        "roles stay together where one of them needs GPUs",
        ("real",),
        "g: head=1xcpu1 + worker=2x8",
        {"sim-l1-0", "sim-l1-1"},
    ),
]


@pytest.mark.parametrize(("shown", "real", "text", "where"), CASES, ids=[c[0] for c in CASES])
def test_gangs_prefer_nodes_without_soft_taints(
    shown: str, real: tuple[str, ...], text: str, where: set[str]
) -> None:
    made = cluster(real=real)
    add(made, draw_gang(text))
    Decider(made).decide(0.0)
    assert set(places(made, "g").values()) == where


def test_a_gang_that_spreads_stays_on_the_nodes_it_likes() -> None:
    made = cluster(real=("a", "b"))
    add(made, draw_gang("g: 4xcpu1", strategy="Spread"))
    Decider(made).decide(0.0)
    assert sorted(places(made, "g").values()) == ["a", "a", "b", "b"]


def test_a_toleration_makes_them_equal() -> None:
    made = cluster()
    made.set_gang(gang("g", minMember=2))
    bears = [{"key": SOFT, "operator": "Exists"}]
    for i in range(2):
        made.set_pod(pod(f"g-{i}", gpus=4, gang="g", tolerations=bears))
    Decider(made).decide(0.0)
    assert set(places(made, "g").values()) == {"sim-l1-0"}


def prefers(weight: int, key: str) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": key, "operator": "Exists"}]}
    return {"weight": weight, "preference": term}


@pytest.mark.parametrize(
    ("wishes", "where"),
    [
        ([], {"any"}),
        ([prefers(1, "new")], {"new-0", "new-1"}),
        ([prefers(1, "new"), prefers(2, "fast")], {"fast"}),
        ([prefers(1, "absent")], {"any"}),
    ],
)
def test_preferred_affinity_goes_before_tightness(
    wishes: list[dict[str, Any]], where: set[str]
) -> None:
    made = Cluster()
    made.set_node(node("any", labels={"leaf": "a", "spine": "s"}))
    made.set_node(node("fast", cpu=200, labels={"leaf": "b", "spine": "s", "fast": "yes"}))
    for i in range(2):
        labels = {"leaf": "c", "spine": "s", "new": "yes"}
        made.set_node(node(f"new-{i}", gpus=4, labels=labels))
    made.set_gang(gang("g", minMember=2, topology={"required": "leaf"}))
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": wishes}}
    for i in range(2):
        made.set_pod(pod(f"g-{i}", gpus=4, gang="g", affinity=affinity))
    Decider(made).decide(0.0)
    assert set(places(made, "g").values()) == where


@pytest.mark.parametrize("members", [1, 3])
def test_members_without_gpus_leave_nodes_with_gpus_free(members: int) -> None:
    made = Cluster()
    made.set_node(node("a", gpus=8, cpu=8))
    made.set_node(node("b", gpus=0, cpu=96))
    add(made, draw_gang(f"g: {members}xcpu2"))
    Decider(made).decide(0.0)
    assert set(places(made, "g").values()) == {"b"}


def test_a_soft_taint_outweighs_the_gpus_of_a_node() -> None:
    made = Cluster()
    made.set_node(node("soft", gpus=0, soft=["t"]))
    made.set_node(node("gpus", gpus=8))
    add(made, draw_gang("g: 2xcpu2"))
    Decider(made).decide(0.0)
    assert set(places(made, "g").values()) == {"gpus"}


def test_a_lost_member_comes_back_to_where_the_others_are() -> None:
    made = cluster(cpu=4)
    add(made, draw_gang("g: 5xcpu1"))
    decider = Decider(made)
    decider.decide(0.0)
    made.remove_pod("default", "g-3")
    made.set_pod(pod("g-3", cpu=1, gang="g", group="all", uid="again"))
    decider.decide(1.0)
    assert set(places(made, "g").values()) == {"sim-l1-0"}


def test_wishes_hold_on_nodes_that_a_model_limit_leaves() -> None:
    made, model = Cluster(), "nvidia.com/gpu.product"
    made.set_node(node("full", gpus=16, labels={"leaf": "a", "spine": "s", model: "H100"}))
    for name in ("tight-0", "tight-1"):
        labels = {"leaf": "b", "spine": "s", model: "A100"}
        made.set_node(node(name, soft=[SOFT], labels=labels))
    for name in ("liked-0", "liked-1", "liked-2"):
        made.set_node(node(name, labels={"leaf": "c", "spine": "s", model: "A100"}))
    made.set_queue(queue("q", limit={"nvidia.com/gpu/H100": 0}))
    add(made, draw_gang("g: 2x8 leaf", queue="q"))
    Decider(made).decide(0.0)
    assert set(places(made, "g").values()) == {"liked-0", "liked-1"}
