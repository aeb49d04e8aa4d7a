"""From Kubernetes' protobuf envelope to the object that its JSON would be.

Go clients such as kubectl send built-in kinds in this form, and fall back to nothing else. The
field tables in ``data/protobuf.json.gz`` are reduced from the struct tags of Kubernetes' Go types.
Answers are always JSON, which those clients accept.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from lockstep.apiserver.protobuf.wire import Malformed, Value, fields, signed

Json = dict[str, Any]

MAGIC = b"k8s\x00"
_DELETE_OPTIONS = "meta.v1.DeleteOptions"


class NotProtobuf(ValueError):
    """A body that cannot be read as one of the kinds that have a protobuf form."""


class _Field(NamedTuple):
    name: str
    type: str
    shape: str
    drops_zero: bool


class _Tables(NamedTuple):
    kinds: dict[str, str]
    messages: dict[str, dict[int, _Field]]


@cache
def _tables() -> _Tables:
    data = files("lockstep.apiserver") / "data" / "protobuf.json.gz"
    raw = json.loads(gzip.decompress(data.read_bytes()))
    messages = {
        name: {int(number): _Field(*field) for number, field in table.items()}
        for name, table in raw["messages"].items()
    }
    return _Tables(raw["kinds"], messages)


def decode(body: bytes) -> Json:
    """Return the object in a ``application/vnd.kubernetes.protobuf`` body.

    Raises:
        NotProtobuf: when it is none, or of a kind that has no protobuf form.
    """
    if not body.startswith(MAGIC):
        raise NotProtobuf("the body does not begin with the protobuf envelope's magic number")
    try:
        envelope = dict(fields(body[len(MAGIC) :]))
        types = dict(fields(_bytes(envelope.get(1, b""))))
        api_version, kind = (_bytes(types.get(n, b"")).decode() for n in (1, 2))
        message = _message_of(api_version, kind)
        obj = _message(message, _bytes(envelope.get(2, b"")))
    except (Malformed, UnicodeDecodeError, json.JSONDecodeError, OverflowError) as error:
        raise NotProtobuf(f"the body is not valid protobuf: {error}") from None
    return {"apiVersion": api_version, "kind": kind, **obj}


def _message_of(api_version: str, kind: str) -> str:
    if kind == "DeleteOptions":
        return _DELETE_OPTIONS
    try:
        return _tables().kinds[f"{api_version} {kind}"]
    except KeyError:
        raise NotProtobuf(f"{api_version} {kind} has no protobuf form here; send JSON") from None


def _message(name: str, data: bytes) -> Json:
    table = _tables().messages[name]
    obj: Json = {}
    for number, raw in fields(data):
        field = table.get(number)
        if field is None:
            continue  # newer than the tables; JSON would call it unknown and drop it too
        if field.shape == "map":
            key, value = _entry(field, _bytes(raw))
            obj.setdefault(field.name, {})[key] = value
        elif field.shape == "many":
            obj.setdefault(field.name, []).append(_value(field.type, raw))
        else:
            _set(obj, field, _value(field.type, raw))
    return obj


def _set(obj: Json, field: _Field, value: Any) -> None:
    if not field.name:
        obj.update(value)  # inlined in JSON
    elif value is not None and not (field.drops_zero and not isinstance(value, dict) and not value):
        obj[field.name] = value


def _entry(field: _Field, data: bytes) -> tuple[str, Any]:
    parts = dict(fields(data))
    empty: Value = 0 if field.type in ("int", "bool") else b""
    return _bytes(parts.get(1, b"")).decode(), _value(field.type, parts.get(2, empty))


def _value(type_: str, raw: Value) -> Any:
    special = _DECODERS.get(type_)
    return special(raw) if special else _message(type_, _bytes(raw))


def _bytes(raw: Value) -> bytes:
    if not isinstance(raw, bytes):
        raise Malformed("a number where bytes were expected")
    return raw


def _int(raw: Value) -> int:
    if not isinstance(raw, int):
        raise Malformed("bytes where a number was expected")
    return signed(raw)


def _quantity(raw: Value) -> str:
    return _bytes(dict(fields(_bytes(raw))).get(1, b"0")).decode()


def _moment(raw: Value, digits: int) -> str | None:
    parts = dict(fields(_bytes(raw)))
    seconds, nanos = _int(parts.get(1, 0)), _int(parts.get(2, 0))
    if not parts:
        return None  # Go's zero time
    text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{nanos // 1000:06d}Z" if digits else f"{text}Z"


def _int_or_string(raw: Value) -> int | str:
    parts = dict(fields(_bytes(raw)))
    if _int(parts.get(1, 0)):
        return _bytes(parts.get(3, b"")).decode()
    return _int(parts.get(2, 0))


_DECODERS: dict[str, Callable[[Value], Any]] = {
    "string": lambda raw: _bytes(raw).decode(),
    "bytes": lambda raw: base64.b64encode(_bytes(raw)).decode(),
    "int": _int,
    "bool": lambda raw: bool(_int(raw)),
    "double": lambda raw: raw,
    "json": lambda raw: json.loads(_bytes(dict(fields(_bytes(raw))).get(1, b"null"))),
    "strings": lambda raw: [_bytes(value).decode() for _, value in fields(_bytes(raw))],
    "quantity": _quantity,
    "time": lambda raw: _moment(raw, 0),
    "microtime": lambda raw: _moment(raw, 6),
    "intstr": _int_or_string,
}
