"""A schema as a tree of nodes, parsed once.

Two dialects are read: the structural schemas of custom resources, and the components of the
built-in kinds, which refer to each other by name.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, Final

from lockstep.api.wire import Json
from lockstep.apiserver.schema.zeros import zeros_of

UNSET: Final = object()
INT_OR_STRING: Final = "int-or-string"
QUANTITY: Final = "quantity"

# Keywords of value validation that are kept as they are written.
_BOUNDS = (
    "enum",
    "pattern",
    "format",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
)

# How names that are no identifiers of CEL are written in its rules.
_ESCAPES = (("-", "__dash__"), (".", "__dot__"), ("/", "__slash__"))
_RESERVED = frozenset(
    {
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for"),
        *("function", "if", "import", "let", "loop", "package", "namespace", "return", "var"),
        *("void", "while"),
    }
)
_TYPED_FORMATS = ("byte", "date", "date-time", "duration")


class Node:
    """One place in a schema: what may stand there, and what is known about it."""

    __slots__ = (
        "all_of",
        "any_of",
        "bounds",
        "checked",
        "default",
        "defaulted",
        "embedded",
        "items",
        "list_type",
        "loose",
        "map_keys",
        "map_type",
        "name",
        "negated",
        "nullable",
        "one_of",
        "preserve",
        "properties",
        "read_as_empty",
        "required",
        "ruled",
        "rules",
        "translated",
        "type",
        "values",
    )

    def __init__(self) -> None:
        self.name = ""
        self.type = ""
        self.nullable = False
        self.preserve = False
        self.embedded = False
        self.properties: dict[str, Node] = {}
        self.values: Node | None = None
        self.items: Node | None = None
        self.required: tuple[str, ...] = ()
        self.default: Any = UNSET
        self.bounds: Json = {}
        self.list_type = "atomic"
        self.map_type = "granular"
        self.map_keys: tuple[str, ...] = ()
        self.all_of: tuple[Node, ...] = ()
        self.any_of: tuple[Node, ...] = ()
        self.one_of: tuple[Node, ...] = ()
        self.negated: Node | None = None
        self.rules: tuple[Json, ...] = ()
        self.checked = False
        """Whether anything at or below it is beyond what the fast check covers."""
        self.defaulted = False
        """Whether anything below it has a default."""
        self.loose = False
        """Whether an embedded resource is at or below it, which the fast check looks not into."""
        self.ruled = False
        """Whether anything at or below it has a CEL rule."""
        self.read_as_empty = False
        """Whether a null here is an empty text, as in Go's maps of texts."""
        self.translated = False
        """Whether rules see anything at or below it in another form than it is stored in."""

    def children(self) -> Iterator[Node]:
        """Yield the nodes of what may stand inside."""
        yield from self.properties.values()
        if self.values is not None:
            yield self.values
        if self.items is not None:
            yield self.items

    def child(self, key: str) -> Node | None:
        """Return the node of the member *key* of an object."""
        return self.properties.get(key, self.values)


def structural(schema: Json, metadata: Node) -> Node:
    """Return the node of the *schema* of a custom resource, whose metadata is *metadata*."""
    root = _structural(schema)
    root.type = "object"
    for name in ("apiVersion", "kind"):
        root.properties.setdefault(name, _string())
    root.properties["metadata"] = metadata
    return root


def _structural(schema: Json) -> Node:
    node = Node()
    node.type = schema.get("type", "")
    if schema.get("x-kubernetes-int-or-string"):
        node.type = INT_OR_STRING
    node.nullable = bool(schema.get("nullable"))
    node.preserve = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    node.embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    node.required = tuple(schema.get("required") or ())
    node.default = schema.get("default", UNSET)
    node.bounds = {key: schema[key] for key in _BOUNDS if schema.get(key) is not None}
    node.rules = tuple(schema.get("x-kubernetes-validations") or ())
    _extensions(node, schema)
    _inside(node, schema, _structural)
    node.all_of = tuple(map(_structural, schema.get("allOf") or ()))
    node.any_of = tuple(map(_structural, schema.get("anyOf") or ()))
    node.one_of = tuple(map(_structural, schema.get("oneOf") or ()))
    node.negated = _structural(schema["not"]) if schema.get("not") else None
    node.checked = _beyond_types(node) or any(c.checked for c in node.children())
    node.loose = node.embedded or any(c.loose for c in node.children())
    node.defaulted = any(c.defaulted or c.default is not UNSET for c in node.children())
    node.translated = (
        (node.type == "string" and node.bounds.get("format") in _TYPED_FORMATS)
        or any(escaped(name) != name for name in node.properties)
        or any(c.translated for c in node.children())
    )
    node.ruled = bool(node.rules) or any(c.ruled for c in node.children())
    return node


def escaped(name: str) -> str:
    """Return how a CEL rule has to write the field called *name*."""
    if name in _RESERVED:
        return f"__{name}__"
    written = name.replace("__", "__underscores__") if "__" in name else name
    for letter, escape in _ESCAPES:
        written = written.replace(letter, escape)
    return written


def _inside(node: Node, schema: Json, parse: Callable[[Json], Node]) -> None:
    for name, part in (schema.get("properties") or {}).items():
        node.properties[name] = parse(part)
    values = schema.get("additionalProperties")
    if isinstance(values, dict):
        node.values = parse(values)
    elif values is True:
        node.values = _anything()
    if isinstance(schema.get("items"), dict):
        node.items = parse(schema["items"])


def _extensions(node: Node, schema: Json) -> None:
    node.list_type = schema.get("x-kubernetes-list-type") or "atomic"
    node.map_type = schema.get("x-kubernetes-map-type") or "granular"
    node.map_keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())


def _beyond_types(node: Node) -> bool:
    bounds = node.bounds
    return bool(
        node.embedded
        or node.list_type != "atomic"
        or node.all_of
        or node.any_of
        or node.one_of
        or node.negated
        or (bounds and node.type in ("", "object", INT_OR_STRING))
        or bounds.keys() & {"uniqueItems", "format", "multipleOf", "pattern"}
        or ("enum" in bounds and not _is_text_enum(node))
        # The fast check lets what has a default be absent, as it is before defaulting.
        or any(
            name not in node.properties or node.properties[name].default is not UNSET
            for name in node.required
        )
    )


def _is_text_enum(node: Node) -> bool:
    return node.type == "string" and all(isinstance(v, str) for v in node.bounds["enum"])


def builtin(name: str, components: dict[str, Json], known: dict[str, Node]) -> Node:
    """Return the node of the component called *name*; *known* holds those parsed so far.

    Raises:
        KeyError: when there is no such component.
    """
    if name not in known:
        node = known[name] = Node()
        node.name = name
        _fill(node, components[name], components, known)
        for field, empty in zeros_of(name).written.items():
            if empty is None:
                node.properties[field] = copy.copy(node.properties[field])
                node.properties[field].nullable = True
    return known[name]


def _fill(node: Node, schema: Json, components: dict[str, Json], known: dict[str, Node]) -> None:
    node.type = schema.get("type", "")
    node.required = tuple(schema.get("required") or ())
    if "format" in schema:
        node.bounds = {"format": schema["format"]}
    if "oneOf" in schema:
        types = {part.get("type") for part in schema["oneOf"]}
        node.type = INT_OR_STRING if "integer" in types else QUANTITY
    _extensions(node, schema)
    _inside(node, schema, lambda part: _part(part, components, known))
    if node.values is not None and node.values.type == "string":
        node.values.read_as_empty = True
    is_empty = not node.properties and node.values is None
    node.preserve = node.type in ("", "object") and is_empty


def _part(schema: Json, components: dict[str, Json], known: dict[str, Node]) -> Node:
    ref = schema.get("$ref") or next((p["$ref"] for p in schema.get("allOf", ())), None)
    if ref is not None:
        return builtin(ref.rpartition("/")[2], components, known)
    node = Node()
    _fill(node, schema, components, known)
    return node


def _string() -> Node:
    node = Node()
    node.type = "string"
    return node


def _anything() -> Node:
    node = Node()
    node.preserve = True
    return node
