"""From Kubernetes' protobuf envelope to the object that its JSON would be."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from lockstep.api.wire import Json
from lockstep.apiserver.protobuf.tables import MAGIC, SCHEMA, Field, NotProtobuf, message_of, tables
from lockstep.apiserver.protobuf.wire import Malformed, Value, fields, signed


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
        message = message_of(api_version, kind)
        obj = _message(message, _bytes(envelope.get(2, b"")))
    except (Malformed, UnicodeDecodeError, json.JSONDecodeError, OverflowError) as error:
        raise NotProtobuf(f"the body is not valid protobuf: {error}") from None
    return {"apiVersion": api_version, "kind": kind, **obj}


def _message(name: str, data: bytes) -> Json:
    table = tables().messages[name]
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


def _set(obj: Json, field: Field, value: Any) -> None:
    if not field.name:
        obj.update(value)  # inlined in JSON
    elif value is not None and not (field.drops_zero and not isinstance(value, dict) and not value):
        obj[field.name] = value


def _entry(field: Field, data: bytes) -> tuple[str, Any]:
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


def _double(raw: Value) -> int | float:
    if not isinstance(raw, float):
        raise Malformed("no 64-bit number where one was expected")
    return int(raw) if raw.is_integer() else raw


def _schema_or_schemas(raw: Value) -> Json | list[Json]:
    parts = list(fields(_bytes(raw)))
    if parts and parts[0][0] == 1:
        return _message(SCHEMA, _bytes(parts[0][1]))
    return [_message(SCHEMA, _bytes(value)) for _, value in parts]


def _schema_or_bool(raw: Value) -> Json | bool:
    parts = dict(fields(_bytes(raw)))
    return _message(SCHEMA, _bytes(parts[2])) if 2 in parts else bool(_int(parts.get(1, 0)))


def _schema_or_strings(raw: Value) -> Json | list[str]:
    parts = list(fields(_bytes(raw)))
    if parts and parts[0][0] == 1:
        return _message(SCHEMA, _bytes(parts[0][1]))
    return [_bytes(value).decode() for _, value in parts]


_DECODERS: dict[str, Callable[[Value], Any]] = {
    "string": lambda raw: _bytes(raw).decode(),
    "bytes": lambda raw: base64.b64encode(_bytes(raw)).decode(),
    "int": _int,
    "bool": lambda raw: bool(_int(raw)),
    "double": _double,
    "json": lambda raw: json.loads(_bytes(dict(fields(_bytes(raw))).get(1, b"null"))),
    "strings": lambda raw: [_bytes(value).decode() for _, value in fields(_bytes(raw))],
    "quantity": _quantity,
    "time": lambda raw: _moment(raw, 0),
    "microtime": lambda raw: _moment(raw, 6),
    "intstr": _int_or_string,
    "schemaOrSchemas": _schema_or_schemas,
    "schemaOrBool": _schema_or_bool,
    "schemaOrStrings": _schema_or_strings,
}
