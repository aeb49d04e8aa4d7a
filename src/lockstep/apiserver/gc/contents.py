"""Namespaces and custom resource definitions: gone once everything in them is gone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from lockstep.apiserver.gc.model import Action, Delete, Finish, Item, Lookup, Place

NAMESPACES: Final = "namespaces"
CRDS: Final = "customresourcedefinitions.apiextensions.k8s.io"
NAMESPACE_FINALIZER: Final = "kubernetes"
CRD_FINALIZER: Final = "customresourcecleanup.apiextensions.k8s.io"

_FINALIZERS: Final = {NAMESPACES: NAMESPACE_FINALIZER, CRDS: CRD_FINALIZER}

ContentsOf = Callable[[Place], Iterable[Item]]
"""What is in a namespace, or what there is of a custom resource."""


@dataclass(frozen=True, slots=True)
class _Scope:
    """What an object is in: its namespace and its custom resource."""

    namespace: Place
    resource: Place


class ContainerGraph:
    """Namespaces and CRDs that are being deleted, and whose turn it is to be looked at."""

    def __init__(self, lookup: Lookup, contents: ContentsOf) -> None:
        self._lookup = lookup
        self._contents = contents
        self._emptying: set[Place] = set()
        self._marked: dict[Place, None] = {}

    def observe(self, old: Item | None, new: Item | None) -> None:
        """Take note of a change of an object: created (no *old*), changed or gone (no *new*)."""
        item = new or old
        if item is None:
            return
        if item.place.resource in _FINALIZERS:
            self._observe_container(item, gone=new is None)
        if self._emptying:
            scope = _scope(item)
            for container in (scope.namespace, scope.resource):
                if container in self._emptying:
                    self._marked[container] = None

    def _observe_container(self, item: Item, *, gone: bool) -> None:
        if gone:
            self._emptying.discard(item.place)
            self._marked.pop(item.place, None)
        elif item.deleting and item.place not in self._emptying:
            self._emptying.add(item.place)
            self._marked[item.place] = None

    def take(self) -> list[Place]:
        """Return the containers whose turn it is, and forget them."""
        marked = list(self._marked)
        self._marked.clear()
        return marked

    def mark(self, place: Place) -> None:
        """Look at a container again, because what was decided about it could not be done."""
        self._marked[place] = None

    def decide(self, place: Place) -> list[Action]:
        """Return what is to be deleted from a container; once it is empty, that it may go."""
        container = self._lookup(place)
        if container is None or not container.deleting:
            return []
        contents = list(self._contents(place))
        if not contents:
            return [Finish(place, container.uid, _FINALIZERS[place.resource])]
        return [Delete(item.place, item.uid) for item in contents if not item.deleting]


def _scope(item: Item) -> _Scope:
    return _Scope(Place(NAMESPACES, "", item.place.namespace), Place(CRDS, "", item.place.resource))
