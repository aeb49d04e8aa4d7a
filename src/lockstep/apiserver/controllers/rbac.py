"""Keeping the index of roles and bindings as the store says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lockstep.apiserver.auth.rbac import GROUP, Rbac
from lockstep.apiserver.store import Event, Store

_PLURALS: Final = {
    f"{plural}.{GROUP}": plural
    for plural in ("roles", "clusterroles", "rolebindings", "clusterrolebindings")
}
CLUSTER_ROLES: Final = f"clusterroles.{GROUP}"


class RbacWatch:
    """Lets every change of a role or a binding count from the moment it is durable."""

    def __init__(self, store: Store, rbac: Rbac) -> None:
        self._store = store
        self._rbac = rbac

    def start(self) -> None:
        """Read what is stored, and follow every change from now on."""
        for storage, plural in _PLURALS.items():
            for record in self._store.objects(storage):
                self._rbac.put(plural, record.object())
        self._store.subscribe(self._follow)

    def _follow(self, events: Sequence[Event]) -> None:
        for event in events:
            plural = _PLURALS.get(event.record.key.resource)
            if plural is None:
                continue
            if event.deleted:
                self._rbac.remove(plural, event.record.key.namespace, event.record.key.name)
            else:
                self._rbac.put(plural, event.record.object())
