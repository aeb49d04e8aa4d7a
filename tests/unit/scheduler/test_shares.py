"""Shares of GPUs: which cards they get, beside each other and beside whole ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.drawn import node, pod
from tests.support.share_clusters import CARDS, cards, cluster_of, decide, share

from lockstep.api.core import Pod
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.explain.diagnosis import explain
from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.core.resources.columns import GPU_COLUMN
from lockstep.scheduler.core.resources.device_allocation import Grant
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.state.nominations import Nomination
from lockstep.scheduler.core.util.bitmask import indices_of

CASES = [
    # what is shown, the pods as they come, the cards that they get on one node
    ("shares are packed on one card", [(50, 0), (50, 0), (50, 0)], [(0,), (0,), (1,)]),
    (
        "the fullest card that will do",
        [(60, 0), (70, 0), (30, 0), (40, 0)],
        [(0,), (1,), (1,), (0,)],
    ),
    ("memory counts like compute", [(10, 800), (10, 300), (10, 200)], [(0,), (1,), (0,)]),
    ("what is not stated is not counted", [(0, 500), (0, 500), (100, 0)], [(0,), (0,), (0,)]),
    ("several shares are on several cards", [(40, 0, 2), (40, 0, 2)], [(0, 1), (0, 1)]),
    ("and beside others", [(70, 0), (40, 0, 3)], [(0,), (1, 2, 3)]),
]


@pytest.mark.parametrize(("what", "asked", "expected"), CASES, ids=[c[0] for c in CASES])
def test_cards(what, asked, expected):
    pods = [share(f"p{i}", *amounts) for i, amounts in enumerate(asked)]
    assert [held for _, held in decide(cluster_of("a"), *pods)] == expected


def test_a_used_card_on_another_node_beats_a_free_one():
    cluster = cluster_of("a", "b")
    cluster.set_pod(pod("whole", gpus=3, on="a", held="0,1,2"))
    cluster.set_pod(share("there", 50, on="b", held="3"))
    assert decide(cluster, share("p", 50)) == [("b", (3,))]


def test_whole_gpus_and_shares_keep_off_each_other():
    cluster = cluster_of("a")
    found = decide(cluster, share("p", 10), pod("w", gpus=3), share("q", 90), share("r", 1))
    assert found == [("a", (0,)), ("a", (1, 2, 3)), ("a", (0,)), ("", ())]


def test_a_card_with_a_reserved_share_is_never_given_whole():
    cluster = cluster_of("a")
    shape = cluster.shapes.of(share("p", 50).spec, {})
    cluster.table.open_for(shape)
    place = Nomination(WorkloadKey("Pod", "default", "p"), {"p": "a"}, {"p": shape}, "", {})
    place.grants["p"] = Grant(gpus=0b1)
    cluster.nominations.add(place)
    assert decide(cluster, pod("w", gpus=4), pod("v", gpus=3)) == [("", ()), ("a", (1, 2, 3))]
    assert cluster.table.emptied(np.array([0]))[GPU_COLUMN].tolist() == [4]


def test_a_share_that_ends_gives_its_part_back():
    cluster = cluster_of("a")
    decider = Decider(cluster)
    for late in [*(share(f"p{i}", 60) for i in range(4)), share("z", 60)]:
        cluster.set_pod(late)
    decider.decide(0.0)
    assert cards(cluster, "z") == ("", ())
    cluster.remove_pod("default", "p2")
    decider.decide(1.0)
    assert cards(cluster, "z") == ("a", (2,))
    cluster.remove_pod("default", "p1")
    cluster.set_pod(pod("w", gpus=1))
    decider.decide(2.0)
    assert cards(cluster, "w") == ("a", (1,))


def test_ill_cards_hold_no_shares():
    cluster = Cluster()
    devices = [{"index": i, "memory": 1000, "healthy": i == 1} for i in range(2)]
    cluster.set_node(node("a", gpus=1, devices=devices))
    assert decide(cluster, share("p", 50), share("q", 60)) == [("a", (1,)), ("", ())]


def test_memory_may_be_written_in_bytes():
    cluster = cluster_of("a", memory=16384)
    requests = {"lockstep.dev/gpu-memory": "10Gi"}
    first, second = pod("p", requests=requests), pod("q", requests=requests)
    assert decide(cluster, first, second) == [("a", (0,)), ("a", (1,))]


def test_shares_of_a_gang_start_together_or_not_at_all():
    from tests.support.drawn import gang

    cluster = cluster_of("a")
    decider = Decider(cluster)
    cluster.set_gang(gang("g", minMember=9))
    for i in range(8):
        cluster.set_pod(share(f"g-{i}", 50, gang="g"))
    cluster.set_pod(share("g-8", 10, gang="g"))
    decider.decide(0.0)
    found = [cards(cluster, f"g-{i}") for i in range(9)]
    assert [n for n, _ in found] == [""] * 9, "eight halves fill four cards"
    cluster.set_node(node("b", gpus=1))
    decider.decide(1.0)
    assert all(n for n, _ in (cards(cluster, f"g-{i}") for i in range(9)))


WAITING = [
    # what is shown, the pods there, the pod that waits, reason, words
    ("no card is that large", [], (0, 2000), "TooLargeForNodes", "2000 MiB of GPU memory"),
    (
        "cards are in use",
        [(60, 0)] * 4,
        (50, 0),
        "NotEnoughRoom",
        "1 node with 240 of 400 hundredths of GPUs in use",
    ),
]


@pytest.mark.parametrize("case", WAITING, ids=[w[0] for w in WAITING])
def test_what_waits_for_a_share_says_so(case):
    _, there, asked, reason, words = case
    cluster = cluster_of("a")
    decide(cluster, *(share(f"p{i}", *amounts) for i, amounts in enumerate(there)))
    decide(cluster, share("late", *asked))
    found = explain(cluster, cluster.workloads[WorkloadKey("Pod", "default", "late")])
    assert found.reason == reason
    assert words in found.message


def test_a_card_with_shares_is_in_use_and_not_missing():
    cluster = cluster_of("a")
    decide(cluster, share("small", 30), pod("large", gpus=CARDS))
    found = explain(cluster, cluster.workloads[WorkloadKey("Pod", "default", "large")])
    assert found.reason == "NotEnoughRoom"
    assert f"1 node with 1 of {CARDS} GPUs in use" in found.message
    assert found.remedy == "room in the cluster when others end"


def test_whole_gpus_and_shares_in_one_pod_are_refused():
    cluster = cluster_of("a")
    odd = pod("odd", gpus=1, requests={"lockstep.dev/gpu-compute": 10})
    cluster.set_pod(odd)
    found = explain(cluster, cluster.workloads[WorkloadKey("Pod", "default", "odd")])
    assert found.reason == "MixedGpus"


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["share", "whole", "end", "node"]),
        st.integers(0, 11),
        st.sampled_from([10, 25, 30, 50, 80, 100]),
        st.sampled_from([0, 100, 250, 600]),
        st.integers(1, 3),
    ),
    max_size=40,
)


@settings(deadline=None)
@given(EVENTS)
def test_no_card_is_overfull_and_the_state_equals_a_rebuild(events):
    cluster, pods = cluster_of("a", "b"), dict[str, Pod]()
    decider = Decider(cluster)
    for kind, number, compute, memory, count in events:
        name = f"p{number}"
        if kind == "end":
            cluster.remove_pod("default", name)
            pods.pop(name, None)
        elif kind == "node":
            cluster.set_node(node("b", gpus=CARDS, labels={"x": str(number)}))
        elif name not in pods:
            new = share(name, compute, memory, count) if kind == "share" else pod(name, gpus=count)
            pods[name] = new
            cluster.set_pod(new)
        decider.decide(0.0)
        _check(cluster)
    fresh = cluster_of("a")
    fresh.set_node(node("b", gpus=CARDS) if any(e[0] == "node" for e in events) else _b())
    for key, member in cluster.pods.items():
        body = pods[key[1]]
        held = ",".join(map(str, indices_of(member.gpus)))
        from msgspec import structs

        meta = structs.replace(body.metadata, annotations={"lockstep.dev/gpus": held})
        spec = structs.replace(body.spec, node_name=member.node)
        fresh.set_pod(structs.replace(body, metadata=meta, spec=spec))
    for name in cluster.table.rows:
        assert _free(cluster, name) == _free(fresh, name)


def _b() -> Any:
    devices = [{"index": i, "memory": 1000, "nvlink": i // 2} for i in range(CARDS)]
    return node("b", gpus=CARDS, devices=devices)


def _free(cluster: Cluster, name: str) -> dict[str, int]:
    row = cluster.table.rows[name]
    cluster.table.widen()
    values = cluster.table.free[:, row].tolist()
    found = dict(zip(cluster.columns.names, values, strict=True))
    return {column: value for column, value in found.items() if "card/" not in column} | {
        "shared": int(cluster.table.gpu_shared[row]),
        "whole": cluster.table.free_devices(row),
    }


def _check(cluster: Cluster) -> None:
    for name in cluster.table.rows:
        compute, whole = [0] * CARDS, [0] * CARDS
        for member in cluster.on_node(name):
            for card in indices_of(member.gpus):
                if member.shape.share is None:
                    whole[card] += 1
                else:
                    compute[card] += member.shape.share.compute
                    assert compute[card] <= 100
        assert max(whole) <= 1
        assert not any(w and c for w, c in zip(whole, compute, strict=True))
