"""What the store keeps: one version of one object, and the event that brought it about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from lockstep.api.wire import encode


class Key(NamedTuple):
    """Where an object lives; ``namespace`` is empty for cluster-scoped kinds."""

    resource: str
    """The storage name: the plural alone for the core group, else ``plural.group``."""
    namespace: str
    name: str


class Owner(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """An owner reference."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class Meta(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The metadata by which the server decides, read without decoding the rest."""

    uid: str = ""
    labels: dict[str, str] | None = None
    finalizers: list[str] | None = None
    owner_references: list[Owner] | None = None
    deletion_timestamp: str | None = None


class _Envelope(msgspec.Struct, frozen=True, gc=False):
    metadata: Meta = Meta()


_envelope = msgspec.json.Decoder(_Envelope)
_decode = msgspec.json.Decoder()


def meta_of(obj: dict[str, Any]) -> Meta:
    """Return the metadata of an object whose tree is at hand: cheaper than from its JSON."""
    return msgspec.convert(obj["metadata"], Meta)


class Record:
    """One version of one object: its JSON, encoded once for disk, responses and watches.

    Selectors ask for labels and fields again and again, so both are read from the JSON at the
    first question and kept.
    """

    __slots__ = ("_fields", "_meta", "data", "key", "revision")

    def __init__(self, key: Key, revision: int, data: bytes, meta: Meta | None = None) -> None:
        self.key = key
        self.revision = revision
        self.data = data
        self._meta = meta
        self._fields: dict[str, str] | None = None

    @property
    def meta(self) -> Meta:
        """Return the metadata by which the server decides."""
        if self._meta is None:
            self._meta = _envelope.decode(self.data).metadata
        return self._meta

    @property
    def labels(self) -> dict[str, str]:
        """Return the object's labels."""
        return self.meta.labels or {}

    def object(self) -> dict[str, Any]:
        """Return a fresh tree of the object, which the caller may change."""
        tree: dict[str, Any] = _decode.decode(self.data)
        return tree

    def order(self) -> tuple[str, str]:
        """Return where the object stands in a list."""
        return self.key.namespace, self.key.name

    def at(self, revision: int) -> Record:
        """Return the same object under another resource version."""
        tree = self.object()
        tree["metadata"]["resourceVersion"] = str(revision)
        return Record(self.key, revision, encode(tree))

    def fields(self, read: Callable[[dict[str, Any]], dict[str, str]]) -> dict[str, str]:
        """Return what *read*, the kind's reader of selectable fields, sees of the object."""
        if self._fields is None:
            self._fields = read(self.object())
        return self._fields


class Event:
    """One change: the object after it (for a deletion its last state) and before it."""

    __slots__ = ("deleted", "lines", "previous", "record")

    def __init__(self, record: Record, previous: Record | None, *, deleted: bool = False) -> None:
        self.record = record
        self.previous = previous
        self.deleted = deleted
        self.lines: dict[tuple[str, str], bytes] = {}
        """Encoded watch lines by event type and representation, shared among watchers."""

    @property
    def revision(self) -> int:
        """Return the revision of the change."""
        return self.record.revision

    @property
    def superseded(self) -> list[int]:
        """Return the revisions that no client can ask for once this one is compacted."""
        before = [] if self.previous is None else [self.previous.revision]
        return [*before, self.revision] if self.deleted else before
