"""How the parts of an object merge: maps and lists that are one value, or many.

The types are read from OpenAPI v3 components (``x-kubernetes-list-type`` and its kin for
server-side apply, ``x-kubernetes-patch-strategy`` for strategic merge patches), each when it is
first met.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from lockstep.api.wire import Json
from lockstep.apiserver.patch.fieldset import LEAF, SELF
from lockstep.apiserver.schema.components import components
from lockstep.apiserver.schema.zeros import zeros_of

Field = tuple[str, "Type", Any]

ABSENT: Final = object()
"""In place of a value that is not there."""

_SCALARS: Final = frozenset({"string", "integer", "number", "boolean"})
_FLAT_KEPT: Final = 64
"""Sets of names that a type remembers the field set of."""
_ONE_VALUE: Final[Json] = {"x-kubernetes-map-type": "atomic"}
_RAW: Final = "io.k8s.apimachinery.pkg.runtime.RawExtension"


class Type:
    """The type of one place in an object, as far as merging needs it."""

    __slots__ = (
        "_catalog",
        "_fields",
        "_flat",
        "_items",
        "_schema",
        "_values",
        "basic",
        "default",
        "is_list",
        "is_map",
        "is_scalar",
        "keys",
        "list_is_atomic",
        "map_is_atomic",
        "merge_key",
        "strategies",
        "written",
    )

    def __init__(
        self, schema: Json, catalog: Catalog, outer: Json | None = None, *, name: str = ""
    ) -> None:
        site = {**schema, **outer} if outer else schema
        kind = schema.get("type", "")
        untyped = not kind and "oneOf" not in schema
        if site.get("x-kubernetes-int-or-string"):
            kind, untyped = "string", False
        self.is_map = kind == "object" or untyped
        self.is_list = kind == "array" or untyped
        self.basic = kind if kind == "string" and not site.get("x-kubernetes-int-or-string") else ""
        """The one sort of scalar that may stand here, if only one may that is checked."""
        self.is_scalar = kind in _SCALARS or "oneOf" in schema or untyped
        self.keys: tuple[str, ...] = tuple(site.get("x-kubernetes-list-map-keys") or ())
        self.list_is_atomic = site.get("x-kubernetes-list-type", "atomic") == "atomic"
        self.map_is_atomic = site.get("x-kubernetes-map-type") == "atomic"
        self.merge_key: str = site.get("x-kubernetes-patch-merge-key", "")
        self.strategies = frozenset(
            filter(None, site.get("x-kubernetes-patch-strategy", "").split(","))
        )
        self.default = site.get("default")
        self.written = zeros_of(name).written
        """What is in fields that are always there, when no client set them."""
        self._schema = schema
        self._catalog = catalog
        self._fields: dict[str, Field] | None = None
        self._flat: dict[tuple[str, ...], Json] = {}
        self._values: Type | None = None
        self._items: Type | None = None

    @property
    def fields(self) -> dict[str, Field]:
        """The named fields: by name, their key in a field set, their type and their zero.

        The zero is what an object has there when no client has written the field.
        """
        if self._fields is None:
            members: Json = self._schema.get("properties") or {}
            self._fields = {name: self._field(name, part) for name, part in members.items()}
        return self._fields

    def flat(self, names: tuple[str, ...]) -> Json:
        """Return the field set of a new map with these members, none of which has its own."""
        known = self._flat.get(names)
        if known is None:
            if len(self._flat) >= _FLAT_KEPT:
                self._flat.clear()
            fields = self.fields
            known = {fields[name][0] if name in fields else f"f:{name}": LEAF for name in names}
            known = self._flat[names] = {SELF: LEAF, **known}
        return known

    def _field(self, name: str, schema: Json) -> Field:
        kind = self._catalog.part(schema)
        zero: Any = ABSENT
        if self._catalog.typed and kind.is_map and schema.get("default") == {}:
            zero = {}
        elif self._catalog.typed and name in self.written:
            zero = self.written[name]
        elif self._catalog.typed and name in self._schema.get("required", ()):
            zero = ABSENT if kind.is_scalar else None
        return (f"f:{name}", kind, zero)

    @property
    def values(self) -> Type:
        """The type of members without a name of their own."""
        if self._values is None:
            additional = self._schema.get("additionalProperties")
            part = additional if isinstance(additional, dict) else {}
            self._values = self._catalog.part(part) if part else DEDUCED
        return self._values

    @property
    def is_open(self) -> bool:
        """Whether members other than the named fields may be there."""
        additional = self._schema.get("additionalProperties")
        if additional is not None:
            return bool(additional)
        return not self._schema.get("properties") or self._catalog.preserves(self._schema)

    @property
    def items(self) -> Type:
        """The type of a list's items."""
        if self._items is None:
            part = self._schema.get("items")
            self._items = self._catalog.part(part) if part else DEDUCED
        return self._items

    def member(self, name: str) -> Type:
        """Return the type of a map's member."""
        found = self.fields.get(name)
        return found[1] if found else self.values


class Catalog:
    """Types by the name of their component, each made once.

    Objects of *typed* kinds have parts that no client wrote: to Kubernetes they are Go structs, in
    which a struct or a required list is there, if empty. Those of custom resources have not.
    """

    def __init__(self, named: Mapping[str, Json], *, typed: bool = False) -> None:
        self.typed = typed
        self._named = named
        self._types: dict[str, Type] = {}

    def type_of(self, name: str) -> Type:
        """Return the type of a component.

        Raises:
            KeyError: There is no such component.
        """
        found = self._types.get(name)
        if found is None:
            schema = _ONE_VALUE if name == _RAW else self._named[name]
            found = self._types[name] = Type(schema, self, name=name)
        return found

    def part(self, schema: Json) -> Type:
        """Return the type of a schema that stands inside another one."""
        ref = schema.get("$ref") or next(
            (p["$ref"] for p in schema.get("allOf", ()) if p.get("$ref")), None
        )
        if ref is None:
            return Type(schema, self)
        name = ref.rpartition("/")[2]
        outer = {key: value for key, value in schema.items() if key.startswith("x-kubernetes-")}
        return Type(self._named[name], self, outer, name=name) if outer else self.type_of(name)

    def preserves(self, schema: Json) -> bool:
        """Whether a schema keeps members that it does not name."""
        return bool(schema.get("x-kubernetes-preserve-unknown-fields"))


DEDUCED: Final = Type({}, Catalog({}))
"""Of a value without a schema: maps merge by member, lists are one value."""


@cache
def _builtin() -> Catalog:
    return Catalog(components(), typed=True)


@cache
def _custom() -> Catalog:
    return Catalog(components())


def builtin(schema_name: str) -> Type:
    """Return the type of a built-in kind by the name of its component.

    Raises:
        KeyError: There is no such component.
    """
    return _builtin().type_of(schema_name)


def custom(schema: Json | None) -> Type:
    """Return the type of a custom resource by its structural schema."""
    metadata = {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
    text = {"type": "string"}
    properties = dict((schema or {}).get("properties") or {})
    common = {"apiVersion": text, "kind": text, "metadata": metadata}
    whole: Json = {**(schema or {}), "type": "object", "properties": {**properties, **common}}
    if not properties:
        whole["x-kubernetes-preserve-unknown-fields"] = True
    return Type(whole, _custom())
