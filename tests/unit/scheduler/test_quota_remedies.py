"""What is said to help a gang that a limit keeps waiting was tried: done, it starts."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.queued import WIDE, gpus
from tests.support.running import Running

from lockstep.api.names import GPU

Queues = dict[str, dict[str, Any]]
SIX = "s/l0: a:8 b:8 c:8 d:8\ns/l1: e:8 f:8"

CASES: dict[str, tuple[str, Queues, list[str], str, str]] = {
    # nodes, queues, what runs in r, what waits in q, the remedy
    "both limits on the way up": (
        WIDE,
        {"p": {"limit": gpus(8)}, "q": {"parent": "p", "limit": gpus(8)}},
        [],
        "w: 4x8",
        "at most 8 GPUs asked for, or a limit of 32 GPUs in queue q and a limit of 32 GPUs in "
        "queue p",
    ),
    "no limit where no leaf holds it": (
        SIX,
        {"p": {"limit": gpus(8)}, "q": {"parent": "p", "limit": gpus(8)}},
        [],
        "w: 6x8 leaf",
        "at most 8 GPUs asked for",
    ),
    "nothing helps but smaller pods": (
        "s/l0: a:8 b:8",
        {"q": {"limit": gpus(4)}},
        [],
        "w: 3x8",
        "fewer or smaller pods: with other limits there would be no room for it either",
    ),
    "a limit, and room besides": (
        "s/l: a:8 b:8",
        {"q": {"limit": gpus(8)}, "r": {}},
        ["x: 1x8"],
        "w: 2x8",
        "at most 8 GPUs asked for, or a limit of 16 GPUs in queue q with room in the cluster when "
        "others end",
    ),
    "nothing is given back where nobody holds anything": (
        WIDE,
        {"q": {}, "s": {"guaranteed": gpus(24), "lending": "Never"}},
        [],
        "w: 2x8",
        "at most 8 GPUs asked for, or lending by the queues that keep what they are guaranteed",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_remedies_name_all_limits_and_the_room(
    case: tuple[str, Queues, list[str], str, str],
) -> None:
    nodes, queues, running, waits, remedy = case
    world = Running.on(nodes, queues)
    for one in running:
        world.run(one, "r")
    assert world.remedy(world.run(waits, "q")) == remedy


@st.composite
def scenes(draw: st.DrawFn) -> tuple[str, Queues, list[tuple[str, str]], str]:
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    nodes = "\n".join(
        f"s/l{leaf}: " + " ".join(f"n{leaf}{i}:4" for i in range(size))
        for leaf, size in enumerate(sizes)
    )
    some = st.one_of(st.none(), st.integers(1, 16))
    queues: Queues = {}
    for name, parent in (("p", ""), ("q", "p"), ("r", "p"), ("t", "")):
        queues[name] = {"parent": parent} if parent else {}
        if (most := draw(some)) is not None:
            queues[name]["limit"] = gpus(most)
    if draw(st.booleans()):
        queues["t"] |= {"guaranteed": gpus(draw(st.integers(1, 4))), "lending": "Never"}
    size = st.sampled_from([1, 2, 4])
    running = [
        (f"x{number}: 1x{draw(size)}", draw(st.sampled_from("qrt")))
        for number in range(draw(st.integers(0, 4)))
    ]
    tier = draw(st.sampled_from(["", " leaf"]))
    return nodes, queues, running, f"w: {draw(st.integers(1, 4))}x{draw(size)}{tier}"


@settings(max_examples=examples(80), deadline=None, derandomize=True)
@given(scenes())
def test_each_way_that_is_named_helps(scene: tuple[str, Queues, list[tuple[str, str]], str]):
    def waiting() -> Running:
        nodes, queues, running, waits = scene
        world = Running.on(nodes, queues)
        for one, queue in running:
            name = world.run(one, queue)
            if name not in world.there():
                world.end(name)
        world.run(waits, "q")
        return world

    world = waiting()
    if "w" in world.there() or world.why("w")[0] != "OverQuota":
        return
    for way in world.remedy("w").split(", or "):
        if not way.startswith("fewer"):
            world = waiting()
            follow(world, scene, way)
            assert "w" in world.there(), way


def follow(world: Running, scene: tuple[str, Queues, list[tuple[str, str]], str], way: str) -> None:
    """Do what one remedy says."""
    _, queues, running, waits = scene
    if found := re.match(r"at most (\d+) GPU", way):
        pods, each = map(int, re.findall(r"(\d+)x(\d+)", waits)[0])
        assert int(found[1]) < pods * each
        world.end("w")
        world.run(waits.replace(f"{pods}x", f"{int(found[1]) // each}x").replace("w:", "v:"), "q")
        if "v" in world.there():
            world.gangs["w"] = world.gangs["v"]
        return
    if "given back" in way:
        queue = re.search(r"in queue (\w)", way)
        around = {"q": "q", "p": "qr"}[queue[1]] if queue else "qrt"
        for one, name in running:
            if name in around and (gone := one.partition(":")[0]) in world.there():
                world.end(gone)
    queue = re.search(r"in queue (\w)", world.remedy("w"))
    for most, where in re.findall(r"a limit of (\d+) GPUs? (?:in queue )?(\w+)", way):
        name = queue[1] if where == "there" and queue else where
        world.set_queue(name, **{**queues[name], "limit": {GPU: int(most)}})
    if "lending by" in way:
        world.set_queue("t", **{**queues["t"], "lending": "Always"})
    if "when others end" in way:
        for one, _ in running:
            if (gone := one.partition(":")[0]) in world.there():
                world.end(gone)
    world.settle()
