"""From an object to Kubernetes' protobuf envelope.

Each field gets a writer that is made once, when an object with the field is first written: a
writer takes the field's JSON value and returns its bytes, tag included.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import Any

import msgspec

from lockstep.api.wire import Json
from lockstep.apiserver.protobuf.tables import MAGIC, SCHEMA, Field, message_of, tables
from lockstep.apiserver.protobuf.wire import BYTES, FIXED64, VARINT, double, varint

Write = Callable[[Any], bytes]

_NO_ENCODING = b"\x1a\x00\x22\x00"
"""The envelope's content encoding and type, which Go writes though they are empty."""


def encode(obj: Json) -> bytes:
    """Return *obj* as an ``application/vnd.kubernetes.protobuf`` body.

    Fields that the tables do not know are left out.

    Raises:
        NotProtobuf: when its kind has no protobuf form.
    """
    api_version, kind = obj["apiVersion"], obj["kind"]
    raw = _message(message_of(api_version, kind)).write(obj)
    types = _block(1, api_version.encode()) + _block(2, kind.encode())
    return MAGIC + _block(1, types) + _block(2, raw) + _NO_ENCODING


def frame(type_: str, obj: bytes) -> bytes:
    """Return an event of a watch, its length before it; *obj* is an encoded object."""
    event = _block(1, type_.encode()) + _block(2, _block(1, obj))
    return len(event).to_bytes(4, "big") + event


def _block(number: int, data: bytes) -> bytes:
    return varint(number << 3 | BYTES) + varint(len(data)) + data


class _Message:
    """Writes one kind of message."""

    def __init__(self, name: str) -> None:
        self._fields: dict[str, tuple[int, Field]] = {}
        self._inlined: dict[str, tuple[int, _Message]] = {}
        self._writers: dict[str, Write] = {}
        for number, field in tables().messages[name].items():
            if field.name:
                self._fields[field.name] = number, field
            else:
                part = _message(field.type)
                self._inlined |= dict.fromkeys(part.names(), (number, part))

    def names(self) -> list[str]:
        """Return the names of its fields in JSON."""
        return [*self._fields, *self._inlined]

    def write(self, obj: Json) -> bytes:
        """Return the message that *obj* is."""
        writers = self._writers
        written: list[bytes] = []
        parts: dict[int, Json] = {}
        for name, value in obj.items():
            if value is None:
                continue
            writer = writers.get(name)
            if writer is not None:
                written.append(writer(value))
            elif name in self._fields:
                writer = writers[name] = _writer(*self._fields[name])
                written.append(writer(value))
            elif name in self._inlined:
                parts.setdefault(self._inlined[name][0], {})[name] = value
        for number, part in parts.items():
            message = self._inlined[next(iter(part))][1]
            written.append(_block(number, message.write(part)))
        return b"".join(written)


@cache
def _message(name: str) -> _Message:
    return _Message(name)


def _writer(number: int, field: Field) -> Write:
    """Return what writes the field *number* of a message."""
    if field.shape == "map":
        key, value = _of_type(1, "string"), _of_type(2, field.type)
        tag = varint(number << 3 | BYTES)

        def write_map(entries: dict[str, Any]) -> bytes:
            return b"".join(
                tag + varint(len(entry)) + entry
                for entry in (key(name) + value(one) for name, one in entries.items())
            )

        return write_map
    one = _of_type(number, field.type)
    if field.shape == "many":
        return lambda values: b"".join(map(one, values))
    return one


def _of_type(number: int, type_: str) -> Write:
    """Return what writes one value as the field *number*."""
    if type_ in ("int", "bool"):
        tag = varint(number << 3 | VARINT)
        return lambda value: tag + varint(int(value))
    if type_ == "double":
        tag = varint(number << 3 | FIXED64)
        return lambda value: tag + double(value)
    tag = varint(number << 3 | BYTES)
    content = _CONTENTS.get(type_) or _message(type_).write

    def write(value: Any) -> bytes:
        data = content(value)
        return tag + varint(len(data)) + data

    return write


def _json(value: Any) -> bytes:
    return _block(1, msgspec.json.encode(value))


def _moment(value: str) -> bytes:
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    # Whole seconds and the rest apart: a float has not the digits for both.
    seconds = int(moment.replace(microsecond=0).timestamp())
    return b"\x08" + varint(seconds) + b"\x10" + varint(moment.microsecond * 1000)


def _int_or_string(value: int | str) -> bytes:
    if isinstance(value, str):
        return b"\x08\x01\x10\x00" + _block(3, value.encode())
    return b"\x08\x00\x10" + varint(value) + b"\x1a\x00"


def _schema_or_schemas(value: Json | list[Json]) -> bytes:
    schema = _message(SCHEMA).write
    if isinstance(value, dict):
        return _block(1, schema(value))
    return b"".join(_block(2, schema(one)) for one in value)


def _schema_or_bool(value: Json | bool) -> bytes:
    if isinstance(value, dict):
        return b"\x08\x01" + _block(2, _message(SCHEMA).write(value))
    return b"\x08" + varint(int(value))


def _schema_or_strings(value: Json | list[str]) -> bytes:
    if isinstance(value, dict):
        return _block(1, _message(SCHEMA).write(value))
    return b"".join(_block(2, one.encode()) for one in value)


_CONTENTS: dict[str, Callable[[Any], bytes]] = {
    "string": str.encode,
    "bytes": base64.b64decode,
    "json": _json,
    "strings": lambda values: b"".join(_block(1, value.encode()) for value in values),
    "quantity": lambda value: _block(1, str(value).encode()),
    "time": _moment,
    "microtime": _moment,
    "intstr": _int_or_string,
    "schemaOrSchemas": _schema_or_schemas,
    "schemaOrBool": _schema_or_bool,
    "schemaOrStrings": _schema_or_strings,
}
