"""A cache of objects with indices that says how each write changed it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from lockstep.api.meta import ObjectMeta
from lockstep.api.wire import Wire

T = TypeVar("T", bound=Wire)

Key = tuple[str, str]
"""Namespace (empty for cluster-scoped objects) and name."""
Index = Callable[[Any], Iterable[str]]
"""Which values of an index an object is found under."""


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """An object came (*old* is None), changed, or went (*new* is None).

    Both are the same incarnation: an object that was deleted and made again under the same name
    is reported as one that went and another that came.
    """

    old: T | None
    new: T | None

    @property
    def object(self) -> T:
        """Return the newest that is known of the object."""
        found = self.new if self.new is not None else self.old
        if found is None:
            raise ValueError("a change without an object")
        return found


def meta_of(obj: Any) -> ObjectMeta:
    """Return the metadata of any object; all views of objects have them."""
    return cast("ObjectMeta", obj.metadata)


def key_of(obj: Any) -> Key:
    """Return the key of an object: its namespace and name."""
    meta = meta_of(obj)
    return (meta.namespace, meta.name)


class Cache(Generic[T]):
    """Objects by key and by index."""

    def __init__(self, indices: Mapping[str, Index] | None = None) -> None:
        self._objects: dict[Key, T] = {}
        self._functions = dict(indices or {})
        self._indices: dict[str, dict[str, dict[Key, T]]] = {name: {} for name in self._functions}

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[T]:
        return iter(list(self._objects.values()))

    def get(self, key: Key) -> T | None:
        """Return the object of that key, if it is there."""
        return self._objects.get(key)

    def by_index(self, index: str, value: str) -> list[T]:
        """Return the objects found under *value* of *index*.

        Raises:
            KeyError: when there is no such index.
        """
        return list(self._indices[index].get(value, {}).values())

    def add_index(self, name: str, function: Index) -> None:
        """Keep another index; an index of that name that is there already stays as it is."""
        if name in self._functions:
            return
        self._functions[name] = function
        index = self._indices[name] = {}
        for key, obj in self._objects.items():
            for value in function(obj):
                index.setdefault(value, {})[key] = obj

    def put(self, obj: T) -> list[Change[T]]:
        """Add or replace an object; nothing changes where it is the version already known."""
        key = key_of(obj)
        old = self._objects.get(key)
        if old is None:
            self._store(key, None, obj)
            return [Change(None, obj)]
        if meta_of(old).uid != meta_of(obj).uid:
            self._store(key, old, obj)
            return [Change(old, None), Change(None, obj)]
        version = meta_of(obj).resource_version
        if version and version == meta_of(old).resource_version:
            return []
        self._store(key, old, obj)
        return [Change(old, obj)]

    def remove(self, key: Key, last: T | None = None) -> list[Change[T]]:
        """Remove an object; *last* is its state when it went, where that is known.

        Nothing changes where *last* is another incarnation than the one that is here.
        """
        old = self._objects.get(key)
        if old is None:
            return []
        if last is not None and meta_of(last).uid != meta_of(old).uid:
            return []
        self._store(key, old, None)
        return [Change(last if last is not None else old, None)]

    def replace(self, objects: Iterable[T]) -> list[Change[T]]:
        """Become exactly *objects*; what went is reported before what came or changed."""
        present = {key_of(obj): obj for obj in objects}
        changes: list[Change[T]] = []
        for key in [key for key in self._objects if key not in present]:
            changes += self.remove(key)
        for obj in present.values():
            changes += self.put(obj)
        return changes

    def _store(self, key: Key, old: T | None, new: T | None) -> None:
        if new is None:
            del self._objects[key]
        else:
            self._objects[key] = new
        for name, function in self._functions.items():
            index = self._indices[name]
            before = set(function(old)) if old is not None else set()
            after = set(function(new)) if new is not None else set()
            for value in before - after:
                found = index[value]
                del found[key]
                if not found:
                    del index[value]
            if new is not None:
                for value in after:
                    index.setdefault(value, {})[key] = new
