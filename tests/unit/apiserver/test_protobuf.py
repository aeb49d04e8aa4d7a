"""Protobuf bodies become the object that their JSON would be."""

from __future__ import annotations

import contextlib
import gzip
import json
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.apiserver.builtin import BUILTINS
from lockstep.apiserver.protobuf import NotProtobuf, decode, encode, frame
from lockstep.apiserver.protobuf.tables import tables
from lockstep.apiserver.protobuf.wire import fields, signed


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def message(*parts: tuple[int, int | str | bytes | float]) -> bytes:
    out = b""
    for number, value in parts:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        elif isinstance(value, float):
            out += varint(number << 3 | 1) + struct.pack("<d", value)
        else:
            data = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(data)) + data
    return out


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    types = message((1, api_version), (2, kind))
    return b"k8s\x00" + message((1, types), (2, raw), (3, ""), (4, ""))


META = message((1, "x"), (2, ""), (3, "ns"), (7, 0), (8, b""), (11, message((1, "a"), (2, "b"))))
META_JSON = {"name": "x", "namespace": "ns", "labels": {"a": "b"}}


@pytest.mark.parametrize(
    ("api_version", "kind", "raw", "expected"),
    [
        (
            "v1",
            "ConfigMap",
            message(
                (1, META),
                (2, message((1, "k"), (2, "v"))),
                (3, message((1, "b"), (2, b"\x00\xff"))),
            ),
            {"metadata": META_JSON, "data": {"k": "v"}, "binaryData": {"b": "AP8="}},
        ),
        (  # a zero behind a pointer is a value, a zero that JSON omits is not
            "apps/v1",
            "Deployment",
            message((1, META), (2, message((1, 0), (5, 0)))),
            {"metadata": META_JSON, "spec": {"replicas": 0}},
        ),
        (  # inlined sources, int-or-string, quantities, negative numbers
            "v1",
            "Pod",
            message(
                (
                    2,
                    message(
                        (1, message((1, "v"), (2, message((2, message((1, "Memory"))))))),
                        (
                            2,
                            message(
                                (1, "c"),
                                (8, message((1, message((1, "cpu"), (2, message((1, "2"))))))),
                                (
                                    10,
                                    message(
                                        (
                                            1,
                                            message(
                                                (
                                                    2,
                                                    message(
                                                        (1, "/"), (2, message((1, 1), (3, "web")))
                                                    ),
                                                )
                                            ),
                                        ),
                                        (2, -1),
                                    ),
                                ),
                            ),
                        ),
                    ),
                )
            ),
            {
                "spec": {
                    "volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}],
                    "containers": [
                        {
                            "name": "c",
                            "resources": {"limits": {"cpu": "2"}},
                            "livenessProbe": {
                                "httpGet": {"path": "/", "port": "web"},
                                "initialDelaySeconds": -1,
                            },
                        }
                    ],
                }
            },
        ),
        (
            "coordination.k8s.io/v1",
            "Lease",
            message((2, message((1, "me"), (4, message((1, 1700000000), (2, 5000)))))),
            {"spec": {"holderIdentity": "me", "renewTime": "2023-11-14T22:13:20.000005Z"}},
        ),
        ("policy/v1", "DeleteOptions", message((1, 0)), {"gracePeriodSeconds": 0}),
    ],
)
def test_known_messages(api_version: str, kind: str, raw: bytes, expected: dict[str, Any]) -> None:
    decoded = decode(envelope(api_version, kind, raw))
    assert decoded == {"apiVersion": api_version, "kind": kind, **expected}


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b"k8s\x00\xff",
        b"k8s\x00" + message((1, "\x0a\x7f")),
        envelope("lockstep.dev/v1alpha1", "Gang", b""),
        envelope("v1", "ConfigMap", b"\x0a\x05ab"),
        envelope("v1", "ConfigMap", message((1, 7))),
    ],
)
def test_what_is_no_known_message_is_refused(body: bytes) -> None:
    with pytest.raises(NotProtobuf):
        decode(body)


@given(st.binary(max_size=60))
def test_any_bytes_are_decoded_or_refused(raw: bytes) -> None:
    with contextlib.suppress(NotProtobuf):
        decode(envelope("v1", "Pod", raw))


@given(st.integers(-(2**63), 2**63 - 1))
def test_numbers_survive(number: int) -> None:
    ((_, raw),) = fields(message((3, number)))
    assert isinstance(raw, int)
    assert signed(raw) == number


RECORDED = Path(__file__).parent / "recorded" / "builtin.json.gz"
STORED = [
    case["answer"]["object"]
    for case in json.loads(gzip.decompress(RECORDED.read_bytes()))
    if "object" in case["answer"]
]


def test_what_kubernetes_stores_survives_protobuf() -> None:
    assert len(STORED) > 80
    for obj in STORED:
        for claim in (obj.get("spec") or {}).get("volumeClaimTemplates") or ():
            claim.pop("kind", None)  # protobuf says the kind of the outermost object alone
            claim.pop("apiVersion", None)
        assert decode(encode(obj)) == obj


def test_every_kind_and_its_list_has_a_protobuf_form() -> None:
    for kind in BUILTINS:
        for name in (kind.kind, f"{kind.kind}List"):
            assert encode({"apiVersion": kind.api_version, "kind": name}).startswith(b"k8s\x00")


def test_a_custom_kind_has_no_protobuf_form() -> None:
    with pytest.raises(NotProtobuf, match=r"lockstep.dev/v1alpha1 Gang"):
        encode({"apiVersion": "lockstep.dev/v1alpha1", "kind": "Gang"})


def crd(schema: dict[str, Any]) -> dict[str, Any]:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"x": schema}}},
        "subresources": {"status": {}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "x"},
        "spec": {"versions": [version]},
    }


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"type": "string"}},
        {"items": [{"type": "string"}, {"type": "integer"}]},
        {"additionalProperties": True},
        {"additionalProperties": {"type": "integer"}},
        {"dependencies": {"a": ["b", "c"], "d": {"type": "object"}}},
        {"default": {"a": [1, None, "ä"]}, "enum": [1, "two", None, 3.5]},
        {"minimum": 0, "maximum": 2.5, "multipleOf": 1},
        {"$ref": "#/x", "$schema": "s", "not": {"oneOf": [{"required": ["a"]}]}},
        {"x-kubernetes-validations": [{"rule": "self > 1", "message": "no"}]},
        {"x-kubernetes-preserve-unknown-fields": False, "nullable": True},
    ],
    ids=lambda schema: next(iter(schema)),
)
def test_schemas_of_custom_kinds_survive_protobuf(schema: dict[str, Any]) -> None:
    assert decode(encode(crd(schema))) == crd(schema)


def test_unknown_fields_are_left_out() -> None:
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}
    assert encode({**obj, "later": {"x": 1}, "immutable": None}) == encode(obj)


def test_a_frame_holds_the_event_after_its_length() -> None:
    obj = encode({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}})
    framed = frame("ADDED", obj)
    assert int.from_bytes(framed[:4], "big") == len(framed) - 4
    event = dict(fields(framed[4:]))
    assert event[1] == b"ADDED"
    assert isinstance(event[2], bytes)
    assert dict(fields(event[2])) == {1: obj}


@st.composite
def values(draw: st.DrawFn, message: str, depth: int) -> dict[str, Any]:
    """An object that a message can be, in the form in which JSON has it."""
    obj: dict[str, Any] = {}
    table = [f for f in tables().messages[message].values() if f.name]
    chosen = draw(st.lists(st.sampled_from(table), max_size=4, unique=True)) if table else []
    for field in chosen:
        one = SCALARS.get(field.type)
        if one is None:
            if "." not in field.type or depth == 0:
                continue
            one = values(field.type, depth - 1)
        shaped = {
            "one": one,
            "many": st.lists(one, min_size=1, max_size=2),
            "map": st.dictionaries(st.text(max_size=3), one, min_size=1, max_size=2),
        }[field.shape]
        value = draw(shaped)
        if value or isinstance(value, dict) or not field.drops_zero:
            obj[field.name] = value
    return obj


SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "string": st.text(max_size=5),
    "bool": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "double": st.integers(-9, 9) | st.floats(allow_nan=False, allow_infinity=False, width=16),
    "intstr": st.integers(0, 70000) | st.text(max_size=4),
    "quantity": st.sampled_from(["1", "100m", "2Gi"]),
    "time": st.sampled_from(["2024-02-29T23:59:59Z", "1970-01-01T00:00:01Z"]),
    "microtime": st.sampled_from(["2024-02-29T23:59:59.000001Z", "2038-01-19T03:14:08.999999Z"]),
    "strings": st.lists(st.text(max_size=3), max_size=2),
    "json": st.recursive(
        st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner),
        max_leaves=4,
    ).filter(lambda value: value is not None),  # a field that is null is one that is not set
}


@given(st.data())
def test_whatever_a_kind_can_say_survives_protobuf(data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(sorted(tables().kinds)))
    api_version, kind = key.split(" ")
    obj = data.draw(values(tables().kinds[key], 3))
    whole = {"apiVersion": api_version, "kind": kind, **obj}
    assert decode(encode(whole)) == whole
