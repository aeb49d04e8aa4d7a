"""What is served at present: the built-in resources and those of the CRDs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from lockstep.api.wire import Json
from lockstep.apiserver.builtin import BUILTINS, Kind
from lockstep.apiserver.openapi import Definition
from lockstep.apiserver.patch import Type, builtin, custom
from lockstep.apiserver.schema import Schema
from lockstep.apiserver.status import qualified
from lockstep.apiserver.store import Record
from lockstep.apiserver.versions import convert, convert_bytes

_DEPRECATED = {
    ("v1", "Endpoints"): (
        "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
    )
}


class Served:
    """One resource in one version."""

    def __init__(
        self,
        kind: Kind,
        storage: str,
        storage_version: str,
        *,
        list_kind: str = "",
        crd: Json | None = None,
        version: Json | None = None,
    ) -> None:
        self.kind = kind
        self.list_kind = list_kind or f"{kind.kind}List"
        self.storage = storage
        """The name that its objects are stored under, shared by all of its versions."""
        self.storage_version = storage_version
        """The version that its objects are stored in."""
        self.crd = crd
        """The CRD that defines it; absent for a built-in kind."""
        self.version = version or {}
        """The version's entry in the CRD."""
        self.prefix = f'{{"apiVersion":"{kind.api_version}",'.encode()
        """How the stored JSON of an object in this version begins, see to_storage."""
        self._list_prefix = self.prefix + f'"kind":"{kind.kind}",'.encode()

    @cached_property
    def deprecation(self) -> str:
        """What users of this version are warned of, if it is to go."""
        kind = self.kind
        if self.crd is None:
            return _DEPRECATED.get((kind.api_version, kind.kind), "")
        if not self.version.get("deprecated"):
            return ""
        if text := self.version.get("deprecationWarning"):
            return str(text)
        old = f"{kind.api_version} {kind.kind} is deprecated"
        served = [v["name"] for v in self.crd["spec"]["versions"] if not v.get("deprecated")]
        return f"{old}; use {kind.group}/{served[0]} {kind.kind}" if served else old

    @property
    def custom(self) -> bool:
        """Whether a CRD defines it."""
        return self.crd is not None

    @property
    def definition(self) -> Definition:
        """What the OpenAPI documents say about it."""
        return Definition(self.kind, self.list_kind, self._open_api_schema)

    @property
    def _open_api_schema(self) -> Json | None:
        if self.crd is None:
            return None
        schema: Json = (self.version.get("schema") or {}).get("openAPIV3Schema") or {}
        return schema

    @cached_property
    def schema(self) -> Schema:
        """The schema that its objects are checked against, compiled when first needed."""
        if self.crd is None:
            return Schema.builtin(self.kind.schema_name)
        return Schema.parse(self._open_api_schema or {})

    @cached_property
    def type(self) -> Type:
        """How its objects merge."""
        if self.crd is None:
            return builtin(self.kind.schema_name)
        return custom(self._open_api_schema)

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
        if data.startswith(self.prefix):
            return data
        return convert_bytes(data, self.kind.api_version)

    def read_item(self, record: Record) -> bytes:
        """Return the JSON of *record* as an item of a list.

        Items of a built-in kind do not say what they are: the list does.
        """
        data = self.read(record)
        if self.custom or not data.startswith(self._list_prefix):
            return data
        return b"{" + data[len(self._list_prefix) :]

    def tree(self, record: Record) -> Json:
        """Return a fresh tree of *record* in this version."""
        return convert(record.object(), self.kind.api_version)

    def to_storage(self, obj: Json) -> Json:
        """Return *obj* as it is stored: in the storage version, which its JSON begins with."""
        obj = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], **obj}
        return convert(obj, self.storage_version)


def of_builtin(kind: Kind) -> Served:
    """Return how a built-in kind is served."""
    stored = next(k for k in BUILTINS if (k.group, k.plural) == kind.storage)
    return Served(kind, qualified(*kind.storage), stored.api_version)


class Catalog:
    """Finds what is served under a group, a version and a plural."""

    def __init__(self) -> None:
        self._builtin = [of_builtin(kind) for kind in BUILTINS]
        self._custom: dict[str, list[Served]] = {}
        self._by_path: dict[tuple[str, str, str], Served] = {}
        self._by_storage: dict[str, Served] = {}
        self.changes = 0
        """Counts changes, for those who keep something made from the whole."""
        self._index()

    def _index(self) -> None:
        self.changes += 1
        self._by_path = {
            (served.kind.group, served.kind.version, served.kind.plural): served for served in self
        }
        self._by_storage = {served.storage: served for served in self}

    def __iter__(self) -> Iterator[Served]:
        for versions in self._custom.values():
            yield from versions
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
        return self._by_storage.get(storage)

    def define(self, crd_name: str, versions: Iterable[Served]) -> list[Served]:
        """Serve what the CRD of that name defines, or no longer when there is nothing.

        Returns what was served for it before.
        """
        before = self._custom.pop(crd_name, [])
        if now := list(versions):
            self._custom[crd_name] = now
        self._index()
        return before
