"""What is guaranteed of single models of GPUs: claimed, divided between models, and held."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.drawn import node
from tests.support.examples import examples
from tests.support.running import PRIORITIES, Running

from lockstep.scheduler.core.model.workload import WorkloadKey

GPU = "nvidia.com/gpu"
Amounts = Mapping[str, int]


def stated(**amounts: int) -> dict[str, Any]:
    """The guaranteed amounts of a queue: ``all`` GPUs, and those of models."""
    names = {"all": GPU}
    return {"guaranteed": {names.get(n, f"{GPU}/{n}"): most for n, most in amounts.items()}}


def world_of(models: Sequence[str], gpus: int, **queues: dict[str, Any]) -> Running:
    """Nodes of one leaf, by model; the queues as they are stated."""
    world = Running.on("", queues)
    for i, model in enumerate(models):
        labels = {"leaf": "l", "nvidia.com/gpu.product": model}
        world.cluster.set_node(node(f"n{i}", gpus=gpus, labels=labels))
    return world


def counted(world: Running, name: str) -> Amounts:
    """What a gang's pods count for."""
    found: Counter[str] = Counter()
    for pod in world.places(name):
        found.update(world.cluster.pods["default", pod].charged)
    return {resource: found[resource] // 1000 for resource in found if resource.startswith(GPU)}


def used(world: Running, queue: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for name, drawn in world.gangs.items():
        if drawn.gang.spec.queue == queue:
            found.update(counted(world, name))
    return found


# models, queues, what runs in r, what comes to q, what of r goes, and what q then uses
CASES: dict[str, Any] = {
    "divided between two": (
        "AABB", {"q": stated(A=8, B=8), "r": {}}, 4, "2x8", 2, {"A": 8, "B": 8},
    ),
    "not more of one than is guaranteed": (
        "AABB", {"q": stated(A=8, B=4), "r": {}}, 4, "2x8", 0, {},
    ),
    "of one alone where the other has too little": (
        "AABB", {"q": stated(A=16, B=4), "r": {}}, 4, "2x8", 2, {"A": 16},
    ),
    "not where siblings are within theirs": (
        "AABB", {"q": stated(A=8, B=8), "r": stated(A=16)}, 4, "2x8", 0, {},
    ),
    "where siblings are guaranteed GPUs of whatever model": (
        "AABB", {"q": stated(A=8), "r": stated(all=24)}, 4, "1x8", 1, {"A": 8},
    ),
    "although what is guaranteed of all is less": (
        "AABB", {"q": stated(all=4, A=8), "r": stated(all=24)}, 4, "1x8", 1, {"A": 8},
    ),
    "not another model for it": (
        "ABB", {"q": stated(A=8), "r": stated(all=8)}, 3, "2x8", 0, {},
    ),
    "a part for its whole": (
        "AABB",
        {"org": stated(A=8, B=8), "q": {"parent": "org"}, "p": {"parent": "org"}, "r": {}},
        4, "2x8", 2, {"A": 8, "B": 8},
    ),
    "with a launcher that needs no GPU": (
        "AAB", {"q": stated(A=8), "r": {}}, 3, "head=1xcpu4 + worker=1x8", 1, {"A": 8},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_claim(case: Any) -> None:
    models, queues, borrowed, comes, gone, expected = case
    world = world_of(models, 8, **queues)
    for number in range(borrowed):
        world.run(f"o{number}: 1x8", "r", "low")
    world.run(f"new: {comes}", "q", "top")
    assert len(world.evicted) == gone
    found = counted(world, "new")
    assert {n.removeprefix(f"{GPU}/"): a for n, a in found.items() if n != GPU} == expected


@pytest.mark.parametrize("others", [{}, stated(all=8)], ids=["nothing", "other GPUs"])
def test_what_claims_a_model_starts_before_whom_it_would_evict(others: dict[str, Any]) -> None:
    world = world_of("AB", 8, z=stated(A=8), a=others)
    world.submit("old: 2x8", "a", "top")
    world.submit("new: 1x8", "z", "low")
    world.settle()
    assert (world.evicted, world.there()) == ([], {"new"})


def test_a_models_place_passes_to_no_gang_beyond_its_guarantee() -> None:
    world = world_of("AB", 8, q=stated(A=8), r={})
    world.graceful = True
    world.run("x: 2x8", "r", "low")
    world.run("y: 1x8", "q", "")
    world.run("big: 2x8", "q", "high")
    assert {one.workload.name for one in world.cluster.nominations} == {"y"}
    world.run("like: 1x8", "q", "high")
    assert {one.workload.name for one in world.cluster.nominations} == {"like"}
    assert set(world.evicted) == {"x"}, "nobody more goes"


def runs(seconds: int) -> dict[str, Any]:
    return {"annotations": {"lockstep.dev/runtime": str(seconds)}}


def test_a_models_guarantee_is_not_reserved_for_a_borrower() -> None:
    world = world_of("AB", 8, q=stated(A=8), r={})
    world.run("x: 1x8", "r", **runs(600))
    world.run("big: 2x8", "r", **runs(100))
    held = world.cluster.reservations.room
    assert held is not None and held.workload.name == "big"
    world.run("owner: 1x8", "q")
    assert "owner" in world.there()


def beyond(guaranteed: Amounts, total: Amounts, resource: str) -> int:
    most = guaranteed.get(resource, 0)
    if resource == GPU:
        by_model = (min(total.get(r, 0), a) for r, a in guaranteed.items() if r != GPU)
        most = max(most, sum(by_model))
    return total.get(resource, 0) - most


def within(guaranteed: Amounts, total: Amounts, contested: set[str]) -> bool:
    relevant = [r for r in contested if total.get(r)]
    return bool(relevant) and all(beyond(guaranteed, total, r) <= 0 for r in relevant)


MIXES = st.fixed_dictionaries(
    {}, optional={"all": st.integers(0, 8), "A": st.integers(1, 8), "B": st.integers(1, 8)}
)


def due(world: Running, sizes: Sequence[int]) -> bool:
    """Whether a gang of pods of these sizes in q is due a place beside what now stands in r."""
    models = [
        world.cluster.table.facts[row].labels["nvidia.com/gpu.product"]
        for row in world.cluster.table.rows.values()
    ]
    mine, theirs = (
        {r: int(str(a)) for r, a in world.cluster.ledger.specs[name].spec.guaranteed.items()}
        for name in "qr"
    )
    contested = {r for r, amount in (*mine.items(), *theirs.items()) if amount}
    free, held, goes = [4] * len(models), Counter[str](), [0] * len(models)
    over = {r for r in contested if beyond(theirs, used(world, "r"), r) > 0}
    there = [name for name in world.there() if name != "new"]
    workloads = world.cluster.workloads
    for name in sorted(
        there, key=lambda n: workloads[WorkloadKey("Gang", "default", n)].since or 0.0
    ):
        for place in world.places(name).values():
            one = counted(world, name)
            free[int(place[1:])] -= one[GPU]
            if any(theirs.values()) and within(theirs, held + Counter(one), contested & one.keys()):
                held.update(one)
            else:
                goes[int(place[1:])] += one[GPU]

    def reclaims(asked: Counter[str]) -> bool:
        named = {r for r in asked if r != GPU}
        wherever = {GPU: asked[GPU]}
        some = (wherever, {GPU} & contested), (asked, contested)
        return any(
            within(mine, total, claimed) and over & claimed
            for total, claimed in some
            if total is wherever or all(mine.get(r) for r in named)
        )

    def stands(seats: tuple[int, ...]) -> bool:
        taken, asked = Counter[int](), Counter[str]()
        for size, seat in zip(sizes, seats, strict=True):
            taken[seat] += size
            asked.update({GPU: size, f"{GPU}/{models[seat]}": size})
        if all(amount <= free[seat] for seat, amount in taken.items()):
            return True
        more = all(amount <= free[seat] + goes[seat] for seat, amount in taken.items())
        return more and reclaims(asked)

    return any(stands(seats) for seats in product(range(len(models)), repeat=len(sizes)))


@settings(max_examples=examples(200), deadline=None)
@given(
    st.lists(st.sampled_from("ABC"), min_size=1, max_size=4),
    st.tuples(MIXES, MIXES),
    st.lists(st.integers(1, 4), max_size=6),
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
)
# The first of r goes for the new one, comes back to the GPUs of B that r is guaranteed, and what is
# left is too scattered for the new one.
@example(["A", "B", "B"], ({"all": 5}, {"all": 0, "B": 6}), [3, 3], [2, 3])
def test_a_gang_is_placed_exactly_where_model_guarantees_allow_it(models, amounts, running, sizes):
    queues = {name: stated(**one) for name, one in zip("qr", amounts, strict=True)}
    world = world_of(models, 4, **queues)
    for number, size in enumerate(running):
        world.run(f"o{number}: 1x{size}", "r")
    expected = due(world, sizes)
    world.run(
        "new: " + " + ".join(f"{name}=1x{size}" for name, size in zip("abc", sizes, strict=False)),
        "q",
    )
    if "new" in world.there():
        assert expected
    else:  # others may have claimed in their turn what they are guaranteed
        assert not due(world, sizes)
    assert expected or not world.evicted


TREES: tuple[dict[str, str], ...] = (
    {"q": "", "r": ""},
    {"q": "", "r": "", "p": ""},
    {"org": "", "q": "org", "r": "org", "p": ""},
)
SIZES = ("1x2", "1x4", "2x4", "2x2", "3x4", "a=1x4 + b=1x2")


@st.composite
def stories(draw: st.DrawFn) -> tuple[str, dict[str, dict[str, Any]], list[tuple[str, ...]]]:
    models = "".join(draw(st.lists(st.sampled_from("AB"), min_size=2, max_size=5)))
    amounts = st.sampled_from([0, 0, 4, 8])
    queues = {}
    kinds = draw(st.sampled_from([("A", "B"), ("A", "B"), ("all", "A", "B")]))
    for name, parent in draw(st.sampled_from(TREES)).items():
        found = {one: draw(amounts) for one in kinds}
        queues[name] = stated(**{one: amount for one, amount in found.items() if amount})
        if parent:
            queues[name]["parent"] = parent
    comer = st.tuples(
        st.sampled_from(SIZES),
        st.sampled_from(sorted(queues)),
        st.sampled_from(["low", "", "high"]),
    )
    return models, queues, draw(st.lists(comer, min_size=1, max_size=9))


def rank(world: Running, queues: dict[str, dict[str, Any]]) -> list[int]:
    """The list of ADR 53: workloads that guaranteed amounts hold, deepest queues first, then
    all.
    """
    there = []
    for name in world.there():
        drawn, members = (
            world.gangs[name],
            world.cluster.workloads[WorkloadKey("Gang", "default", name)],
        )
        priority = PRIORITIES.get(drawn.gang.spec.priority_class_name, 0)
        there.append((-priority, members.since or 0.0, name, drawn.gang.spec.queue))
    chains = {}
    for name in queues:
        chains[name], above = [name], name
        while above := queues[above].get("parent", ""):
            chains[name].append(above)
    levels = sorted({0, *(-value for value in PRIORITIES.values())})
    result = []
    for depth in sorted({len(chain) for chain in chains.values()}, reverse=True):
        counts: Counter[int] = Counter()
        for name in (n for n in queues if len(chains[n]) == depth):
            siblings = [n for n in queues if chains[n][1:] == chains[name][1:]]
            contested = {r for n in siblings for r, a in queues[n]["guaranteed"].items() if a}
            mine, held = queues[name]["guaranteed"], Counter[str]()
            for priority, _, workload, queue in sorted(there) if mine else ():
                one = counted(world, workload)
                if name in chains[queue] and within(
                    mine, held + Counter(one), contested & one.keys()
                ):
                    held.update(one)
                    counts[priority] += 1
        result += [counts[level] for level in levels]
    running = Counter(entry[0] for entry in there)
    return result + [running[level] for level in levels]


@settings(max_examples=examples(150), deadline=None)
@given(stories())
def test_each_step_raises_what_guaranteed_amounts_hold_or_ends(story):
    models, queues, comers = story
    wherever = any(GPU in spec["guaranteed"] for spec in queues.values())
    world = world_of(models, 4, **queues)
    for number, (size, queue, priority) in enumerate(comers):
        world.submit(f"g{number}: {size}", queue, priority)
        last, plans = rank(world, queues), 0
        for _ in range(60):
            result = world.step()
            plans += len(result.evictions)
            if not len(world.cluster.nominations):
                now = rank(world, queues)
                # What GPUs of whatever model are claimed for may stand on a model of others.
                assert wherever or (now > last if plans else now >= last)
                last, plans = now, 0
            if not (result.placements or result.evictions or result.more or world.cluster.touched):
                break
        else:
            raise AssertionError(f"no end: {world.evicted}")
