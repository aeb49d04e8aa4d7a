"""Claims and annotations are one model: what one grants is taken for the other."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.support.device_claims import (
    DRIVER,
    add_node,
    cards,
    claim_of,
    class_of,
    device,
    pod_with,
    request,
    slice_of,
)

from lockstep.api.claims import AllocatedDevices, Allocation, ClaimStatus, Consumer
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.explain.diagnosis import explain
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.util.bitmask import format_indices

MEMORY = "device.capacity['gpu.lockstep.dev'].memory.compareTo(quantity('80Gi')) >= 0"
NET, NIC = "net.test", "nic.test"


class World:
    """A state, decisions over it, and what the server would show of them."""

    def __init__(self) -> None:
        self.cluster, self.now = Cluster(), 1000.0
        self.decider = Decider(self.cluster)
        self.cluster.device_claims.set_class(class_of(DRIVER))
        self.cluster.device_claims.set_class(class_of(NIC, f"device.driver == '{NET}'"))

    def claims(self, *names: str, **more: object) -> None:
        for name in names:
            self.cluster.device_claims.set_claim(claim_of(name, request("r", **more)))

    def add(self, *pods) -> None:
        for one in pods:
            self.cluster.set_pod(one)

    def decide(self) -> dict[str, tuple[str, str]]:
        """Return by pod its node and its cards; whatever is decided counts from then on."""
        found = {}
        for _ in range(8):
            result = self.decider.decide(self.now)
            assert not result.errors
            for placement in result.placements:
                for one in placement.assignments:
                    found[one.member.name] = one.spot.node, format_indices(one.spot.gpus)
            self.now += 1
        return found

    def devices(self, pod: str) -> list[str]:
        written = self.cluster.device_claims.claims.decided(("default", pod))
        return [d.device for w in written for d in w.allocation.devices.results]

    def confirm(self, name: str, where: str, uid: str = "") -> None:
        """Let the server show the claim and the binding of the pod of the same name."""
        (written,) = self.cluster.device_claims.claims.decided(("default", name))
        user = Consumer(resource="pods", name=name, uid=uid or f"uid-{name}")
        status = ClaimStatus(allocation=written.allocation, reserved_for=[user])
        self.cluster.device_claims.set_claim(replace(written.claim, status=status))
        meta = {"resourceVersion": "2"}
        self.cluster.set_pod(pod_with(name, written.claim.metadata.name, node=where, **meta))


def test_a_card_granted_by_one_is_taken_for_the_other():
    world = World()
    add_node(world.cluster, "a", 2)
    world.claims("claimed")
    world.add(pod_with("claimed", "claimed"), pod_with("asking", gpus=1))
    found = world.decide()
    assert sorted(found.values()) == [("a", "0"), ("a", "1")]
    assert world.devices("claimed") == [f"gpu-{found['claimed'][1]}"]
    world.confirm("claimed", "a")
    world.add(pod_with("more", gpus=1))
    assert world.decide() == {}
    world.cluster.remove_pod("default", "claimed")
    world.cluster.device_claims.remove_claim("default", "claimed")
    assert world.decide() == {"more": ("a", found["claimed"][1])}


def test_selectors_choose_cards_and_nodes():
    world = World()
    small, big = (
        device("gpu-0", {"memory": "40Gi"}, index=0),
        device("gpu-1", {"memory": "80Gi"}, index=1),
    )
    add_node(world.cluster, "a", 1, [small])
    add_node(world.cluster, "b", 2, [small, big])
    for name in ("one", "two"):
        asked = claim_of(name, request("r", DRIVER, MEMORY))
        world.cluster.device_claims.set_claim(asked)
    world.add(pod_with("one", "one"), pod_with("two", "two"))
    assert world.decide() == {"one": ("b", "1")}
    world.add(pod_with("plain", gpus=1))
    assert world.decide()["plain"][1] == "0"


def test_a_gang_of_claims_fills_a_node_device_by_device():
    world = World()
    add_node(world.cluster, "a", 4, cards(4, model="H100"))
    names = [f"p{i}" for i in range(3)]
    pair = {"matchAttribute": f"{DRIVER}/model"}
    for name in names:
        asked = claim_of(name, request("r", DRIVER, count=2), constraints=[pair])
        world.cluster.device_claims.set_claim(asked)
        world.add(pod_with(name, name))
    assert sorted(world.decide().values()) == [("a", "0,1"), ("a", "2,3")]


def test_devices_of_other_drivers_are_allocated():
    world = World()
    add_node(world.cluster, "a", 1)
    add_node(world.cluster, "b", 1)
    nics = [device("eth1"), device("eth2")]
    world.cluster.device_claims.set_slice(slice_of(NET, "b", nics))
    for name in ("one", "two", "three"):
        world.claims(name, klass=NIC)
        world.add(pod_with(name, name))
    found = world.decide()
    assert [where for where, _ in found.values()] == ["b", "b"]
    assert sorted(d for name in found for d in world.devices(name)) == ["eth1", "eth2"]
    (left,) = {"one", "two", "three"} - found.keys()
    world.cluster.device_claims.set_slice(slice_of(NET, "a", nics))
    assert world.decide() == {left: ("a", "")}


def test_pods_that_share_a_claim_stand_together():
    world = World()
    for name in ("a", "b"):
        add_node(world.cluster, name, 1)
    world.claims("first")
    world.add(pod_with("first", "first"))
    ((where, _),) = world.decide().values()
    world.confirm("first", where)
    world.add(pod_with("second", "first"))
    assert world.decide() == {"second": (where, "")}


def test_what_a_lost_start_was_given_is_chosen_anew():
    world = World()
    add_node(world.cluster, "a", 1)
    add_node(world.cluster, "b", 1)
    asked = claim_of("c", request())
    gone = Allocation(devices=AllocatedDevices())
    user = Consumer(resource="pods", name="p", uid="uid-p")
    status = ClaimStatus(allocation=gone, reserved_for=[user])
    world.cluster.device_claims.set_claim(replace(asked, status=status))
    world.add(pod_with("p", "c"), pod_with("q", gpus=1))
    assert sorted(world.decide()) == ["p", "q"]
    assert world.devices("p") == ["gpu-0"]


def test_what_holds_a_pod_back_is_said():
    world = World()
    add_node(world.cluster, "a", 1)
    wrong = request("r", DRIVER, "device.attributes['gpu.lockstep.dev'].colour == 'red'")
    world.cluster.device_claims.set_claim(claim_of("wrong", wrong))
    world.claims("classless", klass="none")
    for name, words in (
        ("absent", "ResourceClaim absent is not there yet"),
        ("classless", "DeviceClass none, which does not exist"),
        ("wrong", "colour"),
    ):
        pod = pod_with(name, name)
        world.add(pod)
        assert world.decide() == {}
        workload = world.cluster.workloads[world.cluster.pods["default", name].workload]
        assert words in explain(world.cluster, workload).message


def test_a_claim_that_appears_lets_its_pod_go_on():
    world = World()
    add_node(world.cluster, "a", 1)
    world.add(pod_with("late", "late"))
    assert world.decide() == {}
    world.claims("late")
    assert world.decide() == {"late": ("a", "0")}


def test_a_slice_that_cannot_be_read_is_not_there():
    world = World()
    add_node(world.cluster, "a", 1)
    world.claims("c")
    world.add(pod_with("p", "c"))
    odd = slice_of(DRIVER, "a", [device("gpu-0", {"memory": "much"}, index=0)])
    with pytest.raises(ValueError, match="'much' is not a quantity"):
        world.cluster.device_claims.set_slice(odd)
    assert world.decide() == {}
    world.cluster.device_claims.set_slice(slice_of(DRIVER, "a", cards(1)))
    assert world.decide() == {"p": ("a", "0")}
