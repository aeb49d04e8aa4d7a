"""Limits for which it matters where a pod goes: on single models of GPUs, and on parts of cards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.drawn import gang, node, pod, queue
from tests.support.examples import examples
from tests.support.running import Running

from lockstep.api.timestamp import show
from lockstep.scheduler.core.defrag.defragmenter import Look
from lockstep.scheduler.core.explain.diagnosis import explain
from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.core.placement import admission
from lockstep.scheduler.core.placement.problem import problem_of
from lockstep.scheduler.core.state.cluster import Cluster

GPU = "nvidia.com/gpu"
KEY = WorkloadKey("Gang", "default", "g")


@dataclass(frozen=True)
class Case:
    nodes: tuple[tuple[str, int], ...]
    """Model and number of GPUs."""
    groups: tuple[tuple[int, tuple[int, ...]], ...]
    """How many members each needs, and the GPUs of those that there are."""
    limit: dict[str, int]
    tier: bool = False
    """Whether all must stand under one leaf; two nodes make one."""

    def cluster(self) -> Cluster:
        cluster = Cluster()
        for i, (model, gpus) in enumerate(self.nodes):
            labels = {"leaf": f"leaf-{i // 2}", "nvidia.com/gpu.product": model}
            cluster.set_node(node(f"n{i}", gpus=gpus, labels=labels))
        cluster.set_queue(queue("q", limit=self.limit))
        wish: dict[str, Any] = {"topology": {"required": "leaf"}} if self.tier else {}
        groups = [
            {"name": f"r{g}", "min": least, "desired": len(sizes)}
            for g, (least, sizes) in enumerate(self.groups)
        ]
        cluster.set_gang(gang("g", groups=groups, queue="q", **wish))
        for g, (_, sizes) in enumerate(self.groups):
            for i, size in enumerate(sizes):
                cluster.set_pod(pod(f"g-r{g}-{i}", gpus=size, gang="g", group=f"r{g}"))
        cluster.settle()
        return cluster

    def allows(self, seats: tuple[int, ...]) -> bool:
        """Whether pods may stand there, group by group; -1 stands for nowhere."""
        members = [(g, size) for g, (_, sizes) in enumerate(self.groups) for size in sizes]
        used: Counter[int] = Counter()
        counted: Counter[str] = Counter()
        held: Counter[int] = Counter()
        for (group, size), seat in zip(members, seats, strict=True):
            if seat >= 0:
                used[seat] += size
                held[group] += 1
                counted.update({GPU: size, f"{GPU}/{self.nodes[seat][0]}": size})
        leaves = {seat // 2 for seat in seats if seat >= 0}
        return (
            all(held[g] >= least for g, (least, _) in enumerate(self.groups))
            and all(total <= self.nodes[seat][1] for seat, total in used.items())
            and all(counted[name] <= most for name, most in self.limit.items())
            and (not self.tier or len(leaves) <= 1)
        )

    def ways(self) -> Iterator[tuple[int, ...]]:
        pods = sum(len(sizes) for _, sizes in self.groups)
        seats = product(range(-1, len(self.nodes)), repeat=pods)
        return (one for one in seats if self.allows(one))

    def seats(self, placement: Any) -> tuple[int, ...]:
        found = {one.member.name: int(one.spot.node[1:]) for one in placement.assignments}
        names = (
            f"g-r{g}-{i}" for g, (_, sizes) in enumerate(self.groups) for i in range(len(sizes))
        )
        return tuple(found.get(name, -1) for name in names)


def look(case: Case) -> Any:
    cluster = case.cluster()
    workload = cluster.workloads[KEY]
    return admission.place(cluster, workload, problem_of(cluster, workload))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    nodes = draw(
        st.lists(st.tuples(st.sampled_from("AB"), st.integers(1, 4)), min_size=1, max_size=4)
    )
    groups = []
    for most in draw(st.sampled_from([(4,), (3, 2), (2, 3)])):
        sizes = draw(st.lists(st.sampled_from([0, 1, 2, 3]), min_size=1, max_size=most))
        groups.append((draw(st.integers(1, len(sizes))), tuple(sizes)))
    names = draw(st.lists(st.sampled_from([GPU, f"{GPU}/A", f"{GPU}/B"]), min_size=1, unique=True))
    limit = {name: draw(st.integers(0, 8)) for name in sorted(names)}
    return Case(tuple(nodes), tuple(groups), limit, draw(st.booleans()))


@settings(max_examples=examples(300), deadline=None)
@given(cases())
def test_a_gang_is_placed_exactly_where_room_and_limits_allow(case):
    placement = look(case)
    if placement is None:
        assert next(case.ways(), None) is None
    else:
        assert case.allows(case.seats(placement))


@settings(max_examples=examples(150), deadline=None)
@given(cases())
def test_the_reported_shortage_of_a_limit_is_what_it_takes(case):
    cluster = case.cluster()
    workload = cluster.workloads[KEY]
    if admission.place(cluster, workload, problem_of(cluster, workload)) is not None:
        return
    over = admission.in_the_way(cluster, workload, problem_of(cluster, workload))
    roomy = Case(case.nodes, case.groups, {}, case.tier)
    if over is None:
        return
    assert explain(cluster, workload).reason == "OverQuota"
    assert look(roomy) is not None
    more = over.short // 1000
    enough, less = (
        Case(case.nodes, case.groups, {**case.limit, over.resource: most}, case.tier)
        for most in (case.limit[over.resource] + more, case.limit[over.resource] + more - 1)
    )
    alone = [
        look(Case(case.nodes, case.groups, {**case.limit, name: 99}, case.tier))
        for name in case.limit
    ]
    if any(alone):
        assert look(enough) is not None
    assert look(less) is None


DIVIDED = {
    "between models": (4 * ["A"] + 2 * ["B"], "4x8", {"A": 16}, {"A": 2, "B": 2}),
    "between three, one of them closed": (
        ["A", "A", "B", "B", "C", "C"],
        "3x8",
        {"A": 8, "B": 8, "C": 0},
        None,
    ),
    "between a limited one and others": (["A", "A", "B", "B"], "3x8", {"A": 8}, {"A": 1, "B": 2}),
}


@pytest.mark.parametrize(("models", "asks", "limit", "expected"), DIVIDED.values(), ids=DIVIDED)
def test_a_gang_is_divided(
    models: list[str], asks: str, limit: dict[str, int], expected: dict[str, int] | None
) -> None:
    number = int(asks.partition("x")[0])
    limits = {f"{GPU}/{model}": most for model, most in limit.items()}
    nodes = tuple((model, 8) for model in models)
    case = Case(nodes, ((number, (8,) * number),), limits)
    placement = look(case)
    if expected is None:
        assert placement is None
    else:
        found = Counter(models[seat] for seat in case.seats(placement))
        assert found == expected


def test_a_memory_share_goes_to_the_card_it_fills_least():
    cluster = Cluster()
    for name, memory in (("small", 1000), ("large", 4000)):
        cluster.set_node(
            node(name, gpus=2, devices=[{"index": i, "memory": memory} for i in (0, 1)])
        )
    cluster.set_queue(queue("q", limit={GPU: "1250m"}))
    cluster.set_gang(gang("g", minMember=3, queue="q", strategy="Binpack"))
    for i in range(3):
        requests = {"lockstep.dev/gpu-cards": 1, "lockstep.dev/gpu-memory": 1000}
        cluster.set_pod(pod(f"g-{i}", requests=requests, gang="g"))
    cluster.settle()
    workload = cluster.workloads[KEY]
    placement = admission.place(cluster, workload, problem_of(cluster, workload))
    assert placement is not None
    assert admission.counted(cluster, placement)[GPU] <= 1250


def world_of(models: Sequence[str], gpus: int, **queues: dict[str, Any]) -> Running:
    """Nodes of one leaf, by model; the queues as they are stated."""
    world = Running.on("", queues)
    for i, model in enumerate(models):
        labels = {"leaf": "l", "nvidia.com/gpu.product": model}
        world.cluster.set_node(node(f"n{i}", gpus=gpus, labels=labels))
    return world


def used_of(world: Running, model: str, queue_name: str = "q") -> int:
    """The GPUs of a model that a queue's pods hold."""
    total = 0
    for name, drawn in world.gangs.items():
        if drawn.gang.spec.queue == queue_name:
            for pod_name, there in world.places(name).items():
                facts = world.cluster.table.facts[world.cluster.table.rows[there]]
                assert facts is not None
                if facts.labels["nvidia.com/gpu.product"] == model:
                    total += world.cluster.pods["default", pod_name].shape.gpus
    return total


def test_only_users_of_a_model_make_room_under_its_limit():
    world = world_of("AABB", 8, q={"limit": {f"{GPU}/A": 8, f"{GPU}/B": 8}})
    world.run("old: 1x8", "q", "low")
    world.run("small: 1x4", "q", "low")
    before = {name: world.places(name) for name in ("old", "small")}
    world.run("new: 1x8", "q", "high")
    assert world.evicted in (["old"], ["small"])
    kept = "small" if world.evicted == ["old"] else "old"
    assert world.places(kept) == before[kept]
    assert used_of(world, "A") <= 8 and used_of(world, "B") <= 8
    assert len(world.places("new")) == 1


def test_no_gang_goes_for_a_limit_it_does_not_fill():
    world = world_of("AAB", 8, q={"limit": {f"{GPU}/A": 8}}, r={})
    world.run("mine: 1x8", "q", "high")
    world.run("other: 2x8", "r", "low")
    world.run("new: 1x8", "q", "high")
    assert world.evicted == []
    assert world.why("new")[0] != "Preempting"


def test_a_models_guarantee_is_reclaimed_and_no_more():
    world = world_of("AABB", 8, q={"guaranteed": {f"{GPU}/A": 8}}, r={})
    for number in range(4):
        world.run(f"o{number}: 1x8", "r", "top")
    world.run("new: 1x8", "q", "low")
    assert len(world.evicted) == 1
    assert (used_of(world, "A"), used_of(world, "A", "r"), used_of(world, "B", "r")) == (8, 8, 16)
    world.run("more: 1x8", "q", "low")
    assert len(world.evicted) == 1, "that would be beyond what is guaranteed"


@pytest.mark.parametrize(
    ("others", "gone"),
    [
        ({f"{GPU}/A": 8}, 1),
        ({f"{GPU}/A": 16}, 0),  # they are within theirs
        ({GPU: 32}, 1),  # what is guaranteed of a model is guaranteed of all GPUs
    ],
)
def test_guarantees_of_others_hold_on_a_model(others: dict[str, int], gone: int):
    world = world_of("AABB", 8, q={"guaranteed": {f"{GPU}/A": 8}}, r={"guaranteed": others})
    for number in range(4):
        world.run(f"o{number}: 1x8", "r", "low")
    world.run("new: 1x8", "q", "top")
    assert len(world.evicted) == gone
    assert used_of(world, "A") == 8 * gone


@settings(max_examples=examples(120), deadline=None)
@given(
    st.lists(st.sampled_from("AB"), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(1, 2), st.integers(1, 4)), min_size=1, max_size=4),
    st.tuples(st.integers(1, 3), st.integers(1, 4)),
    st.dictionaries(st.sampled_from(["A", "B"]), st.integers(0, 8), min_size=1),
)
def test_others_go_for_a_more_important_gang_this_lets_in(models, low, high, limit):
    limits = {f"{GPU}/{model}": most for model, most in limit.items()}
    world = world_of(models, 4, q={"limit": limits})
    for number, (pods, gpus) in enumerate(low):
        world.run(f"low{number}: {pods}x{gpus}", "q", "low")
    world.run(f"new: {high[0]}x{high[1]}", "q", "high")
    nodes = tuple((model, 4) for model in models)
    alone = Case(nodes, ((high[0], (high[1],) * high[0]),), limits)
    possible = next(alone.ways(), None) is not None
    assert ("new" in world.there()) == possible
    assert possible or not world.evicted
    for model, most in limit.items():
        assert used_of(world, model) <= most


AMOUNTS = st.sampled_from([None, None, 4, 8, 16])
GUARANTEES = st.builds(
    lambda *amounts: {
        name: amount
        for name, amount in zip((GPU, f"{GPU}/A", f"{GPU}/B"), amounts, strict=True)
        if amount is not None
    },
    AMOUNTS,
    AMOUNTS,
    AMOUNTS,
)
COMERS = st.tuples(
    st.sampled_from(["1x2", "1x4", "2x4", "1..2x4", "3x4"]),
    st.sampled_from("qr"),
    st.sampled_from(["low", "", "high"]),
)


@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(st.sampled_from("AB"), min_size=2, max_size=5),
    st.tuples(GUARANTEES, GUARANTEES),
    st.lists(COMERS, min_size=1, max_size=9),
)
def test_reclaiming_models_comes_to_an_end(models, guarantees, comers):
    stated = dict(zip("qr", guarantees, strict=True))
    world = world_of(models, 4, **{name: {"guaranteed": one} for name, one in stated.items()})
    for number, (size, queue_name, priority) in enumerate(comers):
        world.run(f"g{number}: {size}", queue_name, priority)  # it raises where there is no end


@pytest.mark.parametrize(
    ("limits", "models"),
    [({"A": 8}, "AB"), ({"B": 0}, "AA"), ({"A": 8, "B": 0}, "")],
)
def test_others_move_for_a_place_within_the_limits_on_models(limits, models):
    limit = {f"{GPU}/{model}": most for model, most in limits.items()}
    world = world_of("AAB", 8, q={"limit": limit}, r={})
    for name in ("small", "other"):  # who moves may go there, and nobody else can
        labels = {"leaf": "l", "nvidia.com/gpu.product": "C"}
        world.cluster.set_node(node(name, gpus=4, labels=labels))
    saved = {"lockstep.dev/checkpoint": show(world.now)}
    world.stand(world.submit("m: 2x4", "r", annotations=saved), ["n1", "n2"])
    world.settle()
    workload = world.cluster.workloads[WorkloadKey("Gang", "default", world.submit("g: 2x8", "q"))]
    problem = world.decider.problem(workload)
    assert problem is not None
    plan = world.decider.defragmenter.propose(Look(workload, problem, world.now + 1000))
    if isinstance(plan, str):
        assert not models
    else:
        facts = [
            world.cluster.table.facts[world.cluster.table.rows[one.spot.node]]
            for one in plan.placement.assignments
        ]
        found = "".join(sorted(f.labels["nvidia.com/gpu.product"] for f in facts if f))
        assert (found, [one.mover.key.name for one in plan.moves]) == (models, ["m"])
