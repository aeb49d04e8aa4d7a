"""Which container a share is for, when kubelet asks for places on cards."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lockstep.api import names
from lockstep.api.core import Pod
from lockstep.devices.core import slots
from lockstep.devices.core.model import Card
from lockstep.devices.sharing.shelf import Grant, Shelf

CARDS = [Card(index=0, uuid="GPU-a"), Card(index=1, uuid="GPU-b")]
ALL = [place for card in CARDS for place in slots.places(card)]


def pod(name: str, cards: str, *counts: int, age: str = "1", phase: str = "Pending") -> Pod:
    """Return a pod on the cards *cards*, a container for each of *counts*; 0 takes no place."""
    containers = []
    for number, count in enumerate(counts):
        limits: dict[str, Any] = {names.GPU_MEMORY: 1000}
        if count:
            limits[names.GPU_CARDS] = count
        containers.append({"name": f"c{number}", "resources": {"limits": limits}})
    meta = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "creationTimestamp": age,
        "annotations": {names.GPUS_ANNOTATION: cards} if cards else {},
    }
    body = {"metadata": meta, "spec": {"containers": containers}, "status": {"phase": phase}}
    return msgspec.convert(body, Pod)


@pytest.mark.parametrize(
    ("pods", "granted", "size", "wanted"),
    [
        ([pod("a", "1", 1)], (), 1, ["GPU-b/00"]),
        ([pod("a", "0,1", 2)], (), 2, ["GPU-a/00", "GPU-b/00"]),
        ([pod("young", "0", 1, age="2"), pod("old", "1", 1)], (), 1, ["GPU-b/00"]),
        ([pod("a", "1", 1), pod("b", "0", 1)], [("uid-a", "c0")], 1, ["GPU-a/00"]),
        ([pod("over", "1", 1, phase="Failed"), pod("b", "0", 1)], (), 1, ["GPU-a/00"]),
        ([pod("unplaced", "", 1), pod("b", "1", 1)], (), 1, ["GPU-b/00"]),
        ([pod("unasked", "1", 0), pod("b", "0", 1)], (), 1, ["GPU-a/00"]),
    ],
)
def test_places_are_on_the_cards_of_the_oldest_that_waits(pods, granted, size, wanted):
    ahead = slots.waiting(pods, granted)
    assert slots.preferred(ALL, (), size, ahead=ahead, cards=CARDS) == wanted


def test_a_share_is_of_a_container_whose_cards_they_are():
    pods = [pod("a", "0", 1, 1), pod("b", "1", 1, age="2")]
    found = [
        slots.matching([place], slots.waiting(pods, granted), CARDS)
        for place, granted in (
            ("GPU-a/07", ()),
            ("GPU-a/08", [("uid-a", "c0")]),
            ("GPU-b/00", ()),
            ("GPU-b/00", [("uid-b", "c0")]),
        )
    ]
    assert [one.key if one else None for one in found] == [
        ("uid-a", "c0"),
        ("uid-a", "c1"),
        ("uid-b", "c0"),
        None,
    ]


def test_a_share_without_a_place_is_told():
    pods = [pod("a", "0", 1, 0), pod("over", "0", 0, phase="Succeeded")]
    assert [(one.metadata.name, c) for one, c in slots.unasked(pods)] == [("a", "c1")]


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_shares_that_were_mixed_up_change_hands_once(tmp_path, rounds):
    shelf = Shelf(tmp_path)
    first, second = (
        Grant(
            namespace="default",
            pod=name,
            container="main",
            uid=name,
            cards=["GPU-a"],
            memory=memory,
            places=[place],
        )
        for name, memory, place in (("a", 1, "GPU-a/00"), ("b", 2, "GPU-a/01"))
    )
    files = [shelf.put(one).stat().st_ino for one in (first, second)]
    theirs = {one.places[0]: other for one, other in ((first, second), (second, first))}

    def true(one: Grant) -> Grant | None:
        holder = theirs[one.places[0]]
        return (
            None
            if holder.pod == one.pod
            else msgspec.structs.replace(holder, places=one.places, cards=one.cards)
        )

    for _ in range(rounds):
        shelf.settle(true)
    found = {one.pod: (one.memory, one.places, path.stat().st_ino) for one, path in shelf.grants()}
    assert found == {
        "a": (1, ["GPU-a/01"], files[1]),
        "b": (2, ["GPU-a/00"], files[0]),
    }
