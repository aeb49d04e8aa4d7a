"""Moves of gangs in any order of events, with new leaders on the way: what always holds."""

from __future__ import annotations

import random

from hypothesis import event, given, settings
from hypothesis import strategies as st
from tests.support.defragmentation_scene import WAITING, Scene, new_leader, statuses
from tests.support.examples import examples
from tests.support.running import Running

from lockstep.scheduler.core.defrag.candidates import RESTART_SECONDS

ASKED = "lockstep.dev/defragment"


@st.composite
def scenes(draw_: st.DrawFn) -> Scene:
    nodes = draw_(st.integers(2, 3)) * 2
    leaves = [f"s/{leaf}: {leaf}0:8 {leaf}1:8" for leaf in "xyz"[: nodes // 2]]
    saved = st.integers(0, 500)
    found = [  # first a small gang on every node, so that whoever wants a whole one has to wait
        (1, draw_(st.integers(1, 4)), draw_(saved), [node] * 3, 0) for node in range(nodes)
    ]
    gang = st.tuples(
        st.integers(1, 3),
        st.integers(1, 4),
        st.one_of(st.none(), saved),
        st.lists(st.integers(0, 5), min_size=3, max_size=3),
        st.integers(0, 2),
    )
    found += draw_(st.lists(gang, max_size=4))
    there = [(f"g{number}", *one) for number, one in enumerate(found)]
    waits = st.sampled_from([(1, 8), (2, 8), (1, 7), (2, 6), (3, 5)])
    return Scene("\n".join(leaves), there, draw_(waits))


def check(world: Running) -> None:
    """Hold that no node and no device is taken twice, and every gang is whole or not there."""
    held: dict[str, int] = {}
    for member in world.cluster.pods.values():
        if member.holds:
            assert not held.get(member.node, 0) & member.gpus, "a device is held twice"
            held[member.node] = held.get(member.node, 0) | member.gpus
    for name, drawn in world.gangs.items():
        assert len(world.places(name)) in (0, len(drawn.pods)) or _leaves(world, name)


def _leaves(world: Running, name: str) -> bool:
    known = (world.cluster.pods.get(("default", p.metadata.name)) for p in world.gangs[name].pods)
    return any(member is None or member.terminating or not member.node for member in known)


def shake(scene: Scene, dice: random.Random, restarts: int) -> None:
    """Let pods end and come back in any order, decisions and new leaders in between."""
    world = scene.world
    written = statuses(world)
    gone: list[str] = []
    for _ in range(400):
        pods = world.cluster.pods
        ending = sorted(name for (_, name), m in pods.items() if m.terminating)
        choice = dice.random()
        if choice < 0.35 and ending:
            name = dice.choice(ending)
            world.cluster.remove_pod("default", name)
            gone.append(name)
        elif choice < 0.6 and gone:
            world.renew(gone.pop(dice.randrange(len(gone))))
        elif choice < 0.65 and restarts:
            restarts -= 1
            new_leader(world, scene.drawing, written)
        else:
            world.step()
            # What the evictor writes is there before anybody goes; the rest may be late.
            written = statuses(world)
        check(world)
        if not ending and not gone and choice > 0.65 and not world.cluster.touched:
            world.settle()
            if not any(m.terminating for m in world.cluster.pods.values()):
                return
    raise AssertionError("no end")


@settings(max_examples=examples(100), deadline=None)
@given(scenes(), st.integers(0, 2**32), st.integers(0, 2))
def test_a_plan_carried_out_lets_everybody_stand(scene: Scene, seed: int, restarts: int) -> None:
    world = scene.world
    plan = scene.plan()
    assert str(plan) == str(scene.plan()), "the same state has the same plan"
    before = world.there()
    event("no plan" if isinstance(plan, str) else f"{len(plan.moves)} moves")
    if not isinstance(plan, str) and any(move.mover.stays for move in plan.moves):
        event("members move by themselves")
    if isinstance(plan, str):
        world.annotate("w", {ASKED: "999d"})
        world.settle()
        assert not world.evicted
        return
    gpus = {one[0]: one[1] * one[2] for one in scene.there}
    lost = {one[0]: _lost(one[3]) for one in scene.there}
    assert plan.price == sum(
        gpus[move.mover.key.name]
        * (RESTART_SECONDS if move.mover.stays else lost[move.mover.key.name])
        for move in plan.moves
    )
    world.annotate("w", {ASKED: f"{plan.price + 1}s"})
    shake(scene, random.Random(seed), restarts)  # noqa: S311  a seeded order
    assert world.there() == before | {"w"}
    for move in plan.moves:
        name = move.mover.key.name
        assert len(world.places(name)) == len(world.gangs[name].pods)
    assert set(world.evicted) == {move.mover.key.name for move in plan.moves}
    shown = (
        world.cluster.defragmentations.get(WAITING) or world.gangs["w"].gang.status.defragmentation
    )
    assert shown is not None
    assert (shown.phase, shown.price) == ("Done", round(plan.price))
    assert not len(world.cluster.nominations)


def _lost(saved: int | None) -> float:
    return (saved or 0) + RESTART_SECONDS
