"""Server-side apply: fields have owners, and owners decide about their fields."""

from __future__ import annotations

import json

import pytest
from tests.support.applied_objects import (
    CONFIG_MAP,
    LATER,
    NOW_TEXT,
    by,
    config,
    created,
    owners,
    pod,
    updated,
    without_managers,
)

from lockstep.apiserver.patch import PatchError, apply, relevant, track


def test_apply_creates_what_is_not_there() -> None:
    new = apply(None, config({"a": "1"}), CONFIG_MAP, by("kubectl"))
    assert without_managers(new) == config({"a": "1"})
    assert new["metadata"]["managedFields"] == [
        {
            "manager": "kubectl",
            "operation": "Apply",
            "apiVersion": "v1",
            "time": NOW_TEXT,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {"f:a": {}}},
        }
    ]


def test_an_apply_adds_to_what_others_have_set() -> None:
    live = created(config({"a": "1"}))
    new = apply(live, config({"b": "2"}), CONFIG_MAP, by("kubectl", LATER))
    assert new["data"] == {"a": "1", "b": "2"}
    assert owners(new) == {
        "kubectl": {"f:data": {"f:b": {}}},
        "creator (Update)": {"f:data": {".": {}, "f:a": {}}},
    }


def test_what_is_no_longer_applied_and_nobody_elses_goes() -> None:
    live = apply(None, config({"a": "1", "b": "2"}), CONFIG_MAP, by("one"))
    live = apply(live, config({"b": "2", "c": "3"}), CONFIG_MAP, by("two"))
    new = apply(live, config({}), CONFIG_MAP, by("one"))
    assert new["data"] == {"b": "2", "c": "3"}
    last = apply(new, config(), CONFIG_MAP, by("two"))
    assert "data" not in last or last["data"] == {}


def test_fields_that_nobody_applied_stay() -> None:
    live = apply(None, config({"a": "1"}), CONFIG_MAP, by("one"))
    live = updated(live, {**live, "data": {"a": "1", "b": "2"}}, "edit")
    new = apply(live, config(), CONFIG_MAP, by("one"))
    assert new["data"] == {"b": "2"}


CONFLICT = [
    ("one", "Apply", "", 'conflict with "one": .data.a'),
    ("edit", "Update", "", 'conflict with "edit" using v1: .data.a'),
    (
        "edit",
        "Update",
        "status",
        'conflict with "edit" with subresource "status" using v1: .data.a',
    ),
]


@pytest.mark.parametrize(("manager", "operation", "subresource", "message"), CONFLICT)
def test_a_change_of_somebody_elses_field_is_a_conflict(
    manager: str, operation: str, subresource: str, message: str
) -> None:
    writer = by(manager, subresource=subresource)
    if operation == "Apply":
        live = apply(None, config({"a": "1"}), CONFIG_MAP, writer)
    else:
        live = config({"a": "1"})
        track(None, live, CONFIG_MAP, writer)
    with pytest.raises(PatchError) as error:
        apply(live, config({"a": "2"}), CONFIG_MAP, by("two"))
    assert error.value.to_object() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"Apply failed with 1 conflict: {message}",
        "reason": "Conflict",
        "details": {
            "causes": [
                {
                    "reason": "FieldManagerConflict",
                    "message": message.removesuffix(": .data.a"),
                    "field": ".data.a",
                }
            ]
        },
        "code": 409,
    }


def test_several_conflicts_are_listed_by_manager() -> None:
    live = apply(None, config({"a": "1", "b": "1"}), CONFIG_MAP, by("one"))
    live = apply(live, config({"c": "1"}), CONFIG_MAP, by("two"))
    with pytest.raises(PatchError) as error:
        apply(live, config({"a": "2", "b": "2", "c": "2"}), CONFIG_MAP, by("three"))
    assert error.value.message == (
        "Apply failed with 3 conflicts: "
        'conflicts with "one":\n- .data.a\n- .data.b\nconflicts with "two":\n- .data.c'
    )


def test_force_takes_the_field_over() -> None:
    live = apply(None, config({"a": "1", "b": "1"}), CONFIG_MAP, by("one"))
    new = apply(live, config({"a": "2"}), CONFIG_MAP, by("two"), force=True)
    assert new["data"] == {"a": "2", "b": "1"}
    assert owners(new) == {"one": {"f:data": {"f:b": {}}}, "two": {"f:data": {"f:a": {}}}}
    again = apply(new, config({"b": "1"}), CONFIG_MAP, by("one"))
    assert again["data"] == {"a": "2", "b": "1"}


def test_equal_values_are_shared() -> None:
    live = apply(None, config({"a": "1"}), CONFIG_MAP, by("one"))
    both = apply(live, config({"a": "1"}), CONFIG_MAP, by("two"))
    assert owners(both) == {"one": {"f:data": {"f:a": {}}}, "two": {"f:data": {"f:a": {}}}}
    one_left = apply(both, config(), CONFIG_MAP, by("one"))
    assert one_left["data"] == {"a": "1"}
    assert owners(one_left) == {"two": {"f:data": {"f:a": {}}}}


def test_kubectl_moves_from_client_side_to_server_side_apply() -> None:
    """The last applied configuration says which fields of its older self it may change."""
    annotation = "kubectl.kubernetes.io/last-applied-configuration"
    stated = config({"a": "1"})
    live = created(stated, "kubectl-client-side-apply")
    live["metadata"]["annotations"] = {annotation: json.dumps(stated)}
    new = apply(live, config({"a": "2"}), CONFIG_MAP, by("kubectl"))
    assert new["data"] == {"a": "2"}
    assert json.loads(new["metadata"]["annotations"][annotation])["data"] == {"a": "2"}
    foreign = updated(live, {**live, "data": {"a": "5"}}, "edit")
    with pytest.raises(PatchError, match='conflict with "edit" using v1'):
        apply(foreign, config({"a": "2"}), CONFIG_MAP, by("kubectl"))
    with pytest.raises(PatchError, match="kubectl-client-side-apply"):
        apply(live, config({"a": "2"}), CONFIG_MAP, by("other"))


@pytest.mark.parametrize(
    ("subresource", "has_status", "kept"),
    [
        ("", True, {"spec", "metadata", "apiVersion", "kind"}),
        ("", False, {"spec", "status", "metadata", "apiVersion", "kind"}),
        ("status", True, {"status", "metadata", "apiVersion", "kind"}),
    ],
)
def test_what_can_be_applied_through_a_subresource(
    subresource: str, has_status: bool, kept: set[str]
) -> None:
    stated = {**pod(), "status": {"phase": "Running"}}
    stated["metadata"]["labels"] = {"a": "b"}
    found = relevant(stated, subresource, has_status=has_status)
    assert set(found) == kept
    assert ("labels" in found["metadata"]) is (subresource == "")


def test_fields_are_kept_in_order() -> None:
    keys = {"z": "1", "a": "2", "m": "3"}
    new = apply(None, config(keys), CONFIG_MAP, by("one"))
    new = updated(new, {**new, "data": {**keys, "y": "4", "b": "5"}}, "edit")
    kept = [list(entry["fieldsV1"]["f:data"]) for entry in new["metadata"]["managedFields"]]
    assert kept == [["f:a", "f:m", "f:z"], ["f:b", "f:y"]]
