"""The forms in which a client can have an object: whole, its metadata alone, or a table row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import msgspec

from lockstep.api.wire import Json, encode
from lockstep.apiserver.builtin.defaults.workloads import TEMPLATE_COUNT
from lockstep.apiserver.catalog import Served
from lockstep.apiserver.store import Record

INITIAL_END = "k8s.io/initial-events-end"


class ListMeta(msgspec.Struct, rename="camel", omit_defaults=True):
    """The metadata of a list."""

    resource_version: str
    continue_: str | None = msgspec.field(default=None, name="continue")
    """Where the next page begins; lists of custom resources say it even where there is none."""
    remaining_item_count: int | None = None


class Representation(ABC):
    """One form of one resource."""

    stream_type = "application/json"

    def __init__(self, served: Served, key: str) -> None:
        self.served = served
        self.key = key
        """Tells it apart from others, where its encodings are shared."""

    @abstractmethod
    def one(self, record: Record) -> bytes:
        """Return one object."""

    @abstractmethod
    def many(self, records: Sequence[Record], meta: ListMeta) -> bytes:
        """Return a list."""

    def line(self, type_: str, record: Record) -> bytes:
        """Return a line of a watch."""
        return b'{"type":"%b","object":%b}\n' % (type_.encode(), self.one(record))

    def opened(self, line: bytes) -> bytes:
        """Return the first line of a watch, where it has to say more than others."""
        return line

    def bookmark(self, revision: int, *, initial_end: bool = False) -> bytes:
        """Return the line that says up to which revision everything has been sent."""
        kind, version = self._bookmark_type()
        meta: Json = {"resourceVersion": str(revision)}
        if initial_end:
            meta["annotations"] = {INITIAL_END: "true"}
        obj: Json = {"kind": kind, "apiVersion": version, "metadata": meta}
        return encode({"type": "BOOKMARK", "object": obj}) + b"\n"

    def error(self, status: Json) -> bytes:
        """Return the line that ends a watch with a failure."""
        return b'{"type":"ERROR","object":%b}\n' % encode(status)

    def _bookmark_type(self) -> tuple[str, str]:
        return self.served.kind.kind, self.served.kind.api_version


class Whole(Representation):
    """The object as it is stored."""

    def __init__(self, served: Served) -> None:
        super().__init__(served, served.kind.api_version)

    def one(self, record: Record) -> bytes:
        """Return the object."""
        return self.served.read(record)

    def many(self, records: Sequence[Record], meta: ListMeta) -> bytes:
        """Return a list of objects."""
        if self.served.custom and meta.continue_ is None:
            meta = msgspec.structs.replace(meta, continue_="")
        head = encode(
            {
                "kind": self.served.list_kind,
                "apiVersion": self.served.kind.api_version,
                "metadata": meta,
            }
        )
        items = b",".join([self.served.read_item(record) for record in records])
        return b'%b,"items":[%b]}' % (head[:-1], items)


_DAEMON_SETS = "daemonsets.apps"


class _MetadataOnly(msgspec.Struct):
    metadata: msgspec.Raw


_metadata_only = msgspec.json.Decoder(_MetadataOnly)


def partial_metadata(record: Record) -> bytes:
    """Return the object's metadata as ``PartialObjectMetadata``."""
    metadata = bytes(_metadata_only.decode(record.data).metadata)
    if record.key.resource == _DAEMON_SETS:
        metadata = _without_count(metadata)
    return (
        b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":%b}' % metadata
    )


def _without_count(metadata: bytes) -> bytes:
    """Leave out an annotation that only whole objects show: Kubernetes keeps it in the spec."""
    tree = msgspec.json.decode(metadata)
    annotations = tree.get("annotations", {})
    annotations.pop(TEMPLATE_COUNT, None)
    if not annotations:
        tree.pop("annotations", None)
    return encode(tree)


class MetadataOnly(Representation):
    """The object's metadata."""

    def __init__(self, served: Served) -> None:
        super().__init__(served, "metadata")

    def one(self, record: Record) -> bytes:
        """Return the object's metadata."""
        return partial_metadata(record)

    def many(self, records: Sequence[Record], meta: ListMeta) -> bytes:
        """Return a list of metadata."""
        head = encode(
            {
                "kind": "PartialObjectMetadataList",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": meta,
            }
        )
        items = b",".join(map(partial_metadata, records))
        return b'%b,"items":[%b]}' % (head[:-1], items)

    def _bookmark_type(self) -> tuple[str, str]:
        return "PartialObjectMetadata", "meta.k8s.io/v1"
