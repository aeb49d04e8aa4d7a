from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from lockstep.api.crd import schema as our_schema
from lockstep.apiserver.schema import Schema
from lockstep.apiserver.schema.cel import problems, undefined_fields

Json = dict[str, Any]
ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
INT, TEXT = {"type": "integer"}, {"type": "string"}


def said(spec: Json, new: Any, old: Any = None) -> list[str]:
    schema = Schema.parse({"type": "object", "properties": {"spec": spec}})
    before = None if old is None else {"metadata": {}, "spec": old}
    return [str(c) for c in schema.validate({"metadata": {}, "spec": new}, before)]


def ruled(rule: str, part: Json = ANY, **more: Any) -> Json:
    return {**part, "x-kubernetes-validations": [{"rule": rule, **more}]}


@pytest.mark.parametrize(
    ("rule", "spec"),
    [
        ("has(self.a) && !has(self.b)", {"a": 1}),
        ("self.l.all(x, x > 0) && self.l.exists(x, x == 2)", {"l": [1, 2]}),
        ("self.l.exists_one(x, x == 2) && size(self.l) == 2", {"l": [1, 2]}),
        ("self.l.map(x, x * 2).filter(x, x > 2).size() == 1", {"l": [1, 2]}),
        ("self.s.matches('^[a-z]+$') && self.s.startsWith('a')", {"s": "abc"}),
        ("self.s.split(',').size() == 2 && self.s.lowerAscii() == 'a,b'", {"s": "A,B"}),
        ("self.s.replace('a', 'b').substring(0, 1).upperAscii() == 'B'", {"s": "ab"}),
        ("self.s.trim() == 'a' && self.s.contains('a')", {"s": " a "}),
        ("self.s.find('[0-9]+') == '12' && self.s.indexOf('1') == 1", {"s": "a12"}),
        ("self.l.sum() == 6 && self.l.min() == 1 && self.l.max() == 3", {"l": [1, 2, 3]}),
        ("self.l.isSorted() && self.l.indexOf(2) == 1", {"l": [1, 2]}),
        ("quantity(self.q).isGreaterThan(quantity('1Mi'))", {"q": "1Gi"}),
        ("isQuantity(self.q) && quantity(self.q).compareTo(quantity('1024Mi')) == 0", {"q": "1Gi"}),
        ("url(self.u).getHost() == 'a.b:80' && isURL(self.u)", {"u": "https://a.b:80/c"}),
        ("isIP(self.i) && ip(self.i).family() == 4", {"i": "10.0.0.1"}),
        ("cidr('10.0.0.0/8').containsIP(ip(self.i))", {"i": "10.0.0.1"}),
        ("duration(self.d) <= duration('1h')", {"d": "30m"}),
        ("timestamp(self.t).getFullYear() == 2026", {"t": "2026-01-01T00:00:00Z"}),
        ("self.m.all(k, self.m[k] > 0) && 'a' in self.m", {"m": {"a": 1}}),
        ("self.a == 1 ? self.b == 2 : false", {"a": 1, "b": 2}),
        ("self.missing == 1 || true", {}),
    ],
)
def test_what_holds(rule: str, spec: Json) -> None:
    assert said(ruled(rule), spec) == []
    assert said(ruled(f"!({rule})"), spec) == [f"spec: Invalid value: failed rule: !({rule})"]


@pytest.mark.parametrize(
    ("schema", "spec", "expected"),
    [
        (ruled("self.a > 1", message=" too few "), {"a": 1}, "spec: Invalid value: too few"),
        (ruled("self > 1", INT, message="too few"), 1, "spec: Invalid value: 1: too few"),
        (
            ruled("self.a > 1", messageExpression="'a is ' + string(self.a)", message="m"),
            {"a": 1},
            "spec: Invalid value: a is 1",
        ),
        (
            ruled("self.a > 1", messageExpression="'a is ' + self.a", message="m"),
            {"a": 1},
            "spec: Invalid value: m",
        ),
        (
            ruled("self.a > 1", reason="FieldValueForbidden", fieldPath=".a", message="m"),
            {"a": 1},
            "spec.a: Forbidden: m",
        ),
        (
            ruled("has(self.a)", reason="FieldValueRequired", fieldPath=".a", message="m"),
            {},
            "spec.a: Required value: m",
        ),
        (
            ruled("self.a.b == 1", message="m"),
            {"a": {}},
            'spec: Invalid value: "object": no such key: b evaluating rule: m',
        ),
        (
            ruled("1 / self.a == 1"),
            {"a": 0},
            'spec: Invalid value: "object": division by zero evaluating rule: 1 / self.a == 1',
        ),
        (
            {"type": "array", "items": ruled("self > 1", INT, message="m")},
            [2, 1],
            "spec[1]: Invalid value: 1: m",
        ),
        (
            {"type": "object", "additionalProperties": ruled("self > 1", INT, message="m")},
            {"k": 1},
            "spec[k]: Invalid value: 1: m",
        ),
    ],
)
def test_what_is_said(schema: Json, spec: Any, expected: str) -> None:
    assert said(schema, spec) == [expected]


def test_transition_rules_wait_for_a_change() -> None:
    schema = ruled("self.a >= oldSelf.a", message="must not shrink")
    assert said(schema, {"a": 1}) == []
    assert said(schema, {"a": 2}, {"a": 1}) == []
    assert said(schema, {"a": 1}, {"a": 2}) == ["spec: Invalid value: must not shrink"]


def test_a_rule_with_an_optional_old_value_holds_at_creation() -> None:
    schema = ruled("oldSelf.hasValue() || self.a == 0", message="starts at 0", optionalOldSelf=True)
    assert said(schema, {"a": 1}) == ["spec: Invalid value: starts at 0"]
    assert said(schema, {"a": 1}, {"a": 0}) == []


def test_items_of_keyed_lists_are_compared_with_their_own_past() -> None:
    item = ruled(
        "self.v == oldSelf.v",
        {"type": "object", "properties": {"name": TEXT, "v": INT}},
        message="fixed",
    )
    keyed = {
        "type": "array",
        "items": item,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }
    old = [{"name": "a", "v": 1}, {"name": "b", "v": 2}]
    assert said(keyed, [{"name": "b", "v": 2}, {"name": "c", "v": 9}], old) == []
    assert said(keyed, [{"name": "b", "v": 3}], old) == ["spec[0]: Invalid value: fixed"]


def test_what_is_not_touched_may_break_a_newer_rule() -> None:
    schema = ruled("self.a > 1")
    assert said(schema, {"a": 1}, {"a": 1}) == []


def test_rules_wait_until_the_types_are_right() -> None:
    schema = ruled("self.a > 1", {"type": "object", "properties": {"a": INT}})
    assert said(schema, {"a": "x"}) == [
        'spec.a: Invalid value: "string": spec.a in body must be of type integer: "string"',
        "<nil>: Invalid value: null: some validation rules were not checked because the object was "
        "invalid; correct the existing errors to complete validation",
    ]


def test_names_and_formats_reach_rules_in_their_own_form() -> None:
    part = {
        "type": "object",
        "properties": {
            "in": INT,
            "a-b": INT,
            "at": {"type": "string", "format": "date-time"},
            "span": {"type": "string", "format": "duration"},
        },
    }
    rule = (
        "self.__in__ == 1 && self.a__dash__b == 2 && self.at.getFullYear() == 2026 && "
        "self.span > duration('1m')"
    )
    spec = {"in": 1, "a-b": 2, "at": "2026-01-01T00:00:00Z", "span": "1h"}
    assert said(ruled(rule, part), spec) == []


@pytest.mark.parametrize(
    ("rule", "start"),
    [
        ("self.a >", "compilation failed: "),
        (
            "nothing(self.a)",
            "compilation failed: ERROR: undeclared reference to 'nothing' (in container '')",
        ),
    ],
)
def test_rules_that_cannot_be_used(rule: str, start: str) -> None:
    (problem,) = problems({"rule": rule})
    assert problem.startswith(start)


@pytest.mark.parametrize("kind", ["Gang", "TrainingJob", "Queue", "Topology"])
def test_our_own_rules_compile(kind: str) -> None:
    Schema.parse(our_schema(kind)).validate({"metadata": {"name": "x"}, "spec": {}})


def test_our_own_rules_hold() -> None:
    gang = Schema.parse(our_schema("Gang"))
    both = {"minMember": 1, "groups": [{"name": "a", "min": 2, "desired": 1}]}
    messages = [c.message for c in gang.validate({"metadata": {"name": "x"}, "spec": both})]
    assert messages == [
        "Invalid value: exactly one of minMember (one group) and groups (several) must be set",
        "Invalid value: must not be less than min",
    ]


def test_the_library_is_not_loaded_before_there_is_a_rule() -> None:
    program = (
        "import sys; from lockstep.apiserver.schema import Schema; "
        "Schema.parse({'type': 'object'}).validate({}); sys.exit('cel' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize(
    ("rule", "undefined"),
    [
        ("self.z == 100", ["z"]),
        ("self.x == 'self.z' && self.x != \"self.y\"", []),
        ("has(self.z) || self.x > oldSelf.y", ["z"]),
        ("self.__namespace__ == self.a__dash__b", []),
        ("self.size() > 0 && self.items.all(i, i.z)", ["items"]),
    ],
)
def test_fields_that_no_schema_has_are_named(rule: str, undefined: list[str]) -> None:
    assert undefined_fields(rule, ["x", "y", "namespace", "a-b"]) == undefined
