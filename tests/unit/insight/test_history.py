"""What objects say becomes records, and records a timeline without gap or overlap."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.api import timestamp
from lockstep.api.core import Node, Pod
from lockstep.api.gang import Gang
from lockstep.api.packing import pack, unpack
from lockstep.api.wire import convert
from lockstep.insight.history.deriving import claims, gone, gpu_share, node_span
from lockstep.insight.history.records import Claim, NodeSpan, Records, merge
from lockstep.insight.history.store import Store
from lockstep.insight.history.timeline import stray, stretches

Json = dict[str, Any]


def at(seconds: int) -> str:
    return timestamp.show(1_000_000 + seconds)


def pod(
    bound: int | None = 0,
    started: int | None = None,
    finished: int | None = None,
    *,
    phase: str = "Running",
    ask: Json | None = None,
    gpus: str = "0,1",
    deleted: int | None = None,
) -> Pod:
    meta: Json = {
        "name": "p",
        "namespace": "s",
        "uid": "u",
        "annotations": {"lockstep.dev/gpus": gpus},
        "labels": {"lockstep.dev/gang": "g", "lockstep.dev/job": "j"},
        "creationTimestamp": at(-5),
    }
    if deleted is not None:
        meta["deletionTimestamp"] = at(deleted)
    status: Json = {"phase": phase}
    if bound is not None:
        status["conditions"] = [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": at(bound)}
        ]
    if finished is not None:
        ended = {"exitCode": 0, "finishedAt": at(finished)}
        ended |= {"startedAt": at(started)} if started is not None else {}
        status["containerStatuses"] = [{"name": "m", "state": {"terminated": ended}}]
    elif started is not None:
        status["containerStatuses"] = [
            {"name": "m", "state": {"running": {"startedAt": at(started)}}}
        ]
    requests = ask or {"nvidia.com/gpu": "2"}
    spec = {"nodeName": "n", "containers": [{"name": "m", "resources": {"limits": requests}}]}
    return convert({"metadata": meta, "spec": spec, "status": status}, Pod)


GANG = convert(
    {
        "metadata": {"name": "g", "annotations": {"lockstep.dev/creator": "ana"}},
        "spec": {"queue": "research"},
    },
    Gang,
)
NODE = convert(
    {
        "metadata": {
            "name": "n",
            "uid": "nu",
            "labels": {"karpenter.sh/capacity-type": "spot", "nvidia.com/gpu.product": "H100"},
            "annotations": {
                "lockstep.dev/devices": '[{"index":0,"memory":1000},{"index":1,"memory":1000}]'
            },
        },
        "status": {"capacity": {"nvidia.com/gpu": "2"}},
    },
    Node,
)
BASE = 1_000_000.0

SPANS = [
    (pod(0), [("starting", 0, None, False)]),
    (pod(0, 4), [("starting", 0, 4, False), ("running", 4, None, False)]),
    (
        pod(0, 4, 9, phase="Succeeded"),
        [("starting", 0, 4, False), ("running", 4, 9, False)],
    ),
    (pod(None), []),
    (pod(None, 4), [("starting", -5, 4, False), ("running", 4, None, False)]),
    (pod(0, phase="Failed"), [("starting", 0, 50, True)]),
    (pod(0, phase="Failed", deleted=20), [("starting", 0, 20, False)]),
    # A clock of a node that is behind: nothing ends before it begins.
    (pod(8, 4, 6, phase="Failed"), [("starting", 8, 8, False)]),
]


@pytest.mark.parametrize(("member", "expected"), SPANS)
def test_a_pods_objects_give_its_spans(member: Pod, expected: list[Any]) -> None:
    found = [c for c in claims(member, GANG, NODE, BASE + 50) if c.gpu == 1]
    shown = [
        (c.purpose, c.start - BASE, None if c.end is None else c.end - BASE, c.guessed)
        for c in found
    ]
    assert shown == expected


def test_a_claim_names_who_holds_it() -> None:
    found = claims(pod(0), GANG, NODE, BASE)
    assert [(c.gpu, c.queue, c.user, c.gang, c.job, c.node) for c in found] == [
        (gpu, "research", "ana", "g", "j", "n") for gpu in (0, 1)
    ]


@pytest.mark.parametrize("member", [pod(0, gpus=""), pod(0, gpus="0,x"), pod(0, gpus="-1")])
def test_a_pod_without_readable_gpus_claims_none(member: Pod) -> None:
    assert claims(member, GANG, NODE, BASE) == []


@pytest.mark.parametrize(
    ("ask", "share"),
    [
        ({"nvidia.com/gpu": "1"}, 1.0),
        ({"lockstep.dev/gpu-compute": "30"}, 0.3),
        ({"lockstep.dev/gpu-memory": "250"}, 0.25),
        ({"lockstep.dev/gpu-memory": "250Mi", "lockstep.dev/gpu-compute": "10"}, 0.25),
        ({"lockstep.dev/gpu-memory": "250", "lockstep.dev/gpu-compute": "50"}, 0.5),
        ({"cpu": "1"}, 1.0),
        ({"lockstep.dev/gpu-memory": "many"}, 1.0),
    ],
)
def test_a_share_is_the_larger_of_memory_and_compute(ask: Json, share: float) -> None:
    assert gpu_share(pod(0, ask=ask), NODE) == pytest.approx(share)


@pytest.mark.parametrize(
    ("leaving", "deleted", "end", "guessed"),
    [
        (30.0, 20.0, 20.0, False),
        (30.0, None, 30.0, False),
        (None, 20.0, 20.0, False),
        (None, None, 100.0, True),
        (500.0, None, 100.0, False),
        (None, 3.0, 10.0, False),
    ],
)
def test_a_pod_that_is_gone_ends_when_it_was_to(
    leaving: float | None, deleted: float | None, end: float, guessed: bool
) -> None:
    open_claim = claim("u", 0, 10.0, None, leaving=leaving)
    closed = gone(open_claim, deleted, now=100.0)
    assert (closed.end, closed.guessed) == (end, guessed)


def test_a_node_span_knows_spot_and_model() -> None:
    span = node_span(NODE, 7.0)
    assert span is not None
    assert (span.gpus, span.spot, span.model, span.start) == (2, True, "H100", 7.0)


def claim(uid: str, gpu: int, start: float, end: float | None, **more: Any) -> Claim:
    fields: Json = {
        "purpose": "running",
        "node": "n",
        "namespace": "s",
        "pod": uid,
        "gang": "g",
        "job": "j",
        "queue": "q",
        "user": "",
        "share": 1.0,
    }
    return Claim(pod_uid=uid, gpu=gpu, start=start, end=end, **(fields | more))


TIMES = st.integers(0, 100).map(float)
SHARES = st.sampled_from([0.1, 0.25, 0.5, 1.0])


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[NodeSpan], list[Claim]]:
    nodes, at_time = [], 0.0
    for version in range(draw(st.integers(1, 3))):
        start = at_time + draw(st.integers(0, 20))
        at_time = start + draw(st.integers(0, 50))
        end = None if draw(st.booleans()) and version == 2 else at_time
        nodes.append(NodeSpan("nu", "n", draw(st.integers(1, 2)), start, end))
    drawn = draw(st.lists(st.tuples(st.integers(0, 2), TIMES, st.none() | TIMES, SHARES)))
    held = [
        claim(f"u{i}", gpu, start, None if end is None else max(start, end), share=share)
        for i, (gpu, start, end, share) in enumerate(drawn)
    ]
    return nodes, held


@given(worlds(), TIMES, TIMES)
def test_a_gpus_time_has_no_gap_and_no_overlap(
    world: tuple[list[NodeSpan], list[Claim]], one: float, other: float
) -> None:
    nodes, held = world
    start, end = sorted((one, other))
    found = list(stretches(nodes, held, start, end))
    by_card: dict[tuple[float, int], list[Any]] = {}
    for s in found:
        by_card.setdefault((s.node.start, s.gpu), []).append(s)
        assert s.free + sum(part for _, part in s.holders) == pytest.approx(1.0)
    for node in nodes:
        first, last = max(node.start, start), min(end if node.end is None else node.end, end)
        for gpu in range(node.gpus):
            pieces = by_card.pop((node.start, gpu), []) if last > first else []
            if last > first:
                assert (pieces[0].start, pieces[-1].end) == (first, last)
            assert all(a.end == b.start for a, b in pairwise(pieces))
    assert not by_card


@given(worlds())
def test_held_and_stray_seconds_are_all_that_was_claimed(
    world: tuple[list[NodeSpan], list[Claim]],
) -> None:
    nodes, held = world
    lone = [c for i, c in enumerate(held) if c.gpu not in {d.gpu for d in held[:i]}]
    there = sum(p * s.seconds for s in stretches(nodes, lone, 0, 100) for _, p in s.holders)
    asked = sum(((100 if c.end is None else c.end) - c.start) * c.share for c in lone)
    assert there + stray(nodes, lone, 0, 100) == pytest.approx(asked)


@given(st.permutations([claim("u", 0, 5.0, None), claim("u", 0, 5.0, 9.0)]), st.integers(1, 3))
def test_writing_again_in_any_order_doubles_nothing(
    tmp_path_factory: pytest.TempPathFactory, looks: list[Claim], times: int
) -> None:
    store = Store(tmp_path_factory.mktemp("db") / "usage.db")
    for _ in range(times):
        for look in looks:
            store.put([look])
    assert [(c.start, c.end) for c in store.claims(0, 100)] == [(5.0, 9.0)]
    store.close()


def test_a_certain_end_replaces_a_guessed_one(tmp_path: Path) -> None:
    store = Store(tmp_path / "usage.db")
    for end, guessed in ((90.0, True), (40.0, False), (95.0, True)):
        store.put([claim("u", 0, 5.0, end, guessed=guessed)])
    [kept] = store.claims(0, 100)
    assert (kept.end, kept.guessed) == (40.0, False)
    store.close()


@pytest.mark.parametrize("middle", [0.0, 7.0, 50.0, 100.0])
def test_records_asked_for_in_halves_are_the_whole(tmp_path: Path, middle: float) -> None:
    store = Store(tmp_path / "usage.db")
    nodes = [
        NodeSpan("n", "node-1", 8, 0.0, 60.0, labels={"a": "b"}),
        NodeSpan("n", "node-1", 4, 60.0),
    ]
    held = [claim("u", 0, 5.0, 9.0), claim("v", 1, 20.0, None)]
    store.put(held, nodes)

    def told(start: float, end: float) -> tuple[list[NodeSpan], list[Claim]]:
        found: Records = unpack(pack((store.nodes(start, end), store.claims(start, end))), Records)
        return found

    found_nodes, found_claims = merge(told(0, middle), told(middle, 100))
    assert sorted(found_nodes, key=lambda one: one.key) == nodes
    assert sorted(found_claims, key=lambda one: one.key) == held
    store.close()


def test_record_knows_when_another_namespace_took_a_name(tmp_path: Path) -> None:
    store = Store(tmp_path / "usage.db")
    for name, uid, created in (("red", "a", 5.0), ("blue", "b", 6.0), ("red", "a", 7.0)):
        store.put_namespace(name, uid, created)
    # Usage that is older than a name on record is of that namespace: it may be an earlier file's.
    assert store.since() == {"red": 0.0, "blue": 0.0}
    store.put_namespace("red", "c", 8.0)
    store.put_namespace("red", "c", 9.0)
    store.close()
    assert Store(tmp_path / "usage.db", read_only=True).since() == {"red": 8.0, "blue": 0.0}
