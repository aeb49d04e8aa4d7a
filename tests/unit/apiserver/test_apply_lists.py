"""Server-side apply of lists, by what their schema says of them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.applied_objects import CONFIG_MAP, POD, Json, by, config, created, owners, pod

from lockstep.apiserver.patch import PatchError, apply, custom


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
