"""Containers and their contents, stranded pods, expiry: decided as Kubernetes decides them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockstep.apiserver.gc.contents import ContainerGraph
from lockstep.apiserver.gc.expiry import Expiry
from lockstep.apiserver.gc.model import (
    Delete,
    Finish,
    Item,
    Place,
)
from lockstep.apiserver.gc.pods import StrandedPods


def thing(name: str, *, resource: str = "pods", namespace: str = "a") -> Item:
    return Item(Place(resource, namespace, name), f"uid-{namespace}-{name}")


NAMESPACE = Item(Place("namespaces", "", "a"), "ns", deleting=True)
CRD = Item(
    Place("customresourcedefinitions.apiextensions.k8s.io", "", "gangs.lockstep.dev"),
    "crd",
    finalizers=frozenset({"customresourcecleanup.apiextensions.k8s.io"}),
    deleting=True,
)


@pytest.mark.parametrize(
    ("container", "inside", "outside"),
    [
        (NAMESPACE, thing("p"), thing("p", namespace="b")),
        (CRD, thing("g", resource="gangs.lockstep.dev"), thing("g")),
    ],
)
def test_a_container_goes_once_it_is_empty(container: Item, inside: Item, outside: Item) -> None:
    items = {item.place: item for item in (container, inside, outside)}

    def contents(place: Place) -> list[Item]:
        key = "namespace" if place.resource == "namespaces" else "resource"
        return [i for i in items.values() if getattr(i.place, key) == place.name]

    graph = ContainerGraph(items.get, contents)
    graph.observe(None, replace(container, deleting=False))
    assert graph.take() == []
    graph.observe(replace(container, deleting=False), container)
    assert graph.take() == [container.place]
    assert graph.decide(container.place) == [Delete(inside.place, inside.uid)]
    items[inside.place] = replace(inside, deleting=True)
    assert graph.decide(container.place) == []
    graph.observe(outside, None)
    assert graph.take() == []
    del items[inside.place]
    graph.observe(inside, None)
    assert graph.take() == [container.place]
    (finish,) = graph.decide(container.place)
    assert isinstance(finish, Finish)
    assert (finish.place, finish.uid) == (container.place, container.uid)
    graph.observe(container, None)
    graph.observe(inside, None)
    assert graph.take() == []


POD = Place("pods", "a", "p")


@pytest.mark.parametrize(
    ("events", "now", "deleted"),
    [
        ([("node", "n", 0), ("pod", "n", 1)], 1000, False),
        ([("pod", "n", 0)], 39, False),
        ([("pod", "n", 0)], 40, True),
        ([("pod", "n", 0), ("node", "n", 10)], 1000, False),
        ([("node", "n", 0), ("pod", "n", 0), ("gone", "n", 100)], 139, False),
        ([("node", "n", 0), ("pod", "n", 0), ("gone", "n", 100)], 140, True),
        ([("node", "n", 0), ("pod", "n", 0), ("gone", "n", 100), ("node", "n", 120)], 200, False),
        ([("pod", "n", 0), ("ended", "n", 5)], 1000, False),
    ],
)
def test_pods_of_missing_nodes_are_deleted_after_a_while(
    events: list[tuple[str, str, float]], now: float, deleted: bool
) -> None:
    stranded = StrandedPods(quarantine=40)
    for event, node, moment in events:
        match event:
            case "node":
                stranded.node_seen(node)
            case "gone":
                stranded.node_gone(node, moment)
            case "pod":
                stranded.pod_seen(POD, "uid", node, moment)
            case "ended":
                stranded.pod_gone(POD, node)
    expected = [Delete(POD, "uid", grace=0)] if deleted else []
    due = stranded.next_due()
    assert (due is not None and due <= now) is deleted
    assert stranded.due(now) == expected
    assert stranded.due(now) == [], "once said, it waits for another quarantine"


def test_events_expire_in_the_order_of_their_last_write() -> None:
    expiry = Expiry(lifetime=10)
    one, two, three = (Place("events", "a", name) for name in ("one", "two", "three"))
    for moment, place in enumerate((one, two, three)):
        expiry.seen(place, place.name, moment)
    expiry.seen(one, "one", 5)
    expiry.gone(three)
    assert expiry.next_due() == 11
    assert expiry.due(10) == []
    assert expiry.due(11) == [Delete(two, "two")]
    assert expiry.due(15) == [Delete(one, "one")]
    assert expiry.due(16) == []
    expiry.gone(one)
    assert expiry.due(21) == [Delete(two, "two")], "what is still there is due again"
