"""Owner references: dependents go with their owners.

The graph keeps only the edges, by the uid of the owner; the objects themselves are looked up when
a decision is due. Events mark the few objects whose fate they may change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from lockstep.apiserver.gc.model import (
    FOREGROUND,
    ORPHAN,
    Action,
    Delete,
    DropOwners,
    Finish,
    Item,
    Lookup,
    Owned,
    Place,
    Unblock,
)

ResourceOf = Callable[[str, str], tuple[str, bool] | None]
"""From apiVersion and kind to the resource and whether it is namespaced; nothing if not served."""

_SOLID: Final = "solid"
_DANGLING: Final = "dangling"
_WAITING: Final = "waiting"


@dataclass(frozen=True, slots=True)
class _Verdict:
    """An object's owners by what has become of them: uids of those gone, and of those waiting."""

    solid: bool
    dangling: frozenset[str]
    waiting: frozenset[str]


class OwnerGraph:
    """Who depends on whom, and whose turn it is to be looked at."""

    def __init__(self, lookup: Lookup, resource_of: ResourceOf) -> None:
        self._lookup = lookup
        self._resource_of = resource_of
        self._dependents: dict[str, dict[Place, bool]] = {}
        self._blocking: dict[str, int] = {}
        self._unresolved: dict[Place, None] = {}
        self._marked: dict[Place, None] = {}

    def observe(self, old: Item | None, new: Item | None) -> None:
        """Take note of a change of an object: created (no *old*), changed or gone (no *new*)."""
        before = old.owners if old else ()
        after = new.owners if new else ()
        if before != after:
            self._relink(old, new)
        if new is None:
            if old is not None:
                self._marked.update(dict.fromkeys(self._dependents.get(old.uid, ())))
                self._unresolved.pop(old.place, None)
                self._mark_owners(old)
        elif _changes_fate(old, new):
            self._marked[new.place] = None
            if old is not None:
                self._mark_owners(old)

    def take(self) -> list[Place]:
        """Return the objects whose turn it is, and forget them."""
        marked = list(self._marked)
        self._marked.clear()
        return marked

    def mark(self, place: Place) -> None:
        """Look at an object again, because what was decided about it could not be done."""
        self._marked[place] = None

    def recheck(self) -> None:
        """Look again at objects with owners of kinds that were unknown; kinds have changed."""
        self._marked.update(self._unresolved)

    def decide(self, place: Place) -> list[Action]:
        """Return what is to be done about an object now."""
        item = self._lookup(place)
        if item is None:
            return []
        if item.orphans_dependents:
            return self._orphan(item)
        if item.awaits_dependents:
            return self._delete_dependents(item)
        return [] if item.deleting else self._collect(item)

    def dependents(self, owner: Item) -> Iterator[tuple[Item, Owned]]:
        """Yield what depends on an object, with the reference that says so."""
        for place in list(self._dependents.get(owner.uid, ())):
            item = self._lookup(place)
            for reference in item.owners if item else ():
                if item and reference.uid == owner.uid and self._owner(item, reference) == owner:
                    yield item, reference

    def _relink(self, old: Item | None, new: Item | None) -> None:
        for reference in old.owners if old else ():
            if old is not None:
                self._unlink(old.place, reference.uid)
        for reference in new.owners if new else ():
            if new is not None:
                self._link(new, reference)

    def _link(self, item: Item, reference: Owned) -> None:
        # What refers to an owner that it cannot have, as in another namespace, must not hold it.
        blocks = reference.blocks and isinstance(self._owner(item, reference), Item)
        places = self._dependents.setdefault(reference.uid, {})
        known = places.get(item.place, False)
        places[item.place] = known or blocks
        if blocks and not known:
            self._blocking[reference.uid] = self._blocking.get(reference.uid, 0) + 1

    def _unlink(self, place: Place, owner: str) -> None:
        places = self._dependents.get(owner, {})
        if places.pop(place, False):
            self._blocking[owner] -= 1
            if not self._blocking[owner]:
                del self._blocking[owner]
        if not places:
            self._dependents.pop(owner, None)

    def _mark_owners(self, item: Item) -> None:
        """Look at the owners that waited for an object, once nothing else blocks them.

        To look at an owner means to look at all of its dependents, so not each of them may cause
        it: thousands go at a time.
        """
        for reference in item.owners:
            if reference.uid in self._blocking:
                continue
            owner = self._owner(item, reference)
            if isinstance(owner, Item) and owner.awaits_dependents:
                self._marked[owner.place] = None

    def _owner(self, item: Item, reference: Owned) -> Item | str | None:
        """Return the owner; nothing if it is gone, a word if the reference leads nowhere."""
        found = self._resource_of(reference.api_version, reference.kind)
        if found is None:
            return "unknown kind"
        resource, namespaced = found
        if namespaced and not item.place.namespace:
            return "namespaced owner of a cluster-scoped object"
        namespace = item.place.namespace if namespaced else ""
        owner = self._lookup(Place(resource, namespace, reference.name))
        return owner if owner is not None and owner.uid == reference.uid else None

    def _classify(self, item: Item) -> _Verdict:
        found: dict[str, set[str]] = {_SOLID: set(), _DANGLING: set(), _WAITING: set()}
        self._unresolved.pop(item.place, None)
        for reference in item.owners:
            owner = self._owner(item, reference)
            if isinstance(owner, str):
                # What cannot be resolved is never a reason to delete anything.
                self._unresolved[item.place] = None
                found[_SOLID].add(reference.uid)
            elif owner is None:
                found[_DANGLING].add(reference.uid)
            else:
                found[_WAITING if owner.awaits_dependents else _SOLID].add(reference.uid)
        return _Verdict(
            bool(found[_SOLID]), frozenset(found[_DANGLING]), frozenset(found[_WAITING])
        )

    def _collect(self, item: Item) -> list[Action]:
        if not item.owners:
            return []
        verdict = self._classify(item)
        lost = verdict.dangling | verdict.waiting
        if verdict.solid:
            return [DropOwners(item.place, item.uid, lost)] if lost else []
        dependents = [dependent for dependent, _ in self.dependents(item)]
        if verdict.waiting and dependents:
            # Objects that wait for each other would wait for ever.
            circle = [d for d in dependents if d.awaits_dependents]
            unblock: list[Action] = [Unblock(d.place, d.uid) for d in circle]
            return [*unblock, Delete(item.place, item.uid, "Foreground")]
        return [Delete(item.place, item.uid, _propagation(item))]

    def _orphan(self, item: Item) -> list[Action]:
        drops: list[Action] = [
            DropOwners(dependent.place, dependent.uid, frozenset({item.uid}))
            for dependent, _ in self.dependents(item)
        ]
        return [*drops, Finish(item.place, item.uid, ORPHAN)]

    def _delete_dependents(self, item: Item) -> list[Action]:
        dependents = list(self.dependents(item))
        if not any(reference.blocks for _, reference in dependents):
            return [Finish(item.place, item.uid, FOREGROUND)]
        actions: list[Action] = []
        for dependent, _ in dependents:
            if not dependent.deleting:
                actions += self._collect(dependent)
        return actions


def _propagation(item: Item) -> str:
    if ORPHAN in item.finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in item.finalizers else "Background"


def _changes_fate(old: Item | None, new: Item) -> bool:
    if old is None:
        return bool(new.owners) or new.awaits_dependents or new.orphans_dependents
    return (
        old.owners != new.owners or old.deleting != new.deleting or old.finalizers != new.finalizers
    )
