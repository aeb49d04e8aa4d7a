"""Serving what CRDs define from the moment they are durable."""

from __future__ import annotations

from collections.abc import Sequence

from lockstep.apiserver.catalog import Catalog
from lockstep.apiserver.crds import STORAGE, served_versions
from lockstep.apiserver.store import Event, Store
from lockstep.apiserver.watch import Hub


class CrdWatch:
    """Keeps the catalogue as the CRDs in the store say."""

    def __init__(self, store: Store, catalog: Catalog, hub: Hub) -> None:
        self._store = store
        self._catalog = catalog
        self._hub = hub

    def start(self) -> None:
        """Serve what is stored, and follow every change from now on.

        The client that creates a CRD is answered after this has run, and can use the resource at
        once.
        """
        for record in self._store.objects(STORAGE):
            self._catalog.define(record.key.name, served_versions(record.object()))
        self._store.subscribe(self._follow)

    def _follow(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.record.key.resource != STORAGE:
                continue
            crd = {} if event.deleted else event.record.object()
            now = served_versions(crd) if crd else []
            before = self._catalog.define(event.record.key.name, now)
            served = {v.kind.version for v in now}
            if any(v.kind.version not in served for v in before):
                self._hub.end(before[0].storage)
