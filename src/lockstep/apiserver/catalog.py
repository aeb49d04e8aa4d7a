"""What is served at present: the built-in resources and those of the CRDs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from lockstep.apiserver.builtin import BUILTINS, Kind
from lockstep.apiserver.status import qualified
from lockstep.apiserver.store import Record
from lockstep.apiserver.versions import convert, convert_bytes

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Served:
    """One resource in one version."""

    kind: Kind
    list_kind: str
    storage: str
    """The name that its objects are stored under, shared by all of its versions."""
    storage_version: str
    """The version that its objects are stored in."""
    prefix: bytes
    """How the JSON of an object in this version begins."""
    crd: Json | None = None
    """The CRD that defines it; absent for a built-in kind."""
    version: Json | None = None
    """The version's entry in the CRD."""

    @property
    def selectable(self) -> set[str]:
        """The fields that its objects can be selected by."""
        names = {"metadata.name"} | {path for path, _ in self.kind.selectable}
        return names | {"metadata.namespace"} if self.kind.namespaced else names

    def field_values(self, stored: Json) -> dict[str, str]:
        """Return what field selectors see of a stored object."""
        return self.kind.field_values(stored)

    def read(self, record: Record) -> bytes:
        """Return the JSON of *record* in this version."""
        data = record.data
        # What is stored begins with its version, see to_storage.
        if data.startswith(self.prefix):
            return data
        return convert_bytes(data, self.kind.api_version)

    def tree(self, record: Record) -> Json:
        """Return a fresh tree of *record* in this version."""
        return convert(record.object(), self.kind.api_version)

    def to_storage(self, obj: Json) -> Json:
        """Return *obj* as it is stored: in the storage version, which its JSON begins with."""
        obj = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], **obj}
        return convert(obj, self.storage_version)

    @property
    def custom(self) -> bool:
        """Whether a CRD defines it."""
        return self.crd is not None


def of_builtin(kind: Kind) -> Served:
    """Return how a built-in kind is served."""
    group, plural = kind.storage
    stored = next(k for k in BUILTINS if (k.group, k.plural) == (group, plural))
    return Served(
        kind, f"{kind.kind}List", qualified(group, plural), stored.api_version, prefix_of(kind)
    )


def prefix_of(kind: Kind) -> bytes:
    """Return how the stored JSON of an object of *kind* begins."""
    return f'{{"apiVersion":"{kind.api_version}",'.encode()


class Catalog:
    """Finds what is served under a group, a version and a plural."""

    def __init__(self) -> None:
        self._builtin = [of_builtin(kind) for kind in BUILTINS]
        self._custom: dict[str, list[Served]] = {}
        self._by_path: dict[tuple[str, str, str], Served] = {}
        self.changes = 0
        """Counts changes, for those who keep something made from the whole."""
        self._index()

    def _index(self) -> None:
        self.changes += 1
        self._by_path = {
            (served.kind.group, served.kind.version, served.kind.plural): served for served in self
        }

    def __iter__(self) -> Iterator[Served]:
        for group in self._custom.values():
            yield from group
        # The last one wins in the index: a CRD cannot replace what is built in.
        yield from self._builtin

    def find(self, group: str, version: str, plural: str) -> Served | None:
        """Return what is served there."""
        return self._by_path.get((group, version, plural))

    def by_kind(self, group: str, version: str, kind: str) -> Served | None:
        """Return what serves the objects of that ``apiVersion`` and ``kind``."""
        for served in self:
            k = served.kind
            if (k.group, k.version, k.kind) == (group, version, kind):
                return served
        return None

    def stored_as(self, storage: str) -> Served | None:
        """Return one of the versions whose objects are stored under that name."""
        for served in self:
            if served.storage == storage:
                return served
        return None

    def has_group(self, group: str, version: str) -> bool:
        """Return whether anything is served in that group and version."""
        return any((g, v) == (group, version) for g, v, _ in self._by_path)

    def define(self, crd_name: str, served: Iterable[Served]) -> None:
        """Serve what the CRD of that name defines, or no longer when there is nothing."""
        versions = list(served)
        if versions:
            self._custom[crd_name] = versions
        elif self._custom.pop(crd_name, None) is None:
            return
        self._index()
