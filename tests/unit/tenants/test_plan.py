"""What a team needs, and what is changed for it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.api.core import NAMESPACES, AnyObject
from lockstep.api.meta import ObjectMeta
from lockstep.api.queue import QUEUES, Queue
from lockstep.api.team import Team
from lockstep.runtime.actions import Apply, Delete
from lockstep.tenants.core.objects import OWNED, TEAM_LABEL, readable_above, wanted
from lockstep.tenants.core.plan import Plan, plan

Json = dict[str, Any]
ANA = {"name": "ana", "role": "Admin"}
BEN = {"name": "ben"}
FULL: Json = {
    "members": [ANA, BEN, {"name": "lab", "kind": "Group", "role": "View"}],
    "namespaces": ["vision", "vision-prod"],
    "queue": {"guaranteed": {"nvidia.com/gpu": 8}},
    "quota": {"requests.cpu": "0.5", "pods": 20},
    "containerDefaults": {"memory": "1Gi"},
    "network": "Isolated",
}


def team(name: str = "vision", **spec: Any) -> Team:
    body = {"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": spec}
    return msgspec.convert(body, Team)


class World:
    """The objects of a cluster, changed by the actions of plans."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], tuple[Any, Any]] = {}
        self.writes = 0

    def put(self, resource: Any, name: str, namespace: str = "", **body: Any) -> None:
        meta = {
            "name": name,
            "namespace": namespace,
            "uid": f"{name}-uid",
            **body.pop("metadata", {}),
        }
        obj = msgspec.convert({"metadata": meta, **body}, resource.type)
        self.objects[resource.plural, namespace, name] = (resource, obj)

    def carry_out(self, todo: Plan) -> None:
        for action in todo.actions:
            self.writes += 1
            if isinstance(action, Apply):
                body = dict(action.body)
                meta = body.pop("metadata")
                self.put(action.resource, action.name, action.namespace, metadata=meta, **body)
            else:
                del self.objects[action.resource.plural, action.namespace, action.name]

    def settle(self, wanted: Team) -> Plan:
        todo = plan(wanted, self.objects)
        self.carry_out(todo)
        return todo

    def kinds(self, namespace: str) -> set[str]:
        return {plural for plural, space, _ in self.objects if space == namespace}


def test_a_team_gets_all_of_its_objects() -> None:
    world = World()
    assert world.settle(team(**FULL)).problems == ()
    inside = {"rolebindings", "resourcequotas", "limitranges", "networkpolicies"}
    assert world.kinds("") == {
        "namespaces",
        "queues",
        "clusterroles",
        "clusterrolebindings",
    }
    assert world.kinds("vision") == world.kinds("vision-prod") == inside
    roles = {name for plural, _, name in world.objects if plural == "rolebindings"}
    assert roles == {"team-vision-admin", "team-vision-edit", "team-vision-view"}


def test_a_settled_team_is_left_alone() -> None:
    world = World()
    world.settle(team(**FULL))
    assert plan(team(**FULL), world.objects).actions == ()


@pytest.mark.parametrize(
    ("spelled", "right"),
    [
        ({"requests.cpu": "500m", "pods": "20"}, True),
        ({"requests.cpu": "600m", "pods": "20"}, False),
        ({"requests.cpu": "500m"}, False),
        ({"requests.cpu": "500m", "pods": "20", "configmaps": "1"}, False),
    ],
)
def test_amounts_count_however_they_are_spelled(spelled: Json, right: bool) -> None:
    world = World()
    world.settle(team(**FULL))
    owner = {"apiVersion": "v1", "kind": "Team", "name": "vision", "uid": "uid-vision"}
    label = {"labels": {TEAM_LABEL: "vision"}, "ownerReferences": [owner]}
    quotas = next(r for r in OWNED if r.plural == "resourcequotas")
    world.put(quotas, "team-vision", "vision", metadata=label, spec={"hard": spelled})
    assert (plan(team(**FULL), world.objects).actions == ()) is right


def test_what_a_team_no_longer_wants_goes_but_namespaces_stay() -> None:
    world = World()
    world.settle(team(**FULL))
    todo = world.settle(team(members=[BEN], namespaces=["vision"]))
    gone = {(a.resource.plural, a.namespace) for a in todo.actions if isinstance(a, Delete)}
    assert ("queues", "") in gone
    assert ("rolebindings", "vision-prod") in gone
    assert not any(plural == "namespaces" for plural, _ in gone)
    assert world.kinds("vision") == {"rolebindings"}


@pytest.mark.parametrize(
    ("spec", "there", "word"),
    [
        ({}, (NAMESPACES, "vision", {}), "kubectl label --overwrite namespaces vision"),
        ({}, (NAMESPACES, "vision", {TEAM_LABEL: "other"}), "belongs to team other"),
        ({"queue": {}}, (QUEUES, "vision", {}), "queue vision is there already"),
        ({"members": [ANA, {**ANA, "role": "View"}]}, None, "ana is Admin and View"),
        ({"members": [{"name": "x", "kind": "ServiceAccount"}]}, None, "is no NAMESPACE/NAME"),
    ],
)
def test_what_stands_in_the_way_is_named_and_nothing_done(
    spec: Json, there: tuple[Any, str, Json] | None, word: str
) -> None:
    world = World()
    if there is not None:
        resource, name, labels = there
        world.put(resource, name, metadata={"labels": labels})
    todo = world.settle(team(**spec))
    assert todo.actions == ()
    assert any(word in problem for problem in todo.problems)


def test_objects_of_a_former_namesake_team_are_taken_over() -> None:
    world = World()
    world.settle(team(**FULL))
    again = msgspec.structs.replace(
        team(**FULL), metadata=ObjectMeta(name="vision", uid="another uid")
    )
    todo = plan(again, world.objects)
    assert {action.resource for action in todo.actions} == set(OWNED) - {NAMESPACES}


def test_deletion_of_data_takes_an_owner() -> None:
    def owners(deletion: str) -> list[Any]:
        todo = plan(team(deletion=deletion), {})
        first = todo.actions[0]
        assert isinstance(first, Apply)
        return list(first.body["metadata"].get("ownerReferences", ()))

    assert owners("Keep") == []
    assert [owner["uid"] for owner in owners("Delete")] == ["uid-vision"]


members = st.lists(
    st.sampled_from(["ana", "ben", "cleo"]).map(lambda n: {"name": n, "role": "Edit"}), max_size=3
)
specs = st.fixed_dictionaries(
    {"members": members, "network": st.sampled_from(["Open", "Isolated"])},
    optional={"quota": st.just({"pods": "3"}), "queue": st.just({"weight": 2})},
)


@given(st.lists(specs, min_size=1, max_size=4))
def test_any_history_ends_where_the_last_spec_alone_would(history: list[Json]) -> None:
    world, fresh = World(), World()
    for spec in history:
        world.settle(team(**spec))
    fresh.settle(team(**history[-1]))
    assert world.objects.keys() == fresh.objects.keys()
    assert plan(team(**history[-1]), world.objects).actions == ()


def test_unlabelled_objects_are_never_removed() -> None:
    world = World()
    stranger = AnyObject(metadata=ObjectMeta(name="theirs", namespace="vision"))
    quotas = next(r for r in OWNED if r.plural == "resourcequotas")
    world.objects["resourcequotas", "vision", "theirs"] = (quotas, stranger)
    world.settle(team())
    assert ("resourcequotas", "vision", "theirs") in world.objects


def test_devices_forbidden_to_a_team_count_for_no_team() -> None:
    found = [one for one in wanted(team(devices=["nvidia.com/gpu"])) if "devices" in one.name]
    (quota,) = found
    hard = quota.body["spec"]["hard"]
    assert "requests.nvidia.com/gpu" not in hard
    assert hard["requests.amd.com/gpu"] == hard["requests.lockstep.dev/gpu-memory"] == "0"
    assert not [one for one in wanted(team()) if "devices" in one.name]


def queue(name: str, parent: str = "", labelled: str = "", **spec: Any) -> Queue:
    labels = {TEAM_LABEL: labelled} if labelled else {}
    body = {"metadata": {"name": name, "labels": labels}, "spec": {"parent": parent, **spec}}
    return msgspec.convert(body, Queue)


@pytest.mark.parametrize(
    ("others", "readable"),
    [
        ([queue("lab"), queue("top")], ["lab"]),
        ([queue("lab", "top"), queue("top")], ["lab", "top"]),
        ([queue("lab", "top", labelled="blue"), queue("top")], ["top"]),
        ([queue("lab", "top", allowed={"namespaces": ["blue"]}), queue("top")], ["top"]),
        ([queue("lab", "vision")], ["lab"]),
        ([], []),
    ],
    ids=["parent", "all above", "of another team", "names others", "ring", "missing"],
)
def test_members_read_queues_above_that_tell_of_no_others(
    others: list[Queue], readable: list[str]
) -> None:
    queues = {one.metadata.name: one for one in (queue("vision", "lab", "vision"), *others)}
    assert readable_above("vision", queues) == readable
    roles = [one for one in wanted(team(**FULL), readable) if one.resource.plural == "clusterroles"]
    granted = {one["resources"][0]: one["resourceNames"] for one in roles[0].body["rules"]}
    assert granted == {"teams": ["vision"], "queues": ["vision", *readable]}
