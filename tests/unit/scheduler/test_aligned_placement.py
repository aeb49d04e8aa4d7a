"""Pods that take NICs or ask for aligned devices: where they go, what they get, what is kept."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.aligned import aligned, cluster_of, machine, placed, shown
from tests.support.drawn import gang, node, pod
from tests.support.examples import examples

from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.resources.alignment import Alignment
from lockstep.scheduler.core.resources.device_allocation import Grant, annotations_of, granted
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.util.bitmask import indices_of

ONE_NODE = [
    # what is shown, pods as they come (GPUs, NICs, CPUs, required), what they get
    (
        "GPUs and NICs of the same roots",
        [(2, 2, 0, "pcie"), (2, 2, 0, "pcie")],
        ["n 01 01 -1", "n 23 23 -1"],
    ),
    (
        "no place where the roots do not go round",
        [(1, 0, 0, ""), (8, 8, 0, "pcie")],
        ["n 0  -1", "   -1"],
    ),
    (
        "one NUMA node each, then none is left",
        [(2, 2, 16, "numa"), (2, 2, 16, "numa"), (2, 2, 16, "numa"), (1, 1, 1, "numa")],
        ["n 01 01 0", "n 23 23 0", "n 45 45 1", "n 6 6 1"],
    ),
    (
        "CPUs of one NUMA node run out before its GPUs do",
        [(1, 0, 32, "numa"), (1, 0, 32, "numa"), (1, 0, 1, "numa")],
        ["n 0  0", "n 4  1", "   -1"],
    ),
    (
        "pods that need not be aligned use CPUs of both",
        [(0, 0, 48, ""), (1, 0, 16, "numa"), (1, 0, 1, "numa")],
        ["n   -1", "n 0  0", "   -1"],
    ),
    (
        "a whole NVLink domain stays for who needs one",
        [(1, 0, 0, ""), (2, 0, 0, "nvlink"), (4, 0, 0, "nvlink")],
        ["n 0  -1", "n 23  -1", "n 4567  -1"],
    ),
    (
        "NICs beside the GPUs even where nobody asks for it",
        [(2, 0, 0, ""), (2, 2, 0, "")],
        ["n 01  -1", "n 23 23 -1"],
    ),
    (
        "who needs no NIC takes GPUs of roots whose NICs are gone",
        [(0, 2, 0, ""), (2, 0, 0, "")],
        ["n  01 -1", "n 01  -1"],
    ),
]


@pytest.mark.parametrize("case", ONE_NODE, ids=[c[0] for c in ONE_NODE])
def test_devices_on_one_node(case):
    _, asked, expected = case
    pods = [
        aligned(f"p{i}", gpus, nics, cpu, must=must)
        for i, (gpus, nics, cpu, must) in enumerate(asked)
    ]
    found = placed(cluster_of(machine("n")), *pods).values()
    assert [" ".join(map(str, one)) for one in found] == expected


NODES = [
    # what is shown, GPUs in use by node, the pod, the node that it goes to
    ("required goes where it fits", {"a": "0", "b": ""}, {"gpus": 4, "must": "nvlink"}, "a"),
    ("and nowhere else", {"a": "0,4", "b": "1,5"}, {"gpus": 4, "must": "nvlink"}, ""),
    ("preferred likewise", {"a": "0,4", "b": "1"}, {"gpus": 4, "may": "nvlink"}, "b"),
    ("but not at any price", {"a": "0,4", "b": "1,5"}, {"gpus": 4, "may": "nvlink"}, "a"),
]


@pytest.mark.parametrize("case", NODES, ids=[c[0] for c in NODES])
@pytest.mark.parametrize("in_a_gang", [False, True])
def test_the_node_of_a_pod(case, in_a_gang):
    _, held, asked, expected = case
    cluster = cluster_of(*(machine(name) for name in held))
    for name, gpus in held.items():
        if gpus:
            count = len(gpus.split(","))
            cluster.set_pod(pod(f"on-{name}", gpus=count, on=name, held=gpus, phase="Running"))
    one = aligned("p", **asked, **({"gang": "g"} if in_a_gang else {}))
    if in_a_gang:
        cluster.set_gang(gang("g", minMember=1))
    assert placed(cluster, one)["p"][0] == expected


CROSSED = [{"index": i, "nvlink": i // 2, "numa": i % 2, "pcie": i % 2} for i in range(4)]
GIVEN_UP = [
    # GPUs in use by node, the node and the GPUs that a pod gets that prefers all of it
    ({"a": ""}, "a 01"),
    ({"a": "0,3", "b": "0,2"}, "b 13"),
    ({"a": "0,2", "b": "0,1"}, "b 23"),
    ({"a": "1,2", "b": "0,1"}, "b 23"),
]


@pytest.mark.parametrize(("held", "expected"), GIVEN_UP)
@pytest.mark.parametrize("in_a_gang", [False, True])
def test_numa_is_given_up_before_nvlink(held, expected, in_a_gang):
    """NVLink pairs lie across the NUMA nodes: nobody has both."""
    sockets = [{"index": i, "cpus": 8, "memory": "1Gi"} for i in range(2)]
    nodes = [node(name, gpus=4, devices=CROSSED, numa_nodes=sockets) for name in held]
    cluster = cluster_of(*nodes)
    for name, gpus in held.items():
        if gpus:
            cluster.set_pod(pod(f"on-{name}", gpus=2, on=name, held=gpus, phase="Running"))
    if in_a_gang:
        cluster.set_gang(gang("g", minMember=1))
    one = aligned("p", 2, may="numa,nvlink", **({"gang": "g"} if in_a_gang else {}))
    assert " ".join(placed(cluster, one)["p"][:2]) == expected


def test_as_many_members_as_possible_are_aligned_if_not_all():
    cluster = cluster_of(machine("n"))
    cluster.set_pod(pod("other", gpus=2, on="n", held="0,4", phase="Running"))
    cluster.set_gang(gang("g", minMember=3))
    decider = Decider(cluster)
    for i in range(3):
        cluster.set_pod(aligned(f"g-{i}", 2, gang="g", may="nvlink"))
    decider.decide(0.0)
    gpus = [shown(cluster, f"g-{i}")[1] for i in range(3)]
    assert sum({int(i) // 4 for i in one} in ({0}, {1}) for one in gpus) == 2
    assert sorted("".join(gpus)) == list("123567")


def test_shares_may_be_aligned_with_nics_and_cpus():
    half = {"lockstep.dev/gpu-compute": 50, "lockstep.dev/gpu-cards": 2}
    pods = [
        aligned(f"p{i}", 0, 1, 8, must="pcie,numa,nvlink", requests=dict(half)) for i in range(3)
    ]
    found = placed(cluster_of(machine("n")), *pods)
    assert found == {
        "p0": ("n", "01", "0", 0),
        "p1": ("n", "01", "1", 0),
        "p2": ("n", "23", "2", 0),
    }


def test_groups_of_a_gang_share_only_nodes_that_align_both():
    cluster = cluster_of(machine("n"))
    groups = [{"name": "large", "min": 1}, {"name": "small", "min": 2}]
    cluster.set_gang(gang("g", groups=groups))
    cluster.set_pod(aligned("l", 4, 4, must="numa,pcie", gang="g", group="large"))
    for i in range(2):
        cluster.set_pod(aligned(f"s{i}", 2, 2, must="numa,pcie", gang="g", group="small"))
    Decider(cluster).decide(0.0)
    taken = [shown(cluster, name) for name in ("l", "s0", "s1")]
    assert [socket for *_, socket in taken] == [0, 1, 1]
    assert [gpus for _, gpus, _, _ in taken] == ["0123", "45", "67"]
    assert all(gpus == nics for _, gpus, nics, _ in taken)


SAID = [
    # what is shown, of the gang, of its group, the pod's annotations, what goes by it
    ("the gang for all members", "nvlink", None, {}, "nvlink"),
    ("a group in place of its gang", "nvlink", "numa", {}, "numa"),
    ("a group that asks for nothing", "nvlink", "", {}, ""),
    ("a pod before both", "nvlink", "numa", {"lockstep.dev/align-required": "pcie"}, "pcie"),
    ("a pod that asks for nothing", "nvlink", None, {"lockstep.dev/align-required": ""}, ""),
]


@pytest.mark.parametrize("case", SAID, ids=[c[0] for c in SAID])
@pytest.mark.parametrize("order", ["gang first", "pod first", "gang late", "gang changed"])
def test_who_says_how_devices_are_aligned(case, order):
    _, of_gang, of_group, told, expected = case
    group: dict[str, Any] = {"name": "g", "min": 1}
    if of_group is not None:
        group["alignment"] = {"required": [of_group] if of_group else []}
    stated = gang("g", groups=[group], alignment={"required": [of_gang]})
    cluster, one = cluster_of(machine("n")), aligned("p", 2, 2, 4, gang="g", annotations=told)
    if order in ("gang first", "gang changed"):
        before = gang("g", minMember=1, alignment={"required": ["numa", "pcie"]})
        cluster.set_gang(before if order == "gang changed" else stated)
    cluster.set_pod(one)
    if order == "gang late":
        cluster.set_gang(gang("g", minMember=1, alignment={"preferred": ["numa"]}))
        cluster.remove_gang("default", "g")
        assert not (cluster.pods["default", "p"].shape.alignment.preferred)
    cluster.set_gang(stated)
    wish = cluster.pods["default", "p"].shape.alignment
    assert wish == Alignment(frozenset([expected] if expected else []))


def test_what_a_gang_requires_of_its_members_is_kept():
    cluster = cluster_of(machine("a"), machine("b"))
    for name, held in (("a", "0,4"), ("b", "1")):
        cluster.set_pod(pod(f"on-{name}", gpus=len(held) // 2 + 1, on=name, held=held))
    cluster.set_gang(gang("g", minMember=1, alignment={"required": ["nvlink"]}))
    assert placed(cluster, aligned("p", 4, gang="g"))["p"] == ("b", "4567", "", -1)


def test_what_a_pod_holds_is_counted_again_from_its_annotations():
    cluster = cluster_of(machine("n"))
    before = placed(cluster, aligned("p", 2, 2, 16, must="numa,pcie"))["p"]
    told = annotations_of(cluster.pods["default", "p"].grant, cluster.table.layout_of("n"))
    assert told == {
        "lockstep.dev/gpus": "0,1",
        "lockstep.dev/nics": "0,1",
        "lockstep.dev/hcas": "mlx5_0,mlx5_1",
        "lockstep.dev/numa": "0",
    }
    later = Cluster()  # pods may be heard of before their nodes
    later.set_pod(aligned("p", 2, 2, 16, must="numa,pcie", on="n", annotations=told))
    later.set_node(machine("n"))
    assert shown(later, "p") == before
    second = placed(later, aligned("q", 2, 2, 17, must="numa,pcie"))["q"]
    assert second == ("n", "45", "45", 1)
    later.remove_pod("default", "p")
    assert placed(later, aligned("r", 4, 4, 32, must="numa,pcie"))["r"] == ("n", "0123", "0123", 0)


@pytest.mark.parametrize(
    ("told", "grant"),
    [
        ({}, Grant()),
        ({"lockstep.dev/numa": "1"}, Grant(socket=1)),
        ({"lockstep.dev/nics": "0,2", "lockstep.dev/numa": "-3"}, Grant(nics=0b101)),
    ],
)
def test_annotations_are_read_leniently(told, grant):
    assert granted(told) == grant


REQUESTS = st.tuples(
    st.integers(0, 4),
    st.integers(0, 4),
    st.integers(0, 20),
    st.sets(st.sampled_from(["nvlink", "numa", "pcie"])).map(sorted).map(",".join),
)


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(REQUESTS, max_size=8), st.lists(st.integers(0, 7), max_size=3))
def test_no_device_is_given_twice_and_only_aligned_ones(asked, gone):
    cluster = cluster_of(machine("n"))
    pods = [
        aligned(f"p{i}", gpus, nics, cpu, must=must)
        for i, (gpus, nics, cpu, must) in enumerate(asked)
    ]
    placed(cluster, *pods)
    for i in gone:
        cluster.remove_pod("default", f"p{i}")
    again = [aligned(f"q{i}", *one[:3], must=one[3]) for i, one in enumerate(asked)]
    placed(cluster, *again)
    _check(cluster)


def _check(cluster: Cluster) -> None:
    standing = [m for m in cluster.pods.values() if m.node]
    for kind in (0, 1):
        masks = [member.grant[kind] for member in standing]
        assert sum(masks) == sum(1 << i for i in range(8) if any(m >> i & 1 for m in masks))
    cpus = [0, 0]
    for member in standing:
        gpus, nics = indices_of(member.grant.gpus), indices_of(member.grant.nics)
        shape, must = member.shape, member.shape.alignment.required
        assert (len(gpus), len(nics)) == (shape.gpus, shape.nics)
        if "nvlink" in must:
            assert len({i // 4 for i in gpus}) == 1
        if "pcie" in must:
            assert {i // 2 for i in gpus} == {i // 2 for i in nics}
        if "numa" in must:
            assert {i // 4 for i in (*gpus, *nics)} <= {member.grant.socket}
            cpus[member.grant.socket] += shape.cpu
    assert max(cpus) <= 32000
    assert sum(member.shape.cpu for member in standing) <= 64000


@pytest.mark.parametrize("devices", [None, [{"index": i} for i in range(4)]])
def test_nics_a_node_counts_without_description_are_equal(devices):
    told = {} if devices is None else {"devices": devices}
    cluster = cluster_of(node("n", gpus=4, extended={"lockstep.dev/nics": 2}, **told))
    for number in range(2):
        cluster.set_pod(aligned(f"p{number}", 2, 1, gang="g"))
    cluster.set_gang(gang("g", minMember=2))
    Decider(cluster).decide(0.0)
    assert [shown(cluster, f"p{number}")[1:3] for number in range(2)] == [("01", "0"), ("23", "1")]
    assert placed(cluster, aligned("late", 0, 1))["late"][0] == ""


ONLY_DEVICES = [{"index": i, "nvlink": 0, "numa": i // 2, "pcie": i} for i in range(4)]
"""What a node states of its GPUs that states no NUMA nodes."""
NOWHERE = ("", "", "", -1)


@pytest.mark.parametrize(
    ("gpus", "cpu", "devices", "expected"),
    [
        (2, 0, ONLY_DEVICES, ("n", "01", "", 0)),
        (3, 0, ONLY_DEVICES, NOWHERE),  # more than one NUMA node has
        (2, 1, ONLY_DEVICES, NOWHERE),  # whose CPUs they would be is not known
        (2, 0, [{"index": i, "nvlink": 0, "pcie": i} for i in range(4)], NOWHERE),
    ],
)
def test_devices_alone_say_their_numa_nodes(gpus, cpu, devices, expected):
    cluster = cluster_of(node("n", gpus=4, devices=devices))
    found = placed(cluster, aligned("p", gpus, 0, cpu, must="numa"))
    assert found["p"] == expected
