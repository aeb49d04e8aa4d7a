"""Three namespaces with two rails: all pairs measured, and a limited rail found and named."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
from tests.support.network_world import World

pytestmark = pytest.mark.xdist_group("network")


def test_sound_rails_are_found_healthy(world: World) -> None:
    code, said = world.check()
    assert (code, said["verdict"]["kind"]) == (0, "healthy"), said
    pairs = {(one["from"], one["to"], one["rail"]) for one in said["matrix"]}
    assert pairs == {
        (a, b, rail)
        for a, b in (("n1", "n2"), ("n1", "n3"), ("n2", "n3"))
        for rail in ("rail0", "rail1")
    }
    assert all(0.05 < one["rate"] < 0.3 for one in said["matrix"]), said["matrix"]


def test_a_limited_rail_is_named(world: World) -> None:
    world.fabric.limit("n2", "rail1", "40mbit")
    try:
        code, said = world.check()
    finally:
        world.fabric.limit("n2", "rail1", "200mbit")
    verdict = said["verdict"]
    assert (code, verdict["kind"], verdict["place"]) == (1, "nic", "n2/rail1"), said
    health = world.read("/apis/lockstep.dev/v1alpha1/nodehealths/n2")
    assert ["n2/rail1" in one["cause"] for one in health["spec"]["findings"]] == [True]


@pytest.fixture
def routed(world: World) -> Iterator[None]:
    """Let the switch route between the rails, as spines do."""
    ways = (("rail0", 60, 61), ("rail1", 61, 60))
    commands = [("switch", ["sysctl", "-qw", "net.ipv4.ip_forward=1"])]
    for number, (_, own, _) in enumerate(ways):
        address = ["ip", "addr", "add", f"10.{own}.255.254/16", "dev", f"br{number}"]
        commands.append(("switch", address))
    for node in ("n1", "n2", "n3"):
        for nic, own, other in ways:
            way = ["via", f"10.{own}.255.254", "dev", nic, "metric", "100"]
            commands.append((node, ["ip", "route", "add", f"10.{other}.0.0/16", *way]))
    for where, command in commands:
        subprocess.run(world.fabric.inside(where, *command), check=True)
    yield
    for where, command in reversed(commands[1:]):
        undo = ["del" if word == "add" else word for word in command]
        subprocess.run(world.fabric.inside(where, *undo), check=True)


@pytest.mark.usefixtures("routed")
def test_rails_are_measured_to_each_other(world: World) -> None:
    code, said = world.check("--across", "--seconds", "0.5")
    assert (code, said["verdict"]["kind"]) == (0, "healthy"), said
    across = [one for one in said["matrix"] if one.get("toRail")]
    assert {(one["rail"], one["toRail"]) for one in across} == {
        ("rail0", "rail1"),
        ("rail1", "rail0"),
    }
    assert len(across) == 6
    assert all(one["rate"] > 0.05 for one in across), across
