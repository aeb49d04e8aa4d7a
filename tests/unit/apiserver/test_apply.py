"""Server-side apply: fields have owners, and owners decide about their fields."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstep.apiserver.patch import PatchError, Writer, apply, builtin, custom, relevant, track

Json = dict[str, Any]
CONFIG_MAP = builtin("io.k8s.api.core.v1.ConfigMap")
DEPLOYMENT = builtin("io.k8s.api.apps.v1.Deployment")
POD = builtin("io.k8s.api.core.v1.Pod")
NOW, LATER = 1_800_000_000.9, 1_800_000_060.0
NOW_TEXT, LATER_TEXT = "2027-01-15T08:00:00Z", "2027-01-15T08:01:00Z"


def by(manager: str, now: float = NOW, version: str = "v1", subresource: str = "") -> Writer:
    return Writer(manager, version, now, subresource)


def config(data: Json | None = None, **more: Any) -> Json:
    obj: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, **more}
    return obj if data is None else {**obj, "data": data}


def deployment(**spec: Any) -> Json:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "namespace": "x"},
        "spec": spec,
    }


def pod(*containers: Json, **spec: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "x"},
        "spec": {"containers": list(containers), **spec},
    }


def without_managers(obj: Json) -> Json:
    metadata = {k: v for k, v in obj["metadata"].items() if k != "managedFields"}
    return {**obj, "metadata": metadata}


def owners(obj: Json) -> dict[str, Any]:
    """Return the fields of each manager: ``name`` for appliers, ``name (Update)`` for others."""
    found = {}
    for entry in obj["metadata"].get("managedFields", ()):
        suffix = "" if entry["operation"] == "Apply" else " (Update)"
        found[entry["manager"] + suffix] = entry["fieldsV1"]
    return found


def created(obj: Json, manager: str = "creator", kind: Any = CONFIG_MAP) -> Json:
    new = copy.deepcopy(obj)
    track(None, new, kind, by(manager, version=obj["apiVersion"]))
    return new


def updated(old: Json, new: Json, manager: str, kind: Any = CONFIG_MAP, **more: Any) -> Json:
    new = copy.deepcopy(new)
    track(old, new, kind, by(manager, version=old["apiVersion"], **more))
    return new


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


def test_keyed_lists_merge_by_their_keys() -> None:
    live = apply(
        None, pod({"name": "a", "image": "1"}, {"name": "b", "image": "1"}), POD, by("one")
    )
    new = apply(live, pod({"name": "c", "image": "2"}), POD, by("two"))
    assert [c["name"] for c in new["spec"]["containers"]] == ["a", "b", "c"]
    gone = apply(new, pod({"name": "b", "image": "1"}), POD, by("one"))
    assert gone["spec"]["containers"] == [
        {"name": "b", "image": "1"},
        {"name": "c", "image": "2"},
    ]
    with pytest.raises(PatchError, match=r'\.spec\.containers\[name="c"\]\.image'):
        apply(gone, pod({"name": "c", "image": "3"}), POD, by("one"))


def test_the_order_of_the_applied_list_wins() -> None:
    def named(*names: str) -> Json:
        return pod(*({"name": name, "image": "i"} for name in names))

    live = apply(None, named("a", "b", "c"), POD, by("one"))
    live = apply(live, named("x"), POD, by("two"))
    new = apply(live, named("c", "b", "a"), POD, by("one"))
    assert [c["name"] for c in new["spec"]["containers"]] == ["c", "x", "b", "a"]


def test_a_default_of_a_key_counts_as_the_key() -> None:
    port = {"containerPort": 80, "protocol": "TCP"}
    live = created(pod({"name": "a", "image": "i", "ports": [port]}), kind=POD)
    config_ = pod({"name": "a", "ports": [{"containerPort": 80, "name": "web"}]})
    new = apply(live, config_, POD, by("one"))
    assert new["spec"]["containers"][0]["ports"] == [{**port, "name": "web"}]


def test_atomic_lists_and_maps_have_one_owner() -> None:
    live = apply(
        None,
        pod({"name": "a", "image": "i", "args": ["1"]}, nodeSelector={"x": "1"}),
        POD,
        by("one"),
    )
    with pytest.raises(PatchError) as error:
        apply(live, pod({"name": "a", "args": ["1", "2"]}, nodeSelector={"y": "1"}), POD, by("two"))
    causes = (error.value.details or {})["causes"]
    assert [cause["field"] for cause in causes] == [
        '.spec.containers[name="a"].args',
        ".spec.nodeSelector",
    ]


def test_sets_merge_by_value() -> None:
    def finalized(*names: str) -> Json:
        return config(metadata={"name": "c", "finalizers": list(names)})

    live = apply(None, finalized("a", "b"), CONFIG_MAP, by("one"))
    live = apply(live, finalized("c"), CONFIG_MAP, by("two"))
    assert live["metadata"]["finalizers"] == ["a", "b", "c"]
    new = apply(live, finalized("b"), CONFIG_MAP, by("one"))
    assert new["metadata"]["finalizers"] == ["b", "c"]


def test_custom_resources_without_list_types_have_atomic_lists() -> None:
    kind = custom(
        {
            "type": "object",
            "properties": {
                "spec": {
                    "type": "object",
                    "properties": {
                        "plain": {"type": "array", "items": {"type": "string"}},
                        "keyed": {
                            "type": "array",
                            "x-kubernetes-list-type": "map",
                            "x-kubernetes-list-map-keys": ["k"],
                            "items": {"type": "object", "properties": {"k": {"type": "string"}}},
                        },
                        "free": {
                            "type": "object",
                            "x-kubernetes-preserve-unknown-fields": True,
                        },
                    },
                }
            },
        }
    )

    def thing(**spec: Any) -> Json:
        return {"apiVersion": "x/v1", "kind": "T", "metadata": {"name": "t"}, "spec": spec}

    live = apply(
        None,
        thing(plain=["a"], keyed=[{"k": "1"}], free={"x": {"y": [1]}}),
        kind,
        by("one", version="x/v1"),
    )
    assert owners(live)["one"] == {
        "f:spec": {
            "f:plain": {},
            "f:keyed": {'k:{"k":"1"}': {".": {}, "f:k": {}}},
            "f:free": {"f:x": {".": {}, "f:y": {}}},
        }
    }
    new = apply(live, thing(keyed=[{"k": "2"}]), kind, by("two", version="x/v1"))
    assert new["spec"]["keyed"] == [{"k": "1"}, {"k": "2"}]
    with pytest.raises(PatchError, match=r'omits all key fields \["k"\]'):
        apply(live, thing(keyed=[{}]), kind, by("two", version="x/v1"))
    with pytest.raises(PatchError, match="field not declared in schema"):
        apply(live, thing(unknown=1), kind, by("two", version="x/v1"))


@pytest.mark.parametrize(
    ("applied", "code", "message"),
    [
        (
            {**config(), "apiVersion": "v2"},
            400,
            "Incorrect version specified in apply patch. Specified patch version: v2, expected: v1",
        ),
        (
            config(metadata={"name": "c", "managedFields": []}),
            400,
            "metadata.managedFields must be nil",
        ),
        (
            config(bogus=1),
            500,
            "failed to create typed patch object (/c; /v1, Kind=ConfigMap): .bogus: field not "
            "declared in schema",
        ),
        (
            config(data=["x"]),
            500,
            "failed to create typed patch object (/c; /v1, Kind=ConfigMap): .data: expected map, "
            "got &{[x]}",
        ),
    ],
)
def test_configurations_that_cannot_be_applied(applied: Json, code: int, message: str) -> None:
    with pytest.raises(PatchError) as error:
        apply(None, applied, CONFIG_MAP, by("one"))
    assert (error.value.code, error.value.message) == (code, message)


def test_an_applied_list_has_each_key_once() -> None:
    with pytest.raises(PatchError, match=r'duplicate entries for key \[name="a"\]'):
        apply(None, pod({"name": "a"}, {"name": "a"}), POD, by("one"))


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
