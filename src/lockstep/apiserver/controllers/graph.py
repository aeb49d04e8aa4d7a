"""The store's objects as the garbage collector sees them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

import msgspec

from lockstep.apiserver.catalog import Catalog
from lockstep.apiserver.gc.contents import NAMESPACES
from lockstep.apiserver.gc.model import Item, Owned, Place
from lockstep.apiserver.store import Key, Record, Store


class _Spec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    node_name: str = ""


class _Pod(msgspec.Struct, frozen=True, gc=False):
    spec: _Spec = _Spec()


_pod = msgspec.json.Decoder(_Pod)


@lru_cache(maxsize=1024)
def item_of(record: Record) -> Item:
    """Return an object as a node of the graph."""
    # Asked when a change comes, when its place is decided about, and when the next change comes.
    meta = record.meta
    owners = tuple(
        Owned(o.api_version, o.kind, o.name, o.uid, bool(o.block_owner_deletion))
        for o in meta.owner_references or ()
    )
    return Item(
        Place(*record.key),
        meta.uid,
        owners,
        frozenset(meta.finalizers or ()),
        bool(meta.deletion_timestamp),
    )


def node_of(pod: Record) -> str:
    """Return the name of the node that a pod is bound to, if it is."""
    # Most are asked about before they are bound, and to search is cheaper than to read.
    return _pod.decode(pod.data).spec.node_name if b'"nodeName":"' in pod.data else ""


class StoreGraph:
    """Answers what the decisions ask about objects other than their own."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store = store
        self._catalog = catalog
        self._resources: dict[tuple[str, str], tuple[str, bool] | None] = {}
        self._known = -1

    def lookup(self, place: Place) -> Item | None:
        """Return the newest state of the object at a place."""
        record = self._store.newest(Key(*place))
        return None if record is None else item_of(record)

    def resource_of(self, api_version: str, kind: str) -> tuple[str, bool] | None:
        """Return where objects of a kind are stored, and whether in namespaces."""
        if self._known != self._catalog.changes:
            self._resources.clear()
            self._known = self._catalog.changes
        question = (api_version, kind)
        if question not in self._resources:
            group, _, version = api_version.rpartition("/")
            served = self._catalog.by_kind(group, version, kind)
            answer = None if served is None else (served.storage, served.kind.namespaced)
            self._resources[question] = answer
        return self._resources[question]

    def contents(self, place: Place) -> Iterator[Item]:
        """Yield what is in a namespace, or what there is of a custom resource."""
        records: Iterable[Record] = (
            self._store.in_namespace(place.name)
            if place.resource == NAMESPACES
            else self._store.objects(place.name)
        )
        for record in records:
            item = self.lookup(Place(*record.key))
            if item is not None:
                yield item
