"""Protobuf bodies become the object that their JSON would be."""

from __future__ import annotations

import contextlib
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.apiserver.protobuf import NotProtobuf, decode
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
