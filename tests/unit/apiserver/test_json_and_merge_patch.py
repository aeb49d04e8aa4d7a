"""JSON patch (RFC 6902) and JSON merge patch (RFC 7386)."""

from __future__ import annotations

import copy
import importlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.apiserver.patch import PatchError, json_patch, merge_patch

Json = dict[str, Any]

DOC: Json = {"a": {"b": [1, 2, 3], "c/d": "x", "e~f": "y", "": "z"}, "n": None, "t": True}


@pytest.mark.parametrize(
    ("operation", "path", "expected"),
    [
        ({"op": "add", "path": "/new", "value": 1}, ["new"], 1),
        ({"op": "add", "path": "/a/b/0", "value": 0}, ["a", "b"], [0, 1, 2, 3]),
        ({"op": "add", "path": "/a/b/3", "value": 4}, ["a", "b"], [1, 2, 3, 4]),
        ({"op": "add", "path": "/a/b/-", "value": 4}, ["a", "b"], [1, 2, 3, 4]),
        ({"op": "add", "path": "/a/c~1d", "value": 1}, ["a", "c/d"], 1),
        ({"op": "add", "path": "/a/e~0f", "value": 1}, ["a", "e~f"], 1),
        ({"op": "add", "path": "/a/", "value": 1}, ["a", ""], 1),
        ({"op": "add", "path": "/a/~01", "value": 1}, ["a", "~1"], 1),
        ({"op": "add", "path": "", "value": {"k": 1}}, ["k"], 1),
        ({"op": "remove", "path": "/a/b/1"}, ["a", "b"], [1, 3]),
        ({"op": "replace", "path": "/a/b/1", "value": 9}, ["a", "b"], [1, 9, 3]),
        ({"op": "replace", "path": "/n", "value": {"x": 1}}, ["n", "x"], 1),
        ({"op": "move", "from": "/a/b/0", "path": "/a/b/2"}, ["a", "b"], [2, 3, 1]),
        ({"op": "move", "from": "/a/b", "path": "/b"}, ["b"], [1, 2, 3]),
        ({"op": "copy", "from": "/a/b/0", "path": "/a/b/-"}, ["a", "b"], [1, 2, 3, 1]),
        ({"op": "test", "path": "/a/b", "value": [1, 2, 3]}, ["a", "b"], [1, 2, 3]),
        ({"op": "test", "path": "/t", "value": True}, ["t"], True),
        ({"op": "test", "path": "/absent", "value": None}, ["t"], True),
        ({"op": "replace", "path": "/absent", "value": 1}, ["absent"], 1),
    ],
)
def test_json_patch_operations(operation: Json, path: list[str], expected: object) -> None:
    value: Any = json_patch(DOC, [operation])
    for step in path:
        value = value[step]
    assert value == expected


@pytest.mark.parametrize(
    ("operation", "code", "message"),
    [
        ({"op": "test", "path": "/a/b/0", "value": 9}, 422, "testing value /a/b/0 failed"),
        ({"op": "test", "path": "/t", "value": 1}, 422, "testing value /t failed"),
        ({"op": "test", "path": "/absent", "value": 1}, 422, "is missing path: /absent"),
        ({"op": "remove", "path": "/absent"}, 422, "Unable to remove nonexistent key: absent"),
        ({"op": "remove", "path": "/a/b/3"}, 422, "Unable to access invalid index: 3"),
        ({"op": "remove", "path": "/a/b/-"}, 422, "value was not a proper array index: '-'"),
        ({"op": "add", "path": "/a/b/4", "value": 1}, 422, "Unable to access invalid index: 4"),
        ({"op": "add", "path": "/a/b/01", "value": 1}, 422, "not a proper array index: '01'"),
        ({"op": "add", "path": "/x/y", "value": 1}, 422, 'doc is missing path: "/x/y"'),
        ({"op": "add", "path": "/t/y", "value": 1}, 422, 'doc is missing path: "/t/y"'),
        ({"op": "add", "path": "/x"}, 422, "operation, missing value field"),
        ({"op": "add", "value": 1}, 422, "operation missing path field"),
        ({"op": "add", "path": "x", "value": 1}, 422, 'doc is missing path: "x"'),
        ({"op": "move", "from": "/x", "path": "/y"}, 422, "doc is missing from path: /x"),
        ({"op": "move", "from": "/a", "path": "/a/b"}, 422, "/a/b lies inside /a"),
        ({"op": "move", "path": "/y"}, 422, "operation, missing from field"),
        ({"op": "merge", "path": "/y"}, 422, "Unexpected kind: merge"),
        ({"op": ["add"], "path": "/y"}, 422, "Unexpected kind"),
        ({"op": "remove", "path": ""}, 422, "the patched document is not an object"),
        ("remove", 400, "cannot unmarshal string into Go value of type handlers.jsonPatchOp"),
    ],
)
def test_json_patches_that_fail_leave_the_document_alone(
    operation: Any, code: int, message: str
) -> None:
    before = copy.deepcopy(DOC)
    change = {"op": "add", "path": "/a/b/0", "value": "changed"}
    untouched = {"op": "remove", "path": "/a/b/0"}
    with pytest.raises(PatchError) as error:
        json_patch(DOC, [change, untouched, operation])
    assert error.value.code == code
    assert message in error.value.message + error.value.hidden
    assert before == DOC


def test_a_json_patch_has_a_limit() -> None:
    with pytest.raises(PatchError) as error:
        json_patch({}, [{"op": "test", "path": "/x", "value": None}] * 10_001)
    assert (error.value.code, error.value.reason) == (413, "RequestEntityTooLarge")


@pytest.mark.parametrize(
    ("doc", "patch", "result"),
    [
        # The examples of RFC 7386, as far as they are about objects.
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patch(doc: Json, patch: Json, result: Json) -> None:
    assert merge_patch(doc, patch) == result


def test_a_merge_patch_is_an_object() -> None:
    with pytest.raises(PatchError) as error:
        merge_patch({}, [])
    assert error.value.code == 400


leaves = st.integers(0, 3) | st.booleans() | st.text("ab", max_size=2)
trees = st.recursive(
    st.dictionaries(st.sampled_from("abc"), leaves, max_size=3),
    lambda inner: st.dictionaries(
        st.sampled_from("abc"), inner | leaves | st.lists(leaves, max_size=3), max_size=3
    ),
    max_leaves=8,
)


def difference(old: Any, new: Any) -> Any:
    """Return the merge patch that turns one tree without nulls into another."""
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return new
    changed = {k: difference(old.get(k), v) for k, v in new.items() if not same(old.get(k), v)}
    return {**changed, **{k: None for k in old if k not in new}}


def same(left: object, right: object) -> bool:
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


@given(trees, trees)
def test_the_merge_patch_of_a_difference_restores_the_target(old: Json, new: Json) -> None:
    before = copy.deepcopy(old)
    assert same(merge_patch(old, difference(old, new)), new)
    assert same(old, before)


def json_difference(old: Any, new: Any, path: str = "") -> list[Json]:
    """Return the JSON patch that turns one tree into another."""
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return [] if same(old, new) else [{"op": "replace", "path": path, "value": new}]
    operations: list[Json] = [{"op": "remove", "path": f"{path}/{k}"} for k in old if k not in new]
    for key, value in new.items():
        if key in old:
            operations += json_difference(old[key], value, f"{path}/{key}")
        else:
            operations.append({"op": "add", "path": f"{path}/{key}", "value": value})
    return operations


@given(trees, trees)
def test_the_json_patch_of_a_difference_restores_the_target(old: Json, new: Json) -> None:
    before = copy.deepcopy(old)
    assert same(json_patch(old, json_difference(old, new)), new)
    assert same(old, before)


def test_a_patch_that_takes_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("lockstep.apiserver.patch.json_patch")
    monkeypatch.setattr(module, "_SECONDS", 0.0)
    with pytest.raises(PatchError, match="processor time") as refused:
        json_patch({"list": [0]}, [{"op": "add", "path": "/list/0", "value": 0}] * 10)
    assert refused.value.code == 413
