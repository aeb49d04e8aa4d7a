"""What holds for every placement, over random clusters and gangs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace as replace_struct
from tests.support.drawn import gang, node, places, pod
from tests.support.examples import examples

from lockstep.api.core import Node, Pod
from lockstep.api.gang import Gang
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.explain.diagnosis import explain
from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.util.bitmask import indices_of

TIERS = ("spine", "leaf", "kubernetes.io/hostname")
LACKING = re.compile(
    r"(the best, (?P<domain>\w+)( \((?P<inside>[^)]*)\))?,|the cluster) has room for .* now: "
    r"(?P<pods>\d+) pods? \(((?P<gpus>\d+) GPUs?)?(, )?((?P<cpu>\d+) CPUs?)?.*\) short"
)
"""What ``explain`` says is short, and where."""


@dataclass
class GroupPlan:
    minimum: int
    required: str | None
    pods: list[tuple[int, int, bool]]
    """GPUs, CPUs, whether it must be on a node with the label disk=ssd."""


@dataclass
class GangPlan:
    name: str
    required: str | None
    groups: list[GroupPlan]
    strategy: str = "Binpack"


@dataclass
class World:
    nodes: list[Node]
    holders: list[Pod]
    gangs: list[GangPlan]
    free: dict[str, list[int]] = field(default_factory=dict)


@st.composite
def worlds(draw: st.DrawFn, *, nodes: int = 4, gangs: int = 1, pods: int = 4) -> World:
    made, holders = [], []
    for i in range(draw(st.integers(1, nodes))):
        gpus, cpu = draw(st.integers(0, 4)), draw(st.integers(1, 4))
        labels = {"spine": draw(st.sampled_from("ab")), "leaf": draw(st.sampled_from("xy"))}
        if draw(st.booleans()):
            labels["disk"] = "ssd"
        taints = ["t"] if draw(st.integers(0, 5)) == 0 else []
        devices = [{"index": j, "nvlink": j // 2} for j in range(gpus)]
        made.append(
            node(f"n{i}", gpus=gpus, cpu=cpu, labels=labels, taints=taints, devices=devices)
        )
        used = draw(st.integers(0, gpus))
        if used:
            held = ",".join(str(j) for j in draw(st.permutations(range(gpus)))[:used])
            holders.append(pod(f"holder{i}", gpus=used, on=f"n{i}", held=held, phase="Running"))
    plans = []
    for g in range(draw(st.integers(1, gangs))):
        groups = []
        for _ in range(draw(st.integers(1, 2))):
            kinds = st.tuples(st.integers(0, 3), st.integers(0, 2), st.booleans())
            members = draw(st.lists(kinds, min_size=1, max_size=pods // 2 + 1))
            wish = draw(st.sampled_from([None, None, "leaf", "node"]))
            groups.append(GroupPlan(draw(st.integers(1, len(members))), wish, members))
        wish = draw(st.sampled_from([None, "spine", "leaf", "node"]))
        strategy = draw(st.sampled_from(["Binpack", "Binpack", "Spread"]))
        plans.append(GangPlan(f"g{g}", wish, groups, strategy))
    return World(made, holders, plans)


def spec_of(plan: GangPlan, age: int) -> Gang:
    groups = [
        {
            "name": f"r{i}",
            "min": g.minimum,
            "desired": len(g.pods),
            "topology": {"required": g.required} if g.required else None,
        }
        for i, g in enumerate(plan.groups)
    ]
    wish = {"required": plan.required} if plan.required else None
    created = f"2026-01-01T00:00:{age:02}Z"
    return gang(plan.name, created=created, groups=groups, topology=wish, strategy=plan.strategy)


def pods_of(plan: GangPlan) -> Iterator[Pod]:
    for i, group in enumerate(plan.groups):
        for j, (gpus, cpu, ssd) in enumerate(group.pods):
            selector = {"disk": "ssd"} if ssd else {}
            yield pod(
                f"{plan.name}-{i}-{j}",
                gpus=gpus,
                cpu=cpu,
                gang=plan.name,
                group=f"r{i}",
                nodeSelector=selector,
            )


def load(world: World, *, backwards: bool = False) -> Cluster:
    cluster = Cluster()
    objects = [
        *((cluster.set_node, n) for n in world.nodes),
        *((cluster.set_pod, h) for h in world.holders),
        *((cluster.set_gang, spec_of(p, age)) for age, p in enumerate(world.gangs)),
        *((cluster.set_pod, one) for p in world.gangs for one in pods_of(p)),
    ]
    for set_, obj in reversed(objects) if backwards else objects:
        set_(obj)
    return cluster


def domain(found: Node, tier: str | None) -> tuple[str, ...]:
    """The path of a node's domain; everywhere is one domain."""
    labels = found.metadata.labels
    depth = {None: 0, "spine": 1, "leaf": 2, "node": 3}[tier]
    return tuple(labels[key] for key in TIERS[:depth])


@settings(max_examples=examples(300), deadline=None)
@given(worlds(gangs=4))
def test_every_placement_keeps_the_rules(world):
    cluster = load(world)
    Decider(cluster).decide(0.0)
    by_name = {n.metadata.name: n for n in world.nodes}
    held: Counter[tuple[str, int]] = Counter()
    cpus: Counter[str] = Counter()
    for member in cluster.pods.values():
        if member.node:
            held.update((member.node, i) for i in indices_of(member.gpus))
            assert len(indices_of(member.gpus)) == member.shape.gpus
            cpus[member.node] += member.shape.request.get("cpu", 0)
    assert all(number == 1 for number in held.values()), "a device is held twice"
    for name, used in cpus.items():
        assert used <= int(str(by_name[name].status.allocatable["cpu"])) * 1000
    for name, index in held:
        assert index < int(str(by_name[name].status.allocatable.get("nvidia.com/gpu", 0)))
    for plan in world.gangs:
        check_gang(cluster, plan, by_name)


def check_gang(cluster: Cluster, plan: GangPlan, by_name: dict[str, Node]) -> None:
    found = places(cluster, f"{plan.name}-")
    assert not any(by_name[n].spec.taints for n in found.values())
    assert len({domain(by_name[n], plan.required) for n in found.values()}) <= 1
    whole = []
    for i, group in enumerate(plan.groups):
        there = {k: v for k, v in found.items() if k.startswith(f"{plan.name}-{i}-")}
        whole.append(len(there) >= group.minimum)
        assert len({domain(by_name[n], group.required) for n in there.values()}) <= 1
        for j, (_, _, ssd) in enumerate(group.pods):
            where = there.get(f"{plan.name}-{i}-{j}")
            assert not (ssd and where) or "disk" in by_name[where].metadata.labels
    assert all(whole) or not found, "a gang is whole or not there at all"


@settings(max_examples=examples(100), deadline=None)
@given(worlds(gangs=3))
def test_same_input_same_result_whatever_the_order_of_events(world):
    first, second = load(world), load(world, backwards=True)
    Decider(first).decide(0.0)
    Decider(second).decide(0.0)
    assert {k: (m.node, m.gpus) for k, m in first.pods.items()} == {
        k: (m.node, m.gpus) for k, m in second.pods.items()
    }


def feasible(world: World, plan: GangPlan) -> bool:
    """Try every way of placing exactly the minimum of each group."""
    free = {}
    for one in world.nodes:
        if one.spec.taints:
            continue
        allocatable = one.status.allocatable
        name = one.metadata.name
        used = sum(
            int(str(h.spec.containers[0].resources.requests["nvidia.com/gpu"]))
            for h in world.holders
            if h.spec.node_name == name
        )
        gpus = int(str(allocatable.get("nvidia.com/gpu", 0))) - used
        free[name] = [gpus, int(str(allocatable["cpu"]))]
    by_name = {n.metadata.name: n for n in world.nodes}
    domains = {domain(by_name[n], plan.required) for n in free}
    for own in domains:
        inside = [n for n in free if domain(by_name[n], plan.required) == own]
        choices = [{domain(by_name[n], g.required) for n in inside} for g in plan.groups]
        for chosen in product(*choices):
            allowed = [
                [n for n in inside if domain(by_name[n], g.required) == d]
                for g, d in zip(plan.groups, chosen, strict=True)
            ]
            if _assign(plan, allowed, free, by_name, 0, 0, 0):
                return True
    return False


def _assign(  # noqa: PLR0917
    plan: GangPlan,
    allowed: list[list[str]],
    free: dict[str, list[int]],
    by_name: dict[str, Node],
    group: int,
    member: int,
    placed: int,
) -> bool:
    if group == len(plan.groups):
        return True
    here = plan.groups[group]
    if placed == here.minimum:
        return _assign(plan, allowed, free, by_name, group + 1, 0, 0)
    if len(here.pods) - member < here.minimum - placed:
        return False
    gpus, cpu, ssd = here.pods[member]
    for name in allowed[group]:
        room = free[name]
        if (ssd and "disk" not in by_name[name].metadata.labels) or room[0] < gpus:
            continue
        if room[1] < cpu:
            continue
        room[0] -= gpus
        room[1] -= cpu
        ok = _assign(plan, allowed, free, by_name, group, member + 1, placed + 1)
        room[0] += gpus
        room[1] += cpu
        if ok:
            return True
    return _assign(plan, allowed, free, by_name, group, member + 1, placed)


@settings(max_examples=examples(600), deadline=None)
@given(worlds(gangs=1, pods=6))
def test_a_gang_is_placed_exactly_when_brute_force_places_it(world):
    cluster = load(world)
    placed = bool(Decider(cluster).decide(0.0).placements)
    assert placed == feasible(world, world.gangs[0])


@settings(max_examples=examples(300), deadline=None)
@given(worlds(gangs=1, pods=6))
def test_adding_what_explain_says_is_short_lets_the_gang_start(world):
    cluster = load(world)
    decider = Decider(cluster)
    if decider.decide(0.0).placements:
        return
    workload = cluster.workloads[WorkloadKey("Gang", "default", "g0")]
    message = explain(cluster, workload).message
    short = LACKING.search(message)
    assert message
    plan = world.gangs[0]
    # A group that must share one leaf or node needs its room in one piece, not anywhere.
    if short is None or any(g.required for g in plan.groups):
        return
    path = [part for part in (short["inside"], short["domain"]) if part]
    if "/" in (short["inside"] or ""):
        return  # a single node cannot be made larger here
    labels = {"disk": "ssd", **dict(zip(TIERS, path, strict=False))}
    pods, gpus, cpu = (int(short[name] or 0) for name in ("pods", "gpus", "cpu"))
    sizes = {(g, c) for group in plan.groups for g, c, _ in group.pods}
    if len(sizes) == 1:  # else each may be the one that takes nearly all
        (one,) = sizes
        assert (gpus, cpu) == (pods * one[0], pods * one[1])
        gpus, cpu = one
    for number in range(pods):
        cluster.set_node(node(f"new{number}", gpus=gpus, cpu=max(cpu, 1), labels=labels))
    assert decider.decide(1.0).placements


@settings(max_examples=examples(400), deadline=None)
@given(worlds(gangs=1, pods=6))
def test_every_remedy_that_explain_names_helps(world):
    cluster = load(world)
    decider = Decider(cluster)
    if decider.decide(0.0).placements:
        return
    message = explain(cluster, cluster.workloads[WorkloadKey("Gang", "default", "g0")]).message
    plan = world.gangs[0]
    if "without the required tier it would start now" in message:
        groups = [replace(group, required=None) for group in plan.groups]
        plan = replace(plan, required=None, groups=groups)
    elif "the nodes tainted t:NoSchedule" in message and "would be enough" in message:
        for one in world.nodes:
            cluster.set_node(replace_struct(one, spec=type(one.spec)()))
    elif "the nodes without the label disk=ssd" in message and "would be enough" in message:
        for one in world.nodes:
            labels = {**one.metadata.labels, "disk": "ssd"}
            cluster.set_node(
                replace_struct(one, metadata=replace_struct(one.metadata, labels=labels))
            )
    else:
        return
    cluster.set_gang(spec_of(plan, 0))
    assert decider.decide(1.0).placements, message


@pytest.mark.parametrize("pods", [1, 7, 40])
def test_a_round_stops_at_its_limit_and_continues_next_time(pods):
    cluster = Cluster()
    cluster.set_node(node("n", gpus=8, cpu=64))
    for i in range(pods):
        cluster.set_pod(pod(f"p{i}", cpu=1))
    decider = Decider(cluster)
    rounds = 0
    while True:
        result = decider.decide(0.0, limit=5)
        rounds += 1
        assert len(result.placements) <= 5
        if not result.more:
            break
    assert len(places(cluster)) == pods
    assert rounds >= pods / 5
