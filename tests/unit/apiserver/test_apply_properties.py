"""Server-side apply over any history of configurations."""

from __future__ import annotations

import copy

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.applied_objects import LATER, POD, Json, by, owners, pod

from lockstep.apiserver.patch import apply

values = st.dictionaries(st.sampled_from("abcd"), st.sampled_from("12"), max_size=4)
items = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("abc"), "image": st.sampled_from("12")}),
    max_size=3,
    unique_by=lambda item: item["name"],
)
configurations = st.builds(
    lambda labels, containers: {
        **pod(*containers),
        "metadata": {"name": "p", "namespace": "x", "labels": labels},
    },
    values,
    items,
)
histories = st.lists(st.tuples(st.sampled_from(["one", "two"]), configurations), max_size=5)


def played(history: list[tuple[str, Json]]) -> Json | None:
    live: Json | None = None
    for manager, configuration in history:
        live = apply(live, configuration, POD, by(manager), force=True)
    return live


@settings(deadline=None)
@given(histories, configurations)
def test_applying_twice_is_applying_once(
    history: list[tuple[str, Json]], configuration: Json
) -> None:
    live = played(history)
    before = copy.deepcopy(live)
    once = apply(live, configuration, POD, by("one"), force=True)
    twice = apply(once, configuration, POD, by("one", LATER))
    assert live == before
    assert twice == once


@settings(deadline=None)
@given(histories, configurations)
def test_what_was_applied_is_there(history: list[tuple[str, Json]], configuration: Json) -> None:
    new = apply(played(history), configuration, POD, by("one"), force=True)
    assert (
        configuration["metadata"]["labels"].items() <= (new["metadata"].get("labels") or {}).items()
    )
    present = {c["name"]: c for c in new["spec"].get("containers") or ()}
    for container in configuration["spec"]["containers"]:
        assert present[container["name"]] == container


@settings(deadline=None)
@given(histories)
def test_without_its_owners_a_field_is_gone(history: list[tuple[str, Json]]) -> None:
    """When every manager lets go of everything, nothing that they set is left."""
    live = played(history)
    if live is None:
        return
    nothing = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "x"}}
    for manager in ("one", "two"):
        live = apply(live, nothing, POD, by(manager))
    assert not live["metadata"].get("labels")
    assert not (live.get("spec") or {}).get("containers")
    assert all(e["operation"] == "Update" for e in live["metadata"].get("managedFields", ()))


@settings(deadline=None)
@given(histories)
def test_every_leaf_of_an_applied_object_has_an_owner(history: list[tuple[str, Json]]) -> None:
    live = played(history)
    if live is None:
        return
    owned = [fields.get("f:metadata", {}).get("f:labels", {}) for fields in owners(live).values()]
    for label in live["metadata"].get("labels") or {}:
        assert any(f"f:{label}" in fields for fields in owned)
