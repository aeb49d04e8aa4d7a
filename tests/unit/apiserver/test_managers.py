"""Who owns which field after a write that is no apply, and how that is kept."""

from __future__ import annotations

import pytest
from tests.support.applied_objects import (
    CONFIG_MAP,
    LATER,
    LATER_TEXT,
    NOW,
    NOW_TEXT,
    POD,
    Json,
    by,
    config,
    created,
    owners,
    pod,
    updated,
    without_managers,
)

from lockstep.apiserver.patch import apply, track


def test_creation_notes_every_field_and_container() -> None:
    """Containers too, except those that each pod has even when nobody writes them."""
    obj = pod(
        {"name": "m", "image": "i", "ports": [{"containerPort": 80, "protocol": "TCP"}]},
        nodeSelector={"disk": "ssd"},
    )
    obj["metadata"] |= {
        "uid": "u",
        "creationTimestamp": NOW_TEXT,
        "generateName": "p-",
        "labels": {"app": "x"},
        "finalizers": ["a/b"],
        "ownerReferences": [{"uid": "o", "name": "n"}],
    }
    assert owners(created(obj, kind=POD)) == {
        "creator (Update)": {
            "f:metadata": {
                "f:generateName": {},
                "f:labels": {".": {}, "f:app": {}},
                "f:finalizers": {".": {}, 'v:"a/b"': {}},
                "f:ownerReferences": {
                    ".": {},
                    'k:{"uid":"o"}': {},
                },
            },
            "f:spec": {
                "f:containers": {
                    'k:{"name":"m"}': {
                        ".": {},
                        "f:name": {},
                        "f:image": {},
                        "f:ports": {
                            ".": {},
                            'k:{"containerPort":80,"protocol":"TCP"}': {
                                ".": {},
                                "f:containerPort": {},
                                "f:protocol": {},
                            },
                        },
                    },
                },
                "f:nodeSelector": {},
            },
        }
    }


def test_an_update_takes_the_field_from_everybody() -> None:
    live = apply(None, config({"a": "1", "b": "1"}), CONFIG_MAP, by("one"))
    new = updated(live, {**live, "data": {"a": "2"}}, "edit", now=LATER)
    assert owners(new) == {"edit (Update)": {"f:data": {"f:a": {}}}}
    assert new["metadata"]["managedFields"][0]["time"] == LATER_TEXT


def test_an_update_that_changes_nothing_notes_nothing() -> None:
    live = created(config({"a": "1"}))
    assert updated(live, live, "edit", now=LATER) == live
    assert updated(live, without_managers(live), "edit", now=LATER) == live


@pytest.mark.parametrize("sent", [[], [{}]])
def test_a_client_can_reset_the_managers(sent: list[Json]) -> None:
    live = created(config({"a": "1"}))
    new = {**live, "metadata": {"name": "c", "managedFields": sent}, "data": {"a": "2"}}
    assert "managedFields" not in updated(live, new, "edit")["metadata"]


def test_objects_without_managers_stay_so_until_they_are_applied() -> None:
    live = config({"a": "1"})
    assert updated(live, config({"a": "2"}), "edit") == config({"a": "2"})
    new = apply(live, config({"b": "2"}), CONFIG_MAP, by("one"))
    assert owners(new) == {
        "one": {"f:data": {"f:b": {}}},
        "before-first-apply (Update)": {"f:data": {".": {}, "f:a": {}}},
    }


def test_a_client_may_write_managers_but_no_nonsense() -> None:
    live = created(config({"a": "1"}))
    entry = {**live["metadata"]["managedFields"][0], "manager": "migrated"}
    moved = {**live, "metadata": {"name": "c", "managedFields": [entry]}}
    assert list(owners(updated(live, moved, "edit"))) == ["migrated (Update)"]
    for nonsense in (
        {"fieldsV1": {"g:x": {}}},
        {"operation": "Guess"},
        {"fieldsType": "FieldsV2"},
        {"apiVersion": ""},
        {"fieldsV1": {"k:nojson": {}}},
    ):
        wrong = {**live, "metadata": {"name": "c", "managedFields": [{**entry, **nonsense}]}}
        assert list(owners(updated(live, wrong, "edit"))) == ["creator (Update)"]


def test_through_a_subresource_managers_cannot_be_written() -> None:
    live = created(config({"a": "1"}))
    wrong = {**live, "metadata": {"name": "c", "managedFields": []}, "data": {"a": "2"}}
    new = updated(live, wrong, "kubelet", subresource="status")
    assert owners(new) == {
        "creator (Update)": {"f:data": {}},
        "kubelet (Update)": {"f:data": {"f:a": {}}},
    }
    assert new["metadata"]["managedFields"][1]["subresource"] == "status"


def test_the_list_of_managers_stays_short() -> None:
    live = created(config({"k0": "0"}), "m00")
    for n in range(1, 15):
        changed = {**live, "data": {**live["data"], f"k{n}": "x"}}
        live = updated(live, changed, f"m{n:02}", now=NOW + n)
    assert len(live["metadata"]["managedFields"]) == 10
    ancient = owners(live)["ancient-changes (Update)"]
    assert {"f:k0", "f:k1", "f:k4"} <= set(ancient["f:data"])
    fields = [key for f in owners(live).values() for key in f["f:data"] if key != "."]
    assert sorted(fields) == sorted(f"f:k{n}" for n in range(15))


def test_tracking_a_creation_is_cheap() -> None:
    """The server creates thousands of pods a second, each with its managers."""
    import time

    env = [{"name": f"E{n}", "value": "x"} for n in range(8)]
    obj = pod({"name": "m", "image": "i", "env": env, "resources": {"limits": {"cpu": "1"}}})
    start = time.process_time()
    for _ in range(1000):
        obj["metadata"].pop("managedFields", None)
        track(None, obj, POD, by("lockstep"))
    assert (time.process_time() - start) / 1000 < 300e-6
