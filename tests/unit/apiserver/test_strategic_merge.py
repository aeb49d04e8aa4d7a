"""Strategic merge patches do to built-in objects what they do in Kubernetes."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.apiserver.patch import PatchError, builtin, strategic_merge

Json = dict[str, Any]
POD = builtin("io.k8s.api.core.v1.Pod")
DEPLOYMENT = builtin("io.k8s.api.apps.v1.Deployment")


def containers(*items: Json) -> Json:
    return {"spec": {"containers": list(items)}}


A, B, C = {"name": "a", "image": "1"}, {"name": "b", "image": "2"}, {"name": "c", "image": "3"}


@pytest.mark.parametrize(
    ("doc", "patch", "result"),
    [
        # Lists with a merge key are merged item by item, those of the patch in its order.
        (
            containers(A, B),
            containers({"name": "b", "image": "9"}),
            containers(A, {"name": "b", "image": "9"}),
        ),
        (containers(A), containers(C), containers(C, A)),
        (containers(A, B), containers({"name": "b", "image": None}), containers(A, {"name": "b"})),
        (containers(A, B), containers({"name": "a", "$patch": "delete"}), containers(B)),
        (containers(A, B), containers(C, {"$patch": "replace"}), containers(C)),
        (
            containers(A, B),
            containers({"name": "b", "$patch": "delete"}, {"name": "a", "image": "9"}),
            containers({"name": "a", "image": "9"}),
        ),
        # Lists without one are replaced.
        (
            containers({"name": "a", "args": ["1", "2"]}),
            containers({"name": "a", "args": ["3"]}),
            containers({"name": "a", "args": ["3"]}),
        ),
        # The merge key of ports is the port alone.
        (
            containers({"name": "a", "ports": [{"containerPort": 80, "name": "x"}]}),
            containers({"name": "a", "ports": [{"containerPort": 80, "protocol": "TCP"}]}),
            containers(
                {"name": "a", "ports": [{"containerPort": 80, "name": "x", "protocol": "TCP"}]}
            ),
        ),
        # Lists of plain values that merge.
        (
            {"metadata": {"finalizers": ["a", "b"]}},
            {"metadata": {"finalizers": ["b", "c"]}},
            {"metadata": {"finalizers": ["a", "b", "c"]}},
        ),
        (
            {"metadata": {"finalizers": ["a", "b", "c"]}},
            {"metadata": {"$deleteFromPrimitiveList/finalizers": ["b"]}},
            {"metadata": {"finalizers": ["a", "c"]}},
        ),
        # Maps.
        (
            {"metadata": {"labels": {"a": "1", "b": "2"}}},
            {"metadata": {"labels": {"a": None, "c": "3"}}},
            {"metadata": {"labels": {"b": "2", "c": "3"}}},
        ),
        (
            {"metadata": {"labels": {"a": "1"}}},
            {"metadata": {"labels": {"b": "2", "$patch": "replace"}}},
            {"metadata": {"labels": {"b": "2"}}},
        ),
        (
            {"metadata": {"labels": {"a": "1"}, "name": "x"}},
            {"metadata": {"labels": {"$patch": "delete"}}},
            {"metadata": {"labels": {}, "name": "x"}},
        ),
        # What is new comes without nulls and directives.
        ({}, {"metadata": {"labels": {"a": None, "b": "1"}}}, {"metadata": {"labels": {"b": "1"}}}),
        (
            {},
            containers(A, {"name": "b", "$patch": "delete"}),
            containers(A),
        ),
        # An order for a list, with and without changes to its items.
        (
            containers(A, B, C),
            {
                "spec": {
                    "$setElementOrder/containers": [{"name": "c"}, {"name": "a"}],
                    "containers": [{"name": "a", "image": "9"}],
                }
            },
            containers(B, C, {"name": "a", "image": "9"}),
        ),
        (
            {"metadata": {"finalizers": ["a", "b", "c"]}},
            {"metadata": {"$setElementOrder/finalizers": ["c", "b", "a"]}},
            {"metadata": {"finalizers": ["c", "b", "a"]}},
        ),
        # Volumes are a union: keys that are not retained go.
        (
            {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}},
            {
                "spec": {
                    "volumes": [
                        {
                            "name": "v",
                            "$retainKeys": ["name", "hostPath"],
                            "hostPath": {"path": "/x"},
                        }
                    ]
                }
            },
            {"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}},
        ),
    ],
)
def test_strategic_merge_patches(doc: Json, patch: Json, result: Json) -> None:
    before, asked = copy.deepcopy(doc), copy.deepcopy(patch)
    assert strategic_merge(doc, patch, POD) == result
    assert (doc, patch) == (before, asked)


def test_a_strategy_of_a_deployment_is_replaced_by_retaining_keys() -> None:
    doc = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    expected = {"spec": {"strategy": {"type": "Recreate"}}}
    assert strategic_merge(doc, patch, DEPLOYMENT) == expected


@pytest.mark.parametrize(
    ("patch", "code", "message"),
    [
        ([], 400, "cannot unmarshal array into Go value of type map[string]interface {}"),
        ({"spec": {"$patch": "explode"}}, 500, "unknown patch type: explode in map: map["),
        (containers({"name": "a", "$patch": "merge"}), 400, "merging lists cannot"),
        (containers({"image": "x"}), 500, "does not contain declared merge key: name"),
        (containers({"$patch": "delete"}), 500, "does not contain declared merge key: name"),
        ({"spec": {"$retainKeys": "x"}}, 400, "invalid patch format of retainKeys"),
        ({"spec": {"$retainKeys": ["a"], "b": 1}}, 422, "does not match retainKeys"),
        ({"metadata": {"$deleteFromPrimitiveList/finalizers": "a"}}, 400, "primitive list"),
        ({"spec": {"$setElementOrder/containers": "a"}}, 400, "setElementOrder"),
        (
            {"spec": {"$setElementOrder/containers": [{"name": "x"}], "containers": [A]}},
            500,
            "doesn't match $setElementOrder/containers list",
        ),
    ],
)
def test_strategic_merge_patches_that_are_refused(patch: Any, code: int, message: str) -> None:
    doc = {**containers(A, B), "metadata": {"finalizers": ["a"]}}
    with pytest.raises(PatchError) as error:
        strategic_merge(doc, patch, POD)
    assert error.value.code == code
    assert message in error.value.message + error.value.hidden


items = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from("abcd")}, optional={"image": st.sampled_from("xyz")}
    ),
    max_size=4,
    unique_by=lambda item: item["name"],
)


@given(items, items)
def test_a_merged_list_has_each_item_once_in_our_order(live: list[Json], patch: list[Json]) -> None:
    merged = strategic_merge(containers(*live), containers(*patch), POD)["spec"]["containers"]
    names = [item["name"] for item in merged]
    assert sorted(names) == sorted({i["name"] for i in (*live, *patch)})
    wanted = [item["name"] for item in patch]
    assert [name for name in names if name in wanted] == wanted
    others = [item["name"] for item in live if item["name"] not in wanted]
    assert [name for name in names if name in others] == others
    again = strategic_merge(containers(*merged), containers(*patch), POD)
    assert again["spec"]["containers"] == merged
