from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.apiserver.schema import Schema

Json = dict[str, Any]


def schema_of(spec: Json) -> Schema:
    return Schema.parse({"type": "object", "properties": {"spec": spec}})


def obj(spec: Any) -> Json:
    return {"apiVersion": "e.x/v1", "kind": "E", "metadata": {"name": "a"}, "spec": spec}


def field(part: Json, **extra: Any) -> Json:
    return {"type": "object", "properties": {"f": part}, **extra}


INT = {"type": "integer"}
TEXT = {"type": "string"}
KEYED = {
    "type": "array",
    "items": {"type": "object", "properties": {"name": TEXT, "port": INT}},
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
}
QUOTED_F = '"spec.f"'

# schema of spec.f, its value, and what the API server says about it.
WRONG = [
    (INT, "x", 'spec.f: Invalid value: "string": spec.f in body must be of type integer: "string"'),
    (TEXT, 3, 'spec.f: Invalid value: "integer": spec.f in body must be of type string: "integer"'),
    (TEXT, None, 'spec.f: Invalid value: "null": spec.f in body must be of type string: "null"'),
    (
        {"x-kubernetes-int-or-string": True},
        True,
        'spec.f: Invalid value: "boolean": '
        'spec.f in body must be of type integer,string: "boolean"',
    ),
    (
        {**INT, "minimum": 1},
        0,
        "spec.f: Invalid value: 0: spec.f in body should be greater than or equal to 1",
    ),
    (
        {**INT, "minimum": 1, "exclusiveMinimum": True},
        1,
        "spec.f: Invalid value: 1: spec.f in body should be greater than 1",
    ),
    (
        {**INT, "maximum": 5},
        6,
        "spec.f: Invalid value: 6: spec.f in body should be less than or equal to 5",
    ),
    (
        {**INT, "format": "int32"},
        2**31,
        '<nil>: Invalid value: "": Checked value must be of type integer with format int32 in '
        "spec.f",
    ),
    (
        {**INT, "multipleOf": 2},
        3,
        "spec.f: Invalid value: 3: spec.f in body should be a multiple of 2",
    ),
    (
        {**TEXT, "enum": ["a", "b"]},
        "c",
        'spec.f: Unsupported value: "c": supported values: "a", "b"',
    ),
    ({**INT, "enum": [1, 2]}, 3, 'spec.f: Unsupported value: 3: supported values: "1", "2"'),
    (
        {**TEXT, "pattern": "^[a-z]+$"},
        "A",
        "spec.f: Invalid value: \"A\": spec.f in body should match '^[a-z]+$'",
    ),
    (
        {**TEXT, "pattern": "^[a-z]+$"},
        "a\n",
        "spec.f: Invalid value: \"a\\n\": spec.f in body should match '^[a-z]+$'",
    ),
    (
        {**TEXT, "minLength": 2},
        "a",
        'spec.f: Invalid value: "a": spec.f in body should be at least 2 chars long',
    ),
    ({**TEXT, "maxLength": 2}, "abc", "spec.f: Too long: may not be more than 2 bytes"),
    (
        {**TEXT, "format": "date-time"},
        "soon",
        'spec.f: Invalid value: "soon": spec.f in body must be of type date-time: "soon"',
    ),
    (
        {"type": "array", "items": INT, "minItems": 1},
        [],
        "spec.f: Invalid value: 0: spec.f in body should have at least 1 items",
    ),
    (
        {"type": "array", "items": INT, "maxItems": 1},
        [1, 2],
        "spec.f: Too many: 2: must have at most 1 item",
    ),
    (
        {"type": "array", "items": INT, "uniqueItems": True},
        [1, 1],
        'spec.f: Invalid value: "": spec.f in body shouldn\'t contain duplicates',
    ),
    (
        {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
        ["a", "b", "a"],
        'spec.f[2]: Duplicate value: "a"',
    ),
    (KEYED, [{"name": "a"}, {"name": "a"}], 'spec.f[1]: Duplicate value: {"name":"a"}'),
    (
        {"type": "array", "items": INT},
        [1, "x"],
        'spec.f[1]: Invalid value: "string": spec.f[1] in body must be of type integer: "string"',
    ),
    (
        {"type": "object", "additionalProperties": INT, "maxProperties": 1},
        {"a": 1, "b": 2},
        "spec.f: Too many: 2: must have at most 1 item",
    ),
    (
        {"type": "object", "additionalProperties": INT, "minProperties": 1},
        {},
        "spec.f: Invalid value: 0: spec.f in body should have at least 1 properties",
    ),
    (
        {"type": "object", "properties": {"g": TEXT}, "required": ["g"]},
        {},
        "spec.f.g: Required value",
    ),
    (
        {**INT, "not": {"enum": [7]}},
        7,
        f'<nil>: Invalid value: "": {QUOTED_F} must not validate the schema (not)',
    ),
    (
        {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"a": INT}},
        {"kind": "Pod"},
        "spec.f.apiVersion: Required value",
    ),
]


@pytest.mark.parametrize(("part", "value", "said"), WRONG)
def test_a_wrong_value_is_refused_in_the_api_servers_words(
    part: Json, value: Any, said: str
) -> None:
    assert [str(c) for c in schema_of(field(part)).validate(obj({"f": value}))] == [said]


@pytest.mark.parametrize(
    ("part", "value"),
    [
        (INT, 3),
        (INT, 3.0),
        ({"type": "number"}, 3),
        ({**TEXT, "nullable": True}, None),
        ({"x-kubernetes-int-or-string": True}, "10%"),
        ({**TEXT, "maxLength": 2}, "日本"),
        ({**TEXT, "format": "date-time"}, "2026-01-02T03:04:05Z"),
        ({**TEXT, "format": "unheard-of"}, "x"),
        (KEYED, [{"name": "a"}, {"name": "b"}]),
        ({**INT, "anyOf": [{"minimum": 5}, {"maximum": 1}]}, 0),
        ({**INT, "oneOf": [{"minimum": 5}, {"maximum": 1}]}, 9),
    ],
)
def test_a_right_value_is_accepted(part: Json, value: Any) -> None:
    assert schema_of(field(part)).validate(obj({"f": value})) == []


@pytest.mark.parametrize(
    ("keyword", "said"),
    [
        ("anyOf", "must validate at least one schema (anyOf)"),
        ("oneOf", "must validate one and only one schema (oneOf). Found none valid"),
        ("allOf", "must validate all the schemas (allOf)"),
    ],
)
def test_alternatives_say_that_none_fits(keyword: str, said: str) -> None:
    part = {**INT, keyword: [{"minimum": 9}, {"maximum": 1}]}
    messages = [str(c) for c in schema_of(field(part)).validate(obj({"f": 5}))]
    assert any(said in m for m in messages)


def test_an_unchanged_wrong_value_is_left_alone() -> None:
    schema = schema_of({"type": "object", "properties": {"f": KEYED, "g": {**INT, "minimum": 3}}})
    old = obj({"f": [{"name": "a", "port": "x"}], "g": 1})
    new = obj({"f": [{"name": "b"}, {"name": "a", "port": "x"}], "g": 1})
    assert schema.validate(new, old) == []
    assert [c.field for c in schema.validate(new)] == ["spec.f[1].port", "spec.g"]


# schema of spec, spec, what remains, and the paths of what went.
PRUNED = [
    (field(INT), {"f": 1, "x": 2}, {"f": 1}, ["spec.x"]),
    (field(KEYED), {"f": [{"name": "a", "z": 1}]}, {"f": [{"name": "a"}]}, ["spec.f[0].z"]),
    (field(INT), {"f": None}, {}, []),
    ({**field(INT), "x-kubernetes-preserve-unknown-fields": True}, {"x": 1}, {"x": 1}, []),
    (
        {
            **field({"type": "object", "properties": {"g": INT}}),
            "x-kubernetes-preserve-unknown-fields": True,
        },
        {"x": 1, "f": {"y": 1}},
        {"x": 1, "f": {}},
        ["spec.f.y"],
    ),
    (
        field({"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"a": INT}}),
        {"f": {"apiVersion": "v1", "kind": "P", "metadata": {"name": "q"}, "b": 1, "a": 2}},
        {"f": {"apiVersion": "v1", "kind": "P", "metadata": {"name": "q"}, "a": 2}},
        ["spec.f.b"],
    ),
]


@pytest.mark.parametrize(("spec", "given", "left", "gone"), PRUNED)
def test_pruning(spec: Json, given: Json, left: Json, gone: list[str]) -> None:
    schema = schema_of(spec)
    pruned = obj(given)
    assert schema.unknown_fields(pruned) == gone
    assert pruned == obj(given)
    assert schema.prune(pruned) == gone
    assert pruned == obj(left)


def test_defaults_fill_missing_and_null_values_inside_lists_and_maps() -> None:
    inner = {"type": "object", "properties": {"n": {**INT, "default": 1}}}
    schema = schema_of(
        {
            "type": "object",
            "properties": {
                "a": {**TEXT, "default": "x"},
                "b": {**TEXT, "default": "x", "nullable": True},
                "o": {**inner, "default": {}},
                "l": {"type": "array", "items": inner},
                "m": {"type": "object", "additionalProperties": inner},
            },
        }
    )
    given = obj({"a": None, "b": None, "l": [{}], "m": {"k": {"n": 2}}})
    schema.default(given)
    assert given["spec"] == {
        "a": "x",
        "b": None,
        "o": {"n": 1},
        "l": [{"n": 1}],
        "m": {"k": {"n": 2}},
    }


def test_a_default_is_not_shared_between_objects() -> None:
    schema = schema_of({"type": "object", "properties": {"l": {"type": "array", "default": []}}})
    first, second = obj({}), obj({})
    schema.default(first)
    first["spec"]["l"].append(1)
    schema.default(second)
    assert second["spec"]["l"] == []


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "a", "b"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["f", "g", "name", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)
RICH = schema_of(
    {
        "type": "object",
        "required": ["f"],
        "properties": {
            "f": {**INT, "default": 3, "minimum": 0},
            "g": KEYED,
            "x": {"type": "object", "additionalProperties": {**TEXT, "nullable": True}},
            "name": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
)


@given(json_values)
def test_pruning_and_defaulting_twice_changes_nothing_more(spec: Any) -> None:
    once = obj(spec)
    RICH.prune(once)
    RICH.default(once)
    twice = copy.deepcopy(once)
    assert RICH.prune(twice) == []
    RICH.default(twice)
    assert twice == once


@given(json_values)
def test_the_fast_check_accepts_nothing_that_the_slow_one_refuses(spec: Any) -> None:
    given_obj = obj(spec)
    slow = Schema.parse(
        {"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-x": 1}}}
    )
    slow.node = RICH.node
    slow._shape = type(None)
    assert RICH.validate(given_obj) == slow.validate(given_obj)


def test_defaults_make_a_minimal_object_valid() -> None:
    minimal = obj({})
    RICH.default(minimal)
    assert RICH.validate(minimal) == []
    assert [str(c) for c in RICH.validate(obj({}))] == ["spec.f: Required value"]
