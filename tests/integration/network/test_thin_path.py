"""Three namespaces with two rails: all pairs measured, and a limited rail found and named."""

from __future__ import annotations

import pytest
from tests.integration.network.conftest import World

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
