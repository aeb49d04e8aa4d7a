from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

from lockstep.api.crd import manifests
from lockstep.apiserver.builtin import BUILTINS
from lockstep.apiserver.crds import establish, served_versions
from lockstep.apiserver.schema import Schema

Json = dict[str, Any]
KIND = next(k for k in BUILTINS if k.kind == "CustomResourceDefinition")
S = "spec.validation.openAPIV3Schema"


def crd(schema: Json | None = None, **spec: Any) -> Json:
    version: Json = {"name": "v1", "served": True, "storage": True}
    if schema is not None:
        version["schema"] = {"openAPIV3Schema": schema}
    return {
        "metadata": {"name": "things.e.x"},
        "spec": {
            "group": "e.x",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [version],
            **spec,
        },
    }


def said(obj: Json, old: Json | None = None) -> list[str]:
    new, before = copy.deepcopy(obj), copy.deepcopy(old)
    for each in (new, before):
        if each is not None:
            KIND.prepare(each, None)
    return [str(cause) for cause in KIND.validate(new, before)]


def with_field(part: Json, **more: Any) -> Json:
    return crd({"type": "object", "properties": {"f": part}, **more})


OBJECT: Json = {"type": "object"}
TEXT: Json = {"type": "string"}

SPECS = [
    (crd(OBJECT), []),
    (crd(), ["spec.versions[0].schema.openAPIV3Schema: Required value"]),
    (
        crd(OBJECT, group="x"),
        [
            'metadata.name: Invalid value: "things.e.x": must be spec.names.plural+"."+spec.group',
            'spec.group: Invalid value: "x": should be a domain with at least one dot',
        ],
    ),
    (crd(OBJECT, scope=""), ["spec.scope: Required value"]),
    (
        crd(OBJECT, scope="Global"),
        ['spec.scope: Unsupported value: "Global": supported values: "Cluster", "Namespaced"'],
    ),
    (
        crd(OBJECT, names={"plural": "things", "kind": "Thing", "listKind": "Thing"}),
        ['spec.names.listKind: Invalid value: "Thing": kind and listKind may not be the same'],
    ),
    (
        crd(OBJECT, conversion={"strategy": "Webhook"}),
        ['spec.conversion.strategy: Unsupported value: "Webhook": supported values: "None"'],
    ),
]


@pytest.mark.parametrize(("obj", "expected"), SPECS)
def test_definitions(obj: Json, expected: list[str]) -> None:
    assert said(obj) == expected


@pytest.mark.parametrize("storing", [0, 2])
def test_exactly_one_version_is_stored(storing: int) -> None:
    versions = [
        {
            "name": f"v{n}",
            "served": True,
            "storage": n < storing,
            "schema": {"openAPIV3Schema": OBJECT},
        }
        for n in range(2)
    ]
    (text,) = said(crd(versions=versions))
    assert text.endswith("must have exactly one version marked as storage version")


FIELDS = [
    ({}, "properties[f].type: Required value: must not be empty for specified object fields"),
    (
        {"type": "text"},
        'properties[f].type: Unsupported value: "text": supported values: "array", "boolean", '
        '"integer", "number", "object", "string"',
    ),
    ({"type": "array"}, "properties[f].items: Required value: must be specified"),
    (
        {**TEXT, "pattern": "("},
        'properties[f].pattern: Invalid value: "(": must be a valid regular expression, but '
        "isn't: error parsing regexp: missing closing ): `(`",
    ),
    (
        {**OBJECT, "properties": {"a": TEXT}, "additionalProperties": TEXT},
        "properties[f].additionalProperties: Forbidden: additionalProperties and properties are "
        "mutual exclusive",
    ),
    (
        {**TEXT, "anyOf": [{"type": "string"}]},
        "properties[f].anyOf[0].type: Forbidden: must be empty to be structural",
    ),
    (
        {"type": "array", "items": OBJECT, "x-kubernetes-list-type": "map"},
        "properties[f].x-kubernetes-list-map-keys: Required value: must not be empty if "
        "x-kubernetes-list-type is map",
    ),
    (
        {
            "type": "array",
            "items": {**OBJECT, "properties": {"k": TEXT}},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
        },
        "properties[f].items.properties[k].default: Required value: this property is in "
        "x-kubernetes-list-map-keys, so it must have a default or be a required property",
    ),
    (
        {**TEXT, "default": 3},
        'properties[f].default: Invalid value: "integer": '
        ' in body must be of type string: "integer"',
    ),
    (
        {**OBJECT, "properties": {"a": TEXT}, "default": {"b": 1}},
        'properties[f].default: Invalid value: {"b":1}: must not have unknown fields',
    ),
    (
        {"type": "array", "items": TEXT, "uniqueItems": True},
        "properties[f].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime "
        "complexity becomes quadratic",
    ),
    (
        {**TEXT, "x-kubernetes-validations": [{"rule": ""}]},
        "properties[f].x-kubernetes-validations[0].rule: Required value: rule is not specified",
    ),
    (
        {**TEXT, "x-kubernetes-validations": [{"rule": "odd(self)"}]},
        'properties[f].x-kubernetes-validations[0].rule: Invalid value: {"rule":"odd(self)"}: '
        "compilation failed: ERROR: undeclared reference to 'odd' (in container '')",
    ),
    (
        {
            **OBJECT,
            "properties": {"x": TEXT},
            "x-kubernetes-validations": [{"rule": "has(self.z)"}],
        },
        'properties[f].x-kubernetes-validations[0].rule: Invalid value: {"rule":"has(self.z)"}: '
        "compilation failed: ERROR: undefined field 'z'",
    ),
]


@pytest.mark.parametrize(("part", "expected"), FIELDS)
def test_schemas_that_are_not_structural(part: Json, expected: str) -> None:
    assert said(with_field(part)) == [f"{S}.{expected}"]


def test_alternatives_at_the_root_restrict_only_what_is_defined() -> None:
    known = {"a": {**OBJECT, "properties": {"b": {"type": "integer"}}}}
    inside = {"anyOf": [{"properties": {"a": {"properties": {"c": {"minimum": 1}}}}}]}
    assert said(crd({**OBJECT, "properties": known, **inside})) == [
        f"{S}.properties[a].properties[c]: Required value: because it is defined in "
        f"{S}.anyOf[0].properties[a].properties[c]"
    ]


def test_what_versions_do_not_share_is_named_by_its_version() -> None:
    versions = [
        {"name": f"v{n}", "served": True, "storage": not n, "schema": {"openAPIV3Schema": schema}}
        for n, schema in enumerate([OBJECT, {"type": "array"}])
    ]
    path = "spec.versions[1].schema.openAPIV3Schema"
    assert said(crd(versions=versions)) == [
        f'{path}.type: Invalid value: "array": must be object at the root',
        f"{path}.items: Required value: must be specified",
    ]


@pytest.mark.parametrize(
    "part",
    [
        {"x-kubernetes-int-or-string": True},
        {
            "x-kubernetes-int-or-string": True,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": "^[0-9]+%?$",
        },
        {"x-kubernetes-preserve-unknown-fields": True},
        {**OBJECT, "additionalProperties": TEXT},
        {**OBJECT, "properties": {"a": TEXT}, "default": {"a": "x"}},
        {**TEXT, "nullable": True, "default": None},
        {**OBJECT, "properties": {"x": {"type": "integer"}}, "oneOf": [{"required": ["x"]}]},
    ],
)
def test_schemas_that_are_structural(part: Json) -> None:
    assert said(with_field(part)) == []


def test_metadata_may_only_be_restricted_by_name() -> None:
    name = {"type": "object", "properties": {"name": {**TEXT, "maxLength": 5}}}
    labels = {"type": "object", "properties": {"labels": OBJECT}}
    assert said(crd({"type": "object", "properties": {"metadata": name}})) == []
    (text,) = said(crd({"type": "object", "properties": {"metadata": labels}}))
    assert text.startswith(f"{S}.properties[metadata]: Forbidden: must not specify anything other")


def test_names_and_scope_stay() -> None:
    new = crd(OBJECT, scope="Cluster", names={"plural": "things", "kind": "Other"})
    assert said(new, crd(OBJECT)) == [
        'spec.scope: Invalid value: "Cluster": field is immutable',
        'spec.names.kind: Invalid value: "Other": field is immutable',
    ]


def test_names_that_follow_from_others_are_filled_in() -> None:
    obj = crd(OBJECT)
    KIND.prepare(obj, None)
    assert obj["spec"]["names"] == {
        "plural": "things",
        "singular": "thing",
        "kind": "Thing",
        "listKind": "ThingList",
    }
    assert obj["spec"]["conversion"] == {"strategy": "None"}


def test_fields_that_schemas_do_not_have_are_found_however_deep() -> None:
    schema = Schema.builtin(KIND.schema_name)
    deep = {**OBJECT, "properties": {"a": {**OBJECT, "properties": {"b": {"typo": 1}}}}}
    inside = "spec.versions[0].schema.openAPIV3Schema"
    assert schema.unknown_fields(crd(deep)) == [f"{inside}.properties.a.properties.b.typo"]
    assert schema.unknown_fields(crd({**OBJECT, "properties": {"a": TEXT}})) == []


@pytest.mark.parametrize("manifest", manifests(), ids=lambda m: m["metadata"]["name"])
def test_our_own_definitions_are_in_order(manifest: Json) -> None:
    read = yaml.safe_load(yaml.safe_dump(manifest))
    assert Schema.builtin(KIND.schema_name).unknown_fields(read) == []
    assert said(read) == []


@pytest.mark.parametrize(
    ("meta", "said"),
    [
        ({"name": "a.b", "namespace": "n"}, ""),
        ({"name": "Big_Q", "namespace": "n"}, 'metadata.name: Invalid value: "Big_Q": a lowercase'),
        ({"name": "a"}, "metadata.namespace: Required value"),
        ({"name": "a", "namespace": "n", "labels": {"a b": "c"}}, "metadata.labels: Invalid value"),
    ],
)
def test_the_metadata_of_custom_resources_is_checked(meta: Json, said: str) -> None:
    made = crd(OBJECT)
    KIND.prepare(made, None)
    establish(made, (), "2026-01-01T00:00:00Z")
    (served,) = served_versions(made)
    causes = "; ".join(map(str, served.kind.validate({"metadata": meta}, None)))
    assert causes.startswith(said) and bool(causes) == bool(said)
