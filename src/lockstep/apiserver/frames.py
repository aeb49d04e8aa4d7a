"""Watches in protobuf: each event a message with its length before it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lockstep.api.wire import Json
from lockstep.apiserver.representation import ListMeta, Representation
from lockstep.apiserver.store import Record

_decode = msgspec.json.Decoder().decode


class _Event(msgspec.Struct):
    type: str
    object: Json


_event = msgspec.json.Decoder(_Event).decode


class InFrames(Representation):
    """Another form, which is JSON, in protobuf."""

    stream_type = "application/vnd.kubernetes.protobuf;stream=watch"

    def __init__(self, form: Representation) -> None:
        super().__init__(form.served, f"frames/{form.key}")
        self._form = form

    def one(self, record: Record) -> bytes:
        """Return one object."""
        return _encoded(_decode(self._form.one(record)))

    def many(self, records: Sequence[Record], meta: ListMeta) -> bytes:
        """Return a list."""
        return _encoded(_decode(self._form.many(records, meta)))

    def line(self, type_: str, record: Record) -> bytes:
        """Return an event of a watch."""
        return _framed(type_, _decode(self._form.one(record)))

    def bookmark(self, revision: int, *, initial_end: bool = False) -> bytes:
        """Return the event that says up to which revision everything has been sent."""
        return self._again(self._form.bookmark(revision, initial_end=initial_end))

    def error(self, status: Json) -> bytes:
        """Return the event that ends a watch with a failure."""
        return self._again(self._form.error(status))

    def _again(self, line: bytes) -> bytes:
        event = _event(line)
        return _framed(event.type, event.object)


def _encoded(obj: Json) -> bytes:
    from lockstep.apiserver.protobuf import encode

    return encode(obj)


def _framed(type_: str, obj: Json) -> bytes:
    from lockstep.apiserver.protobuf import frame

    return frame(type_, _encoded(obj))
