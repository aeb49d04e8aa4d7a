"""Where ranks go: clusters drawn in a few lines, jobs that state their parallelism."""

from itertools import permutations

import pytest
from tests.support.drawn import draw, gang, pod
from tests.support.ranked_jobs import TWO_LEAVES, add_job

from lockstep.api.parallelism import Parallelism
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.explain.diagnosis import explain
from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.core.ranks.collectives import collectives
from lockstep.scheduler.core.state.cluster import Cluster


def nodes(cluster: Cluster, pods: int) -> list[str]:
    return [cluster.pods["default", f"j-{i}"].node for i in range(pods)]


def placed(drawing: str, pods: int, gpus: int, **spec) -> list[str]:
    cluster = draw(Cluster(), drawing)
    add_job(cluster, pods, gpus, **spec)
    Decider(cluster).decide(0.0)
    return nodes(cluster, pods)


def leaves(found: list[str]) -> list[str]:
    return [name[:1] for name in found]


TIED = """
    s1/l1: a1:8 a2:8 a3:8
    s1/l2: b1:8
    s2/l1: c1:8 c2:8
    s2/l2: d1:8 d2:8
"""


@pytest.mark.parametrize(
    ("split", "spine"),
    [
        ({"tensor": 8, "pipeline": 2}, "cd"),  # the two copies of a stage under one leaf
        ({"tensor": 8}, "ab"),  # four copies touch two leaves in either
    ],
)
def test_of_equally_tight_domains_that_with_the_least_communication_wins(split, spine):
    found = placed(TIED, 4, 8, topology={"required": "spine"}, **split)
    assert set(leaves(found)) == set(spine)


def test_stages_talk_less_than_copies_so_stages_are_split():
    # Megatron's order: ranks 0-3 are the copies of the first stage, 4-7 those of the second.
    found = placed(TWO_LEAVES, 8, 8, tensor=8, pipeline=2)
    assert leaves(found[:4]) in (list("aaaa"), list("bbbb"))
    assert len(set(leaves(found[4:]))) == 1


def test_stages_stay_together_where_they_talk_more_than_copies():
    many = {"microBatches": 4096, "parameters": "1G"}
    found = placed(TWO_LEAVES, 8, 8, tensor=1, pipeline=2, model=many, order="tp-dp-pp")
    first, second = leaves(found[:4]), leaves(found[4:])
    assert first == second


def test_the_order_of_ranks_decides_which_are_copies():
    found = placed(TWO_LEAVES, 8, 8, tensor=8, pipeline=2, order="tp-pp-dp")
    assert leaves(found[0::2]) in (list("aaaa"), list("bbbb"))
    assert len(set(leaves(found[1::2]))) == 1


def test_uneven_leaves_hold_whole_groups_where_they_can():
    drawing = "s1/l1: a1:8 a2:8 a3:8\n s1/l2: b1:8 b2:8 b3:8\n s1/l3: c1:8 c2:8 c3:8 c4:8"
    found = placed(drawing, 6, 8, tensor=8, pipeline=2)
    assert len(set(leaves(found[:3]))) == 1
    assert len(set(leaves(found[3:]))) == 1


TENSOR = [
    # what is shown, cluster, pods, GPUs a pod, parallelism, how the pods share nodes
    (
        "tensor groups of several pods never leave a node",
        "s1/l1: a:8-3 b:8-4 c:8",
        8,
        1,
        {"tensor": 4},
        [(0, 1, 2, 3), (4, 5, 6, 7)],
    ),
    ("a node holds several of them", "s1/l1: a:8", 4, 2, {"tensor": 4}, [(0, 1, 2, 3)]),
    (
        "and they need not be powers of two",
        "s1/l1: a:6 b:6",
        4,
        3,
        {"tensor": 6},
        [(0, 1), (2, 3)],
    ),
]


@pytest.mark.parametrize("case", TENSOR, ids=[t[0] for t in TENSOR])
def test_tensor_groups(case):
    _, drawing, pods, gpus, split, together = case
    found = placed(drawing, pods, gpus, **split)
    assert all(found)
    for group in together:
        assert len({found[i] for i in group}) == 1, found


@pytest.mark.parametrize("order", [*permutations(["tp", "cp", "pp", "dp"])], ids="-".join)
def test_whatever_the_order_tensor_groups_stay_on_a_node(order):
    split = {"tensor": 2, "context": 2, "pipeline": 2, "order": "-".join(order)}
    found = placed("s1/l1: a:8 b:8", 8, 2, **split)
    groups = next(one for one in collectives(Parallelism(**split), 16) if one.name == "tensor")
    assert all(found)
    for ranks in groups.groups.tolist():
        assert len({found[rank // 2] for rank in ranks}) == 1, found


def test_pods_of_unequal_rank_counts_keep_tensor_groups_together():
    cluster = draw(Cluster(), "s1/l1: a:4 b:6")
    add_job(cluster, 3, 2, tensor=8)
    cluster.set_pod(pod("j-2", gpus=4, gang="j", group="w", annotations={"lockstep.dev/rank": "2"}))
    decider = Decider(cluster)
    decider.decide(0.0)
    assert nodes(cluster, 3) == ["", "", ""]
    draw(cluster, "s1/l1: c:8")
    decider.decide(1.0)
    assert nodes(cluster, 3) == ["c", "c", "c"]


WAITING = [
    # what is shown, cluster, pods, GPUs a pod, parallelism, reason, words of the message
    (
        "no node holds the tensor group",
        "s1/l1: a:4 b:4",
        2,
        4,
        {"tensor": 8},
        "TooLargeForNodes",
        "a tensor group of 2 pods asks for 8 GPUs",
    ),
    (
        "there is room for some of them only",
        "s1/l1: a:8-2 b:8-6 c:4",
        6,
        2,
        {"tensor": 4},
        "NotEnoughRoom",
        "needs 3 tensor groups of 2 pods (4 GPUs a group); the cluster has room for 4 of 6 now: "
        "2 pods (4 GPUs) short",
    ),
    (
        "the order numbers a tensor group far apart",
        "s1/l1: a:6 b:2",
        4,
        2,
        {"tensor": 2, "pipeline": 4, "order": "pp-tp"},
        "NotEnoughRoom",
        "needs 2 tensor groups of 2 pods (4 GPUs a group); the cluster has room for 2 of 4 now: "
        "2 pods (4 GPUs) short",
    ),
    (
        "the order numbers copies before tensor groups",
        "s1/l1: a:12 b:4",
        8,
        2,
        {"tensor": 4, "pipeline": 2, "order": "dp-tp-pp"},
        "NotEnoughRoom",
        "needs 2 tensor groups of 4 pods (8 GPUs a group); the cluster has room for 4 of 8 now: "
        "4 pods (8 GPUs) short",
    ),
]


@pytest.mark.parametrize("case", WAITING, ids=[w[0] for w in WAITING])
def test_what_waits_says_so_in_tensor_groups(case):
    _, drawing, pods, gpus, split, reason, message = case
    cluster = draw(Cluster(), drawing)
    add_job(cluster, pods, gpus, **split)
    Decider(cluster).decide(0.0)
    assert not any(nodes(cluster, pods))
    found = explain(cluster, cluster.workloads[WorkloadKey("Gang", "default", "j")])
    assert found.reason == reason
    assert message in found.message


def test_tensor_group_pods_wanting_different_nodes_get_the_reason():
    cluster = draw(Cluster(), "s1/l1: a:8")
    add_job(cluster, 2, 4, tensor=8)
    rank = {"lockstep.dev/rank": "1"}
    odd = pod("j-1", gpus=4, gang="j", group="w", annotations=rank, nodeSelector={"leaf": "l1"})
    cluster.set_pod(odd)
    found = explain(cluster, cluster.workloads[WorkloadKey("Gang", "default", "j")])
    assert found.reason == "TensorGroupTorn"
    assert "j-0 and j-1" in found.message


def test_an_nvlink_tier_holds_tensor_groups_across_its_nodes():
    from lockstep.api.topology import Topology, TopologySpec
    from lockstep.api.wire import convert

    tiers = [
        {"name": "spine", "label": "spine"},
        {"name": "rack", "label": "leaf", "nvlink": True},
        {"name": "node", "label": "kubernetes.io/hostname"},
    ]
    cluster = Cluster()
    spec = convert({"tiers": tiers}, TopologySpec)
    cluster.set_topology(convert({"metadata": {"name": "default"}, "spec": spec}, Topology))
    draw(cluster, "s1/l1: a1:4 a2:4 a3:4\n s1/l2: b1:4 b2:4 b3:4")
    add_job(cluster, 4, 4, tensor=8)
    Decider(cluster).decide(0.0)
    found = leaves(nodes(cluster, 4))
    assert all(found)
    assert found[0] == found[1]
    assert found[2] == found[3]


def test_a_lost_member_returns_to_its_tensor_groups_node():
    cluster = draw(Cluster(), "s1/l1: a:8 b:8")
    add_job(cluster, 4, 2, on={0: "a:0,1", 1: "a:2,3", 2: "b:0,1"}, tensor=4)
    Decider(cluster).decide(0.0)
    assert nodes(cluster, 4) == ["a", "a", "b", "b"]


def test_members_that_stand_draw_their_groups_to_them():
    cluster = draw(Cluster(), TWO_LEAVES)
    whole = ",".join(str(i) for i in range(8))
    add_job(cluster, 8, 8, on={1: f"b1:{whole}", 6: f"a1:{whole}"}, tensor=8, pipeline=2)
    Decider(cluster).decide(0.0)
    found = leaves(nodes(cluster, 8))
    assert found == list("bbbbaaaa")


def test_members_without_ranks_are_placed_beside():
    cluster = draw(Cluster(), "s1/l1: a:8 b:8 z:0")
    groups = [
        {"name": "launcher", "min": 1, "processes": 0},
        {"name": "worker", "min": 4, "processes": 4},
    ]
    cluster.set_gang(gang("j", groups=groups, parallelism={"tensor": 8}))
    cluster.set_pod(pod("j-launcher", cpu=1, gang="j", group="launcher"))
    for i in range(4):
        rank = {"lockstep.dev/rank": str(i + 1)}
        cluster.set_pod(pod(f"j-{i}", gpus=4, gang="j", group="worker", annotations=rank))
    Decider(cluster).decide(0.0)
    found = nodes(cluster, 4)
    assert cluster.pods["default", "j-launcher"].node == "z"
    assert sorted(found) == ["a", "a", "b", "b"]
    assert found[0] == found[1]


def test_pods_of_one_tensor_group_share_an_nvlink_domain():
    from tests.support.drawn import node

    cluster = Cluster()
    pairs = [{"index": i, "nvlink": i // 4} for i in range(8)]
    cluster.set_node(node("a", gpus=8, labels={"spine": "s", "leaf": "l"}, devices=pairs))
    cluster.set_pod(pod("other", gpus=1, on="a", held="1", scheduler="x"))
    add_job(cluster, 4, 1, tensor=4)
    Decider(cluster).decide(0.0)
    held = 0
    for i in range(4):
        held |= cluster.pods["default", f"j-{i}"].gpus
    assert held == 0b11110000
