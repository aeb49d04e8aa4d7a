"""Trees of random fabrics are found whole, and wrong cables named."""

from __future__ import annotations

import random

import pytest
from bench.support.networks import fat_tree

from lockstep.devices.network.core.fabric import Cable, End, Fabric, resolve


def groups(nodes: dict[str, list[str]], tier: int) -> set[frozenset[str]]:
    held: dict[str, set[str]] = {}
    for node, path in nodes.items():
        held.setdefault(path[tier], set()).add(node)
    return {frozenset(one) for one in held.values()}


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("broken", [False, True])
def test_trees_are_found_and_faults_named(seed: int, broken: bool) -> None:
    drawn = fat_tree(random.Random(seed), broken=broken)  # noqa: S311
    found = resolve(drawn.fabric)
    nodes = {node: list(path) for node, path in found.nodes.items()}
    depth = len(next(iter(drawn.nodes.values())))
    assert len(found.tiers) == depth
    for tier in range(depth):
        assert groups(nodes, tier) == groups(drawn.nodes, tier), (tier, drawn.broken)
    if broken:
        assert any(drawn.broken in one.place for one in found.faults), (drawn.broken, found.faults)
    else:
        assert found.faults == []


def test_a_host_on_another_rail_is_named() -> None:
    fabric = Fabric(hosts={f"h{n}" for n in range(6)}, switches={"l0", "l1"})
    for n in range(6):
        far = ("l1", "l0") if n == 3 else ("l0", "l1")
        fabric.cables += [Cable(End(f"h{n}", f"mlx5_{r}"), End(far[r], f"p{n}")) for r in (0, 1)]
    assert {one.kind for one in resolve(fabric).faults} == {"wrong-rail"}
    assert all("h3[" in one.place for one in resolve(fabric).faults)


@pytest.mark.parametrize(
    ("cables", "kind", "place"),
    [
        ([("l0", "1", "l0", "2")], "loop", "l0[1] - l0[2]"),
        ([("l0", "9", "l1", "9")], "loop", "l0[9] - l1[9]"),
    ],
)
def test_loops_are_named(cables: list[tuple[str, ...]], kind: str, place: str) -> None:
    fabric = Fabric(hosts={"a", "b"}, switches={"l0", "l1", "s"})
    usual = [("a", "0", "l0", "5"), ("b", "0", "l1", "5"), ("l0", "7", "s", "1")]
    for one, p, other, q in [*usual, ("l1", "7", "s", "2"), *cables]:
        fabric.cables.append(Cable(End(one, p), End(other, q)))
    assert [(f.kind, f.place) for f in resolve(fabric).faults] == [(kind, place)]
