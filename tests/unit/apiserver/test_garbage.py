"""Owner references: who goes with whom, decided as Kubernetes decides it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from lockstep.apiserver.gc.model import (
    FOREGROUND,
    ORPHAN,
    Action,
    Delete,
    DropOwners,
    Finish,
    Item,
    Owned,
    Place,
    Unblock,
)
from lockstep.apiserver.gc.owners import OwnerGraph

KINDS = {"Pod": ("pods", True), "Job": ("jobs.batch", True), "Node": ("nodes", False)}
RESOURCES = {resource: kind for kind, (resource, _) in KINDS.items()}


class World:
    """Objects, and a server's manners: deletion, finalizers, garbage collection by decisions."""

    def __init__(self) -> None:
        self.items: dict[Place, Item] = {}
        self.kinds = dict(KINDS)
        self.owners = OwnerGraph(self.items.get, lambda _, kind: self.kinds.get(kind))

    def put(self, item: Item) -> Item:
        old = self.items.get(item.place)
        self.items[item.place] = item
        self.owners.observe(old, item)
        return item

    def remove(self, place: Place) -> None:
        self.owners.observe(self.items.pop(place), None)

    def delete(self, place: Place, propagation: str = "Background") -> None:
        item = self.items.get(place)
        if item is None:
            return
        finalizers = item.finalizers - {FOREGROUND, ORPHAN}
        added = {"Foreground": {FOREGROUND}, "Orphan": {ORPHAN}}.get(propagation, set())
        item = replace(item, finalizers=finalizers | added, deleting=True)
        if item.finalizers:
            self.put(item)
        else:
            self.remove(place)

    def do(self, action: Action) -> None:
        item = self.items.get(action.place)
        if item is None or item.uid != action.uid:
            return
        match action:
            case Delete():
                self.delete(action.place, action.propagation)
            case DropOwners(owners=gone):
                kept = tuple(o for o in item.owners if o.uid not in gone)
                self.put(replace(item, owners=kept))
            case Unblock():
                self.put(replace(item, owners=tuple(replace(o, blocks=False) for o in item.owners)))
            case Finish(finalizer=finalizer):
                rest = item.finalizers - {finalizer}
                if rest or not item.deleting:
                    self.put(replace(item, finalizers=rest))
                else:
                    self.remove(action.place)

    def settle(self) -> None:
        for _ in range(200):
            marked = self.owners.take()
            if not marked:
                return
            for place in marked:
                for action in self.owners.decide(place):
                    self.do(action)
        raise AssertionError("the collector never comes to rest")

    def names(self) -> set[str]:
        return {place.name for place in self.items}


def thing(
    name: str, *owners: Item, resource: str = "pods", namespace: str = "a", blocks: bool = False
) -> Item:
    references = tuple(
        Owned("v1", RESOURCES[o.place.resource], o.place.name, o.uid, blocks) for o in owners
    )
    place = Place(resource, "" if resource == "nodes" else namespace, name)
    return Item(place, f"uid-{namespace}-{name}", references)


@pytest.fixture
def family() -> World:
    """A job owns two pods; one of the pods owns a third."""
    world = World()
    job = world.put(thing("job", resource="jobs.batch"))
    first = world.put(thing("first", job, blocks=True))
    world.put(thing("second", job))
    world.put(thing("grandchild", first, blocks=True))
    world.put(thing("stranger"))
    world.settle()
    return world


JOB = Place("jobs.batch", "a", "job")


def test_nothing_happens_while_owners_are_there(family: World) -> None:
    assert family.names() == {"job", "first", "second", "grandchild", "stranger"}


@pytest.mark.parametrize(
    ("propagation", "left"),
    [
        ("Background", {"stranger"}),
        ("Foreground", {"stranger"}),
        ("Orphan", {"first", "second", "grandchild", "stranger"}),
    ],
)
def test_the_ways_to_delete_an_owner(family: World, propagation: str, left: set[str]) -> None:
    family.delete(JOB, propagation)
    family.settle()
    assert family.names() == left
    assert all(o.uid != "uid-a-job" for item in family.items.values() for o in item.owners)


def test_foreground_deletion_ends_with_the_owner(family: World) -> None:
    family.put(replace(family.items[Place("pods", "a", "first")], finalizers=frozenset({"x"})))
    family.delete(JOB, "Foreground")
    family.settle()
    assert family.names() == {"job", "first", "grandchild", "stranger"} - {"grandchild"}
    assert family.items[JOB].deleting
    family.do(Finish(Place("pods", "a", "first"), "uid-a-first", "x"))
    family.settle()
    assert family.names() == {"stranger"}


def test_foreground_deletion_does_not_wait_for_what_does_not_block(family: World) -> None:
    family.remove(Place("pods", "a", "first"))
    family.settle()
    second = Place("pods", "a", "second")
    family.put(replace(family.items[second], finalizers=frozenset({"x"})))
    family.delete(JOB, "Foreground")
    family.settle()
    assert family.names() == {"second", "stranger"}
    assert family.items[second].deleting


def test_an_object_lives_as_long_as_one_of_its_owners() -> None:
    world = World()
    one, two = world.put(thing("one")), world.put(thing("two"))
    child = world.put(thing("child", one, two))
    world.settle()
    world.delete(one.place)
    world.settle()
    assert [o.name for o in world.items[child.place].owners] == ["two"]
    world.delete(two.place)
    world.settle()
    assert world.names() == set()


def test_an_object_created_for_a_deleted_owner_goes_too() -> None:
    world = World()
    world.put(thing("late", thing("owner")))
    world.settle()
    assert world.names() == set()


def test_an_owner_recreated_under_its_name_is_another_one() -> None:
    world = World()
    owner = world.put(thing("owner"))
    world.put(thing("child", owner))
    world.settle()
    world.items[owner.place] = replace(owner, uid="new")
    world.owners.observe(owner, None)
    world.owners.observe(None, world.items[owner.place])
    world.settle()
    assert world.names() == {"owner"}


@pytest.mark.parametrize(
    ("child", "lives"),
    [
        (thing("child", thing("owner"), namespace="b"), False),
        (thing("child", thing("n", resource="nodes"), namespace="b"), True),
        (thing("child", thing("owner"), resource="nodes"), True),
        (replace(thing("child"), owners=(Owned("x/v1", "Unknown", "u", "u"),)), True),
        (replace(thing("child"), owners=(Owned("v1", "Pod", "renamed", "uid-a-owner"),)), False),
    ],
    ids=["other namespace", "cluster-scoped owner", "namespaced owner", "unknown kind", "renamed"],
)
def test_references_across_scopes(child: Item, lives: bool) -> None:
    world = World()
    world.put(thing("owner"))
    world.put(thing("n", resource="nodes"))
    world.put(child)
    world.settle()
    assert ("child" in world.names()) is lives


def test_a_kind_that_appears_later_decides_then() -> None:
    world = World()
    world.put(replace(thing("child"), owners=(Owned("x/v1", "Late", "gone", "gone"),)))
    world.settle()
    assert world.names() == {"child"}
    world.kinds["Late"] = ("lates.x", True)
    world.owners.recheck()
    world.settle()
    assert world.names() == set()


def test_a_decision_that_could_not_be_done_is_made_again() -> None:
    world = World()
    orphan = world.put(thing("late", thing("owner")))
    assert world.owners.take() == [orphan.place]
    assert world.owners.take() == []
    world.owners.mark(orphan.place)
    world.settle()
    assert world.names() == set()


def test_objects_that_own_each_other_do_not_wait_for_ever() -> None:
    world = World()
    one = thing("one")
    two = thing("two", one, blocks=True)
    world.put(replace(one, owners=(Owned("v1", "Pod", "two", two.uid, blocks=True),)))
    world.put(two)
    world.settle()
    world.delete(one.place, "Foreground")
    world.settle()
    assert world.names() == set()


NAMES = ["p0", "p1", "p2", "p3", "p4"]
steps = st.lists(
    st.tuples(
        st.sampled_from(["create", "Background", "Foreground", "Orphan", "rest"]),
        st.sampled_from(NAMES),
        st.lists(st.sampled_from(NAMES), max_size=2, unique=True),
        st.booleans(),
    ),
    max_size=14,
)


@settings(max_examples=examples(300), deadline=None)
@given(steps)
def test_at_rest_nothing_refers_only_to_what_is_gone(
    history: list[tuple[str, str, list[str], bool]],
) -> None:
    """Whatever happens, the collector comes to rest, and then no object has only lost owners."""
    world = World()
    for number, (step, name, owners, blocks) in enumerate(history):
        place = Place("pods", "a", name)
        if step == "create" and place not in world.items:
            present = [world.items.get(Place("pods", "a", o)) or thing(o) for o in owners]
            made = thing(name, *(o for o in present if o.place != place), blocks=blocks)
            world.put(replace(made, uid=f"{made.uid}-{number}"))
        elif step == "rest":
            world.settle()
        elif step != "create":
            world.delete(place, step)
    world.settle()
    uids = {item.uid for item in world.items.values()}
    for item in world.items.values():
        assert not item.deleting
        assert not item.owners or any(o.uid in uids for o in item.owners)


def test_only_what_a_change_concerns_is_looked_at() -> None:
    world = World()
    for n in range(100):
        world.put(thing(f"lone{n}"))
    job = world.put(thing("job", resource="jobs.batch"))
    children = {world.put(thing(f"child{n}", job)).place for n in range(3)}
    assert set(world.owners.take()) == children
    world.put(replace(world.items[job.place]))
    assert world.owners.take() == []
    world.remove(job.place)
    assert set(world.owners.take()) == children


def test_an_owner_of_thousands_is_not_read_for_each() -> None:
    world = World()
    job = world.put(thing("job", resource="jobs.batch"))
    pods = [world.put(thing(f"p{n}", job, blocks=True)) for n in range(50)]
    world.settle()
    for pod in pods:
        world.put(replace(pod, finalizers=frozenset({"x"})))
    world.delete(job.place, "Foreground")
    world.settle()
    for pod in pods[:-1]:
        world.remove(pod.place)
        assert world.owners.take() == []
    world.remove(pods[-1].place)
    assert world.owners.take() == [job.place]


def test_an_owner_that_is_named_twice_waits_once() -> None:
    world = World()
    job = world.put(thing("job", resource="jobs.batch"))
    child = thing("child", job, blocks=True)
    child = replace(child, owners=child.owners * 2, finalizers=frozenset({"x"}))
    world.put(child)
    world.settle()
    world.delete(job.place, "Foreground")
    world.settle()
    assert world.names() == {"job", "child"}
    world.remove(child.place)
    world.settle()
    assert world.names() == set()


def test_what_cannot_be_a_dependent_holds_nobody() -> None:
    world = World()
    job = world.put(thing("job", resource="jobs.batch"))
    foreign = world.put(
        replace(thing("foreign", job, namespace="b", blocks=True), finalizers=frozenset({"x"}))
    )
    world.settle()
    world.delete(job.place, "Foreground")
    world.settle()
    assert job.place not in world.items
    assert world.items[foreign.place].deleting
