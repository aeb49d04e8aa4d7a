"""Custom resources: their definitions, and what these ask of objects."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final

from tests.support.conformance.script.ask import (
    STRATEGIC,
    TABLE,
    Ask,
    apply,
    delete,
    get,
    json_patch,
    merge,
    namespace,
    of,
    post,
    put,
    status,
)

NS: Final = "crds"
CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP: Final = "conf.example.com"
WIDGETS: Final = of(GROUP, NS, "widgets")
OLD: Final = of(GROUP, NS, "widgets", "v1beta1")
TEXT: Final = {"type": "string"}
NUMBER: Final = {"type": "integer"}
SPEC: Final = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {**NUMBER, "minimum": 1, "maximum": 10},
        "color": {**TEXT, "enum": ["red", "green"], "default": "red"},
        "name": {**TEXT, "pattern": "^[a-z]+$", "maxLength": 5},
        "note": {**TEXT, "nullable": True},
        "port": {"x-kubernetes-int-or-string": True},
        "when": {**TEXT, "format": "date-time"},
        "ratio": {"type": "number", "multipleOf": 0.5},
        "tags": {
            "type": "array",
            "items": {**TEXT, "maxLength": 20},
            "x-kubernetes-list-type": "set",
            "maxItems": 3,
        },
        "parts": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["id"],
            "items": {
                "type": "object",
                "required": ["id"],
                "properties": {"id": TEXT, "weight": {**NUMBER, "default": 1}},
            },
        },
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "limits": {"type": "object", "additionalProperties": NUMBER, "maxProperties": 2},
        "min": NUMBER,
        "max": NUMBER,
        "fixed": {
            **TEXT,
            "maxLength": 20,
            "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed is fixed"}],
        },
        "replicas": {**NUMBER, "default": 1},
        "either": {
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
            "type": "object",
            "properties": {"a": TEXT, "b": TEXT},
        },
    },
    "x-kubernetes-validations": [
        {
            "rule": "!has(self.min) || !has(self.max) || self.min <= self.max",
            "message": "min must not be above max",
        },
        {
            "rule": "!has(self.tags) || self.tags.all(t, t.size() < 4)",
            "messageExpression": "'too long: ' + self.tags[0]",
            "fieldPath": ".tags",
            "reason": "FieldValueForbidden",
        },
    ],
}
STATUS: Final = {
    "type": "object",
    "properties": {"replicas": NUMBER, "phase": TEXT, "selector": TEXT},
}
SCHEMA: Final = {
    "openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC, "status": STATUS}}
}
OLD_STATUS: Final = {"type": "object", "properties": {**STATUS["properties"], "older": TEXT}}
OLD_SCHEMA: Final = {
    "openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC, "status": OLD_STATUS}}
}
CRD: Final = {
    "metadata": {"name": f"widgets.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {
            "plural": "widgets",
            "kind": "Widget",
            "shortNames": ["wd"],
            "categories": ["all"],
        },
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": SCHEMA,
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector",
                    },
                },
                "selectableFields": [{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.size"}],
                "additionalPrinterColumns": [
                    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                    {
                        "name": "Color",
                        "type": "string",
                        "jsonPath": ".spec.color",
                        "priority": 1,
                        "description": "its color",
                    },
                    {"name": "When", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
            },
            {
                "name": "v1beta1",
                "served": True,
                "storage": False,
                "deprecated": True,
                "schema": OLD_SCHEMA,
                "subresources": {"status": {}},
            },
        ],
    },
}


def _widget(named: str, **spec: Any) -> Any:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Widget",
        "metadata": {"name": named},
        "spec": {"size": 1, **spec},
    }


def _bad(why: str, **spec: Any) -> Ask:
    return post(f"widget: {why}", WIDGETS, _widget("bad", **spec))


def _crd(name: str, plural: str, **changes: Any) -> Ask:
    crd = deepcopy(CRD)
    crd["metadata"]["name"] = f"{plural}.{GROUP}"
    crd["spec"]["names"] = {"plural": plural, "kind": plural.capitalize()}
    crd["spec"]["versions"] = [{"name": "v1", "served": True, "storage": True, "schema": SCHEMA}]
    crd["spec"].update(changes)
    return post(f"CRD: {name}", CRDS, crd)


def _version(**changes: Any) -> Any:
    return {"name": "v1", "served": True, "storage": True, "schema": SCHEMA, **changes}


def _schema(**properties: Any) -> Any:
    return _version(schema={"openAPIV3Schema": {"type": "object", "properties": properties}})


SCRIPT: Final[tuple[Ask, ...]] = (
    *namespace(NS),
    post("CRD", CRDS, CRD),
    post("CRD again", CRDS, CRD),
    get("CRD served", WIDGETS, until=status(200)),
    get("CRD established", f"{CRDS}/widgets.{GROUP}"),
    get("CRD as a table", f"{CRDS}/widgets.{GROUP}", headers=TABLE),
    _crd("of a wrong name", "wrong", names={"plural": "others", "kind": "Other"}),
    _crd("without versions", "noversions", versions=[]),
    _crd(
        "without a schema", "noschema", versions=[{"name": "v1", "served": True, "storage": True}]
    ),
    _crd("of two storage versions", "twostores", versions=[_version(), _version(name="v2")]),
    _crd("of a bad scope", "badscope", scope="Everywhere"),
    _crd("of a bad group", "badgroup", group="Not Valid"),
    _crd("of no structure", "untyped", versions=[_schema(spec={"properties": {"a": TEXT}})]),
    _crd(
        "of a bad default",
        "baddefault",
        versions=[
            _schema(spec={"type": "object", "properties": {"a": {**NUMBER, "default": "x"}}})
        ],
    ),
    _crd(
        "of a bad rule",
        "badrule",
        versions=[
            _schema(spec={"type": "object", "x-kubernetes-validations": [{"rule": "self.)"}]})
        ],
    ),
    _crd(
        "of a bad pattern",
        "badpattern",
        versions=[_schema(spec={"type": "object", "properties": {"a": {**TEXT, "pattern": "("}}})],
    ),
    _crd(
        "of a bad column",
        "badcolumn",
        versions=[
            _version(additionalPrinterColumns=[{"name": "X", "type": "odd", "jsonPath": ".x"}])
        ],
    ),
    _crd(
        "of a bad list",
        "badlist",
        versions=[_schema(spec={"type": "array", "x-kubernetes-list-type": "map", "items": TEXT})],
    ),
    post(
        "widget",
        WIDGETS,
        _widget(
            "w",
            parts=[{"id": "a"}],
            unknown=1,
            free={"any": {"thing": 1}},
            port="http",
            limits={"a": 1},
        ),
    ),
    get("widget read", f"{WIDGETS}/w"),
    get("widget read in another version", f"{OLD}/w"),
    get("widgets in another version", OLD),
    get("widget as a table", f"{WIDGETS}/w", headers=TABLE),
    get("widgets as a table", WIDGETS, headers=TABLE),
    post("widget in another version", OLD, {**_widget("old"), "apiVersion": f"{GROUP}/v1beta1"}),
    get("widget of another version", f"{WIDGETS}/old"),
    post("widget, strict", f"{WIDGETS}?fieldValidation=Strict", _widget("strict", unknown=1)),
    post("widget, warned", f"{WIDGETS}?fieldValidation=Warn", _widget("warned", unknown=1)),
    _bad("too large", size=11),
    _bad("too small", size=0),
    _bad("a wrong type", size="big"),
    _bad("a fraction", size=1.5),
    _bad("null", size=None),
    post("widget: nothing said", WIDGETS, {"metadata": {"name": "bad"}, "spec": {}}),
    post(
        "widget: nothing in its spec",
        WIDGETS,
        {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": "bad"}, "spec": {}},
    ),
    post(
        "widget: without a spec",
        WIDGETS,
        {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": "bare"}},
    ),
    post(
        "widget: of another kind",
        WIDGETS,
        {"apiVersion": f"{GROUP}/v1", "kind": "Gadget", "metadata": {"name": "bad"}},
    ),
    post(
        "widget: of another version",
        WIDGETS,
        {"apiVersion": f"{GROUP}/v9", "kind": "Widget", "metadata": {"name": "bad"}},
    ),
    get("widget's unknown subresource", f"{WIDGETS}/w/frob"),
    post("widget: no spec", WIDGETS, {"metadata": {"name": "nospec"}}),
    _bad("another color", color="blue"),
    _bad("a bad name", name="ABC"),
    _bad("a long name", name="abcdefg"),
    _bad("a bad port", port=[1]),
    _bad("a bad time", when="now"),
    _bad("not a multiple", ratio=0.3),
    _bad("a tag twice", tags=["a", "a"]),
    _bad("too many tags", tags=["a", "b", "c", "d"]),
    _bad("a tag too long", tags=["long"]),
    _bad("a part twice", parts=[{"id": "a"}, {"id": "a"}]),
    _bad("a part without a key", parts=[{"weight": 1}]),
    _bad("a limit of letters", limits={"a": "b"}),
    _bad("too many limits", limits={"a": 1, "b": 2, "c": 3}),
    _bad("min above max", min=3, max=2),
    _bad("neither", either={}),
    _bad("both", either={"a": "1", "b": "2"}),
    post("widget: null where it may be", WIDGETS, _widget("nulled", note=None)),
    post("widget: null for a default", WIDGETS, _widget("nulled2", color=None)),
    put("widget replaced without a version", f"{WIDGETS}/w", _widget("w")),
    put(
        "widget replaced",
        f"{WIDGETS}/w",
        {
            **_widget("w", size=2, fixed="x"),
            "metadata": {"name": "w", "resourceVersion": "${widget:metadata.resourceVersion}"},
        },
    ),
    merge("widget, what is fixed", f"{WIDGETS}/w", {"spec": {"fixed": "y"}}),
    merge("widget, a patch", f"{WIDGETS}/w", {"spec": {"size": 3, "tags": ["a", "b"]}}),
    merge("widget, no change", f"{WIDGETS}/w", {"spec": {"size": 3}}),
    merge("widget, wrongly", f"{WIDGETS}/w", {"spec": {"size": 30}}),
    json_patch(
        "widget, a JSON patch",
        f"{WIDGETS}/w",
        [{"op": "add", "path": "/spec/tags/-", "value": "c"}],
    ),
    Ask("widget, a strategic patch", "PATCH", f"{WIDGETS}/w", {"spec": {"size": 4}}, STRATEGIC),
    merge(
        "widget, status",
        f"{WIDGETS}/w/status",
        {"status": {"replicas": 1, "phase": "Up", "selector": "a=b"}},
    ),
    merge(
        "widget, status and spec",
        f"{WIDGETS}/w/status",
        {"spec": {"size": 9}, "status": {"phase": "Down"}},
    ),
    merge("widget, status past its path", f"{WIDGETS}/w", {"status": {"phase": "Lost"}}),
    merge("widget, a wrong status", f"{WIDGETS}/w/status", {"status": {"replicas": "one"}}),
    get("widget's status", f"{WIDGETS}/w/status"),
    get("widget's scale", f"{WIDGETS}/w/scale"),
    merge("widget scaled", f"{WIDGETS}/w/scale", {"spec": {"replicas": 4}}),
    get("widgets by color", f"{WIDGETS}?fieldSelector=spec.color%3Dred"),
    get("widgets by size", f"{WIDGETS}?fieldSelector=spec.size%3D3"),
    get("widgets by an unknown field", f"{WIDGETS}?fieldSelector=spec.name%3Dx"),
    apply(
        "widget applied",
        f"{WIDGETS}/ap?fieldManager=one",
        _widget("ap", parts=[{"id": "a"}], tags=["a"]),
    ),
    apply(
        "widget applied by another",
        f"{WIDGETS}/ap?fieldManager=two",
        _widget("ap", parts=[{"id": "b", "weight": 2}], tags=["b"]),
    ),
    apply("widget, a conflict", f"{WIDGETS}/ap?fieldManager=two", _widget("ap", size=2)),
    apply("widget, a part given up", f"{WIDGETS}/ap?fieldManager=one", _widget("ap")),
    apply(
        "widget, an unknown field applied",
        f"{WIDGETS}/ap?fieldManager=one",
        _widget("ap", nothing=1),
    ),
    get(
        "watched widgets",
        f"{WIDGETS}?watch=true&timeoutSeconds=1&resourceVersion=${{widget:metadata.resourceVersion}}",
    ),
    get(
        "watched widgets as tables",
        f"{WIDGETS}?watch=true&timeoutSeconds=1&resourceVersion=${{widget:metadata.resourceVersion}}",
        headers=TABLE,
    ),
    merge("CRD, another scope", f"{CRDS}/widgets.{GROUP}", {"spec": {"scope": "Cluster"}}),
    json_patch(
        "CRD, a version away",
        f"{CRDS}/widgets.{GROUP}",
        [{"op": "replace", "path": "/spec/versions/1/served", "value": False}],
    ),
    get("widgets of the version away", OLD, until=status(404)),
    delete("widgets by color gone", f"{WIDGETS}?fieldSelector=spec.color%3Dred", until=status(200)),
    get("widgets left", WIDGETS),
    delete("CRD gone", f"{CRDS}/widgets.{GROUP}"),
    get("CRD no longer served", WIDGETS, until=status(404)),
    get("CRD no longer there", f"{CRDS}/widgets.{GROUP}", until=status(404)),
)
